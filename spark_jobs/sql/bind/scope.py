"""Names that an expression can see: the columns of FROM, and those of the query around it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spark_jobs.errors import SqlError, UnsupportedError
from spark_jobs.sql.logical import Field
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Column, Expr, FieldAccess, columns, transform


@dataclass(frozen=True, slots=True)
class Relation:
    """One table of FROM: its alias, its fields, and the position of the first of them.

    `hidden` fields are found behind the alias only: USING has put a common column in their place,
    which is a relation of its own.
    """

    alias: str | None
    fields: tuple[Field, ...]
    offset: int
    hidden: frozenset[str] = frozenset()

    def hiding(self, names: Iterable[str]) -> "Relation":
        """The relation with more hidden fields."""
        own = self.hidden | (set(names) & {field.name for field in self.fields})
        return replace(self, hidden=own)

    def open(self) -> "Relation":
        """The relation as its alias shows it."""
        return replace(self, hidden=frozenset())


@dataclass(frozen=True, slots=True)
class Outer:
    """What a subquery sees of the query around it.

    `refused_in` names the part of the subquery that may not read it, such as an aggregate.
    """

    scope: "Scope"
    refused_in: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """All relations an expression can refer to, in the order of FROM.

    In a subquery, column i of the query around it is the column -1 - i, until the subquery has
    become a join.
    """

    source: SourceText
    relations: tuple[Relation, ...]
    outer: Outer | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(f for r in self.relations for f in r.fields)

    def resolve(self, parts: Sequence[Name]) -> Expr:
        """`column`, `alias.column`, and fields of rows behind either."""
        qualified = [r.open() for r in self.relations if r.alias == parts[0].text]
        if qualified and len(parts) > 1 and _has(qualified, parts[1]):
            return self._column(qualified, parts[1], parts[2:])
        if _has(self.relations, parts[0]):
            return self._column(self.relations, parts[0], parts[1:])
        if not qualified and self.outer is not None and self.outer.scope.knows(parts):
            return self._outer_column(self.outer, parts)
        if qualified and len(parts) > 1:
            raise self._unknown_column(qualified, parts[1], f" in {parts[0].text}")
        if len(parts) > 1:
            raise self._unknown_table(parts[0])
        raise self._unknown_column(self.relations, parts[0], "")

    def knows(self, parts: Sequence[Name]) -> bool:
        """Whether these names are a column here or further out."""
        if len(parts) > 1 and any(r.alias == parts[0].text for r in self.relations):
            return True
        further = self.outer is not None and self.outer.scope.knows(parts)
        return _has(self.relations, parts[0]) or further

    def _outer_column(self, outer: Outer, parts: Sequence[Name]) -> Expr:
        found = outer.scope.resolve(parts)
        what = outer.refused_in
        if any(index < 0 for index in columns((found,))):
            what = "a subquery of a subquery"
        if what is not None:
            error = UnsupportedError(
                "UNSUPPORTED_CLAUSE",
                f"{parts[-1].text} of the outer query in {what} is not supported",
                "compare it in the WHERE of a subquery that neither groups nor aggregates",
            )
            raise self.source.place(error, parts[0].start)
        return mirrored(found)

    def columns_of(self, alias: Name | None) -> list[Column]:
        """What `*` or `alias.*` stands for."""
        if alias is None:
            return [c for r in self.relations for c in _shown(r)]
        chosen = [r.open() for r in self.relations if r.alias == alias.text]
        if not chosen:
            raise self._unknown_table(alias)
        return [c for r in chosen for c in _shown(r)]

    def _column(self, among: Sequence[Relation], name: Name, path: Sequence[Name]) -> Expr:
        found = list(_matches(among, name))
        if len(found) > 1:
            owners = [r.alias for r in among if any(f.name == name.text for f in r.fields)]
            raise self.source.place(
                SqlError(
                    "AMBIGUOUS_COLUMN",
                    f"column {name.text} is in more than one table",
                    f"write {owners[0]}.{name.text}" if owners and owners[0] else None,
                ),
                name.start,
            )
        return self.access(found[0], path)

    def access(self, expr: Expr, path: Sequence[Name]) -> Expr:
        """Fields of a row, one inside the other."""
        for name in path:
            if expr.type.name != "ROW":
                raise self.source.place(
                    SqlError(
                        "NOT_A_ROW",
                        f"{name.text} is read from {expr.type.sql()}, which has no fields",
                    ),
                    name.start,
                )
            field = next((f for f in expr.type.fields if f.name == name.text), None)
            if field is None:
                raise self.source.place(
                    SqlError(
                        "UNKNOWN_FIELD",
                        f"{expr.type.sql()} has no field {name.text}",
                        nearest(name.text, (f.name for f in expr.type.fields)),
                    ),
                    name.start,
                )
            expr = FieldAccess(expr, name.text, _inner(field.type, expr.type))
        return expr

    def _unknown_table(self, name: Name) -> SqlError:
        aliases = [r.alias for r in self.relations if r.alias]
        hint = nearest(name.text, aliases) or (
            f"FROM has {', '.join(aliases)}" if aliases else None
        )
        return self.source.place(
            SqlError("UNKNOWN_TABLE", f"no table {name.text} in FROM", hint), name.start
        )

    def _unknown_column(self, among: Sequence[Relation], name: Name, where: str) -> SqlError:
        names = [f.name for r in among for f in r.fields]
        hint = nearest(name.text, names) or (f"use one of {', '.join(names)}" if names else None)
        return self.source.place(
            SqlError("UNKNOWN_COLUMN", f"no column {name.text}{where}", hint), name.start
        )


def mirrored(expr: Expr) -> Expr:
    """Columns of a query as its subqueries see them, and back."""
    return transform(expr, lambda c: replace(c, index=-1 - c.index))


def _has(among: Sequence[Relation], name: Name) -> bool:
    return any(True for _ in _matches(among, name))


def _matches(among: Sequence[Relation], name: Name) -> Iterator[Column]:
    return (c for relation in among for c in _shown(relation) if c.name == name.text)


def _shown(relation: Relation) -> Iterator[Column]:
    """The fields that are not hidden."""
    for i, field in enumerate(relation.fields):
        if field.name not in relation.hidden:
            yield Column(relation.offset + i, field.name, field.type)


def _inner(field: DataType, row: DataType) -> DataType:
    return with_nullable(field, field.nullable or row.nullable)

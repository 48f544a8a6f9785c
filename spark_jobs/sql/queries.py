"""Binds SELECT: FROM, JOIN, WHERE and the select list become logical nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import NoReturn

from sqlglot import exp

from spark_jobs.errors import CatalogError, PositionedError, SqlError, UnsupportedError
from spark_jobs.sql.catalog import Column as TableColumn
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.expr import Call, Column, Expr
from spark_jobs.sql.expressions import ExpressionBinder
from spark_jobs.sql.logical import (
    Field,
    Filter,
    Join,
    JoinType,
    Logical,
    Position,
    Project,
    Scan,
    TimeAttribute,
)
from spark_jobs.sql.positions import name_path, start_of
from spark_jobs.sql.scope import Relation, Scope
from spark_jobs.sql.source import NotBoundError, Source, nearest
from spark_jobs.sql.statements import Name

_SELECT_PARTS = {"expressions", "from_", "joins", "where"}
_PART_NAMES = {
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "SELECT DISTINCT",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "laterals": "LATERAL",
    "with_": "WITH",
    "match": "MATCH_RECOGNIZE",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "locks": "FOR UPDATE",
}
_PART_HINTS = {
    "group": "aggregate before or after the join, in a job of its own",
    "distinct": "declare a PRIMARY KEY on a table that keeps one row per key",
    "order": "the rows of a stream have no end to sort up to",
    "limit": "the rows of a stream have no end",
    "with_": "make it a CREATE VIEW or a subquery in FROM",
}
_JOIN_PARTS = {"this", "side", "kind", "on"}
_JOIN_KINDS: dict[tuple[str, str], JoinType] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
}
_TABLE_PARTS = {"this", "alias", "version"}


class QueryBinder:
    """Binds queries over the tables and views of one job file."""

    def __init__(
        self, source: Source, tables: Mapping[str, Table], views: Mapping[str, Logical]
    ) -> None:
        self.source = source
        self.tables = tables
        self.views = views

    def bind(self, node: exp.Expr) -> Logical:
        """The logical plan of a query.

        Raises:
            PositionedError: a problem that ended the work; others are reported to the source.
            NotBoundError: only reported problems.
        """
        match node:
            case exp.Select():
                return self._select(node)
            case exp.Subquery() if not _others(node, {"this", "alias"}):
                return self.bind(node.this)
            case exp.SetOperation():
                self._refuse(node, type(node).__name__.upper(), "write one INSERT INTO per query")
            case exp.Values():
                self._refuse(node, "VALUES", "a query reads from a Kafka topic")
            case _:
                self._refuse(node, _other_name(node))

    def _select(self, node: exp.Select) -> Logical:
        source = self.source
        with source.all_or_nothing():
            for part in _others(node, _SELECT_PARTS):
                source.problems.append(self._unsupported_part(node, part))
            from_ = node.args.get("from_")
            if from_ is None:
                self._refuse(node, "SELECT without FROM", "a query reads from a Kafka topic")
            input_, scope = self._from(from_.this, node.args.get("joins") or [])
            where = node.args.get("where")
            if where is not None:
                with source.collecting():
                    condition = ExpressionBinder(scope).condition(where.this, "WHERE")
                    input_ = Filter(input_, condition)
            items: list[tuple[str | None, Expr]] = []
            for item in node.expressions:
                with source.collecting():
                    items += self._item(item, scope)
        return project(input_, [e for _, e in items], unique_names([n for n, _ in items]))

    def _unsupported_part(self, node: exp.Expr, part: str) -> PositionedError:
        value = node.args[part]
        first = value[0] if isinstance(value, list) else value
        start = start_of(first) if isinstance(first, exp.Expr) else 0
        name = _PART_NAMES.get(part, part.rstrip("_").upper())
        error = UnsupportedError(
            "UNSUPPORTED_CLAUSE", f"{name} is not supported", _PART_HINTS.get(part)
        )
        return self.source.place(error, start or start_of(node))

    def _item(self, node: exp.Expr, scope: Scope) -> Iterator[tuple[str | None, Expr]]:
        """The columns that one element of the select list stands for; None is an unnamed one."""
        if isinstance(node, exp.Star):
            self._plain_star(node)
            yield from ((c.name, c) for c in scope.columns_of(None))
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            self._plain_star(node.this)
            alias = node.args["table"]
            name = Name(alias.name, start_of(alias))
            yield from ((c.name, c) for c in scope.columns_of(name))
        elif isinstance(node, exp.Alias):
            yield node.alias, ExpressionBinder(scope).bind(node.this)
        else:
            expr = ExpressionBinder(scope).bind(node)
            parts, _ = name_path(node)
            yield (parts[-1].text if parts else None), expr

    def _plain_star(self, node: exp.Expr) -> None:
        if _others(node, set()):
            self._refuse(node, "* with EXCEPT, REPLACE or RENAME", "name the columns")

    def _from(self, first: exp.Expr, joins: list[exp.Expr]) -> tuple[Logical, Scope]:
        if first.args.get("version") is not None:
            self._refuse(first, "FOR SYSTEM_TIME AS OF outside of a JOIN")
        joins = [*(first.args.get("joins") or []), *joins]
        node, relation = self._relation(first, 0)
        scope = Scope(self.source, (relation,))
        for join in joins:
            node, scope = self._join(node, scope, join)
        return node, scope

    def _relation(self, node: exp.Expr, offset: int) -> tuple[Logical, Relation]:
        """A table, view or subquery of FROM with the alias it has there."""
        alias = node.args.get("alias")
        name: str | None
        match node:
            case exp.Table():
                bound = self._table(node)
                name = node.alias or node.name
            case exp.Subquery():
                self._only(node, {"this", "alias", "joins"})
                bound, name = self.bind(node.this), node.alias or None
            case exp.Values():
                self._refuse(node, "VALUES", "a query reads from a Kafka topic")
            case exp.Lateral():
                self._refuse(node, "LATERAL", "use FOR SYSTEM_TIME AS OF for versioned tables")
            case exp.Unnest():
                self._refuse(node, "UNNEST")
            case _:
                self._refuse(node, _other_name(node))
        renames = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if renames:
            bound = self.renamed(bound, [Name(c.name, start_of(c)) for c in renames])
        return bound, Relation(name, bound.fields, offset)

    def renamed(self, node: Logical, names: list[Name]) -> Logical:
        """The node with other column names, as `AS t (a, b)` and `CREATE VIEW v (a, b)` give."""
        if len(names) != len(node.fields):
            raise self.source.place(
                SqlError("COLUMN_COUNT", f"{len(names)} names for {len(node.fields)} columns"),
                names[0].start,
            )
        exprs = [Column(i, f.name, f.type) for i, f in enumerate(node.fields)]
        return project(node, exprs, [n.text for n in names])

    def _table(self, node: exp.Table) -> Logical:
        if node.args.get("db"):
            what = "a table name with a catalog or database"
            self._refuse(node, what, "use the name alone: a job file has one name space")
        self._only(node, _TABLE_PARTS | {"joins"})
        if not isinstance(node.this, exp.Identifier):
            self._refuse(node, f"the table function {node.this.name.upper()}")
        name = node.name
        view = self.views.get(name)
        if view is not None:
            return view
        table = self.tables.get(name)
        if table is None and name in self.source.broken:
            raise NotBoundError
        if table is None:
            known = (*self.tables, *self.views)
            hint = nearest(name, known) or "CREATE TABLE or CREATE VIEW must come before it is read"
            error = CatalogError("UNKNOWN_TABLE", f"no table or view {name}", hint)
            raise self.source.place(error, start_of(node.this))
        return scan(table, Position(*self.source.position(start_of(node.this))))

    def _join(self, left: Logical, scope: Scope, node: exp.Expr) -> tuple[Logical, Scope]:
        join_type = self._join_type(node)
        right, relation = self._relation(node.this, len(left.fields))
        both = Scope(self.source, (*scope.relations, relation))
        as_of, condition = None, None
        version, on = node.this.args.get("version"), node.args.get("on")
        if version is not None:
            if version.args.get("kind") != "AS OF":
                self._refuse(node, "FOR SYSTEM_TIME with anything but AS OF")
            with self.source.collecting():
                as_of = ExpressionBinder(scope).bind(version.expression)
        if on is not None:
            with self.source.collecting():
                condition = ExpressionBinder(both).condition(on, "ON")
        elif node.args.get("kind") != "CROSS" and (node.args.get("side") or version is not None):
            error = SqlError("JOIN_WITHOUT_ON", "the join has no ON condition", "add ON ...")
            self.source.report(error, start_of(node.this))
        position = Position(*self.source.position(start_of(node.this)))
        joined = Join(left, right, join_type, condition, as_of, position)
        return joined, _over(joined, both)

    def _join_type(self, node: exp.Expr) -> JoinType:
        if node.this.args.get("joins"):
            self._refuse(node.this, "a join inside a join", "write the joins one after the other")
        for part in _others(node, _JOIN_PARTS):
            name = "NATURAL JOIN" if part == "method" else f"JOIN ... {part.upper()}"
            self._refuse(node.this, name, "write JOIN ... ON")
        side, kind = node.args.get("side") or "", node.args.get("kind") or ""
        join_type = _JOIN_KINDS.get((side, kind))
        if join_type is None:
            self._refuse(node.this, f"{side} {kind} JOIN".strip())
        return join_type

    def _only(self, node: exp.Expr, parts: set[str]) -> None:
        for part in _others(node, parts):
            raise self._unsupported_part(node, part)

    def _refuse(self, node: exp.Expr, what: str, hint: str | None = None) -> NoReturn:
        error = UnsupportedError("UNSUPPORTED_CLAUSE", f"{what} is not supported", hint)
        raise self.source.place(error, start_of(node))


def scan(table: Table, position: Position) -> Scan:
    """All columns of a table; its event time and PROCTIME() columns are time attributes."""
    fields = tuple(Field(c.name, c.type, _time_of_column(table, c)) for c in table.columns)
    return Scan(table, fields, position)


def project(input_: Logical, exprs: Sequence[Expr], names: Sequence[str]) -> Project:
    """A projection; a time attribute that is passed on as it is stays one."""
    fields = tuple(Field(n, e.type, _time_of(e, input_)) for n, e in zip(names, exprs, strict=True))
    return Project(input_, tuple(exprs), fields)


def unique_names(names: Sequence[str | None]) -> list[str]:
    """Calcite's names for a select list: EXPR$0 for what has none, a0 for a second a."""
    found: list[str] = []
    for i, name in enumerate(names):
        wanted = f"EXPR${i}" if name is None else name
        candidates = chain((wanted,), (f"{wanted}{n}" for n in count()))
        found.append(next(c for c in candidates if c not in found))
    return found


def _time_of_column(table: Table, column: TableColumn) -> TimeAttribute:
    if table.watermark is not None and table.watermark.column == column.name:
        return "rowtime"
    return "proctime" if _is_proctime(column.expr) else None


def _time_of(expr: Expr, input_: Logical) -> TimeAttribute:
    if isinstance(expr, Column):
        return input_.fields[expr.index].time
    return "proctime" if _is_proctime(expr) else None


def _is_proctime(expr: Expr | None) -> bool:
    return isinstance(expr, Call) and expr.op == "PROCTIME"


def _over(node: Logical, scope: Scope) -> Scope:
    """The scope with the fields as the node gives them: padded sides are nullable."""
    relations = (
        replace(r, fields=node.fields[r.offset : r.offset + len(r.fields)]) for r in scope.relations
    )
    return replace(scope, relations=tuple(relations))


def _others(node: exp.Expr, known: Iterable[str]) -> list[str]:
    """Parts of a node that are there and not known: nothing may be ignored."""
    return [part for part, value in node.args.items() if value and part not in known]


def _other_name(node: exp.Expr) -> str:
    return type(node).__name__.upper()

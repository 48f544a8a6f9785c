"""Binds FROM: tables, views, subqueries, and the joins between them."""

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from spark_jobs.errors import CatalogError, SqlError
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import all_columns, project, scan
from spark_jobs.sql.bind.query.hints import TtlHints
from spark_jobs.sql.bind.query.laterals import bind_lateral
from spark_jobs.sql.bind.scope import Outer, Relation, Scope
from spark_jobs.sql.logical import Join, JoinType, Logical, Position
from spark_jobs.sql.parse.positions import others, start_of
from spark_jobs.sql.parse.source import NotBoundError, nearest
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.parse.syntax import TableFunction
from spark_jobs.sql.types.expr import Expr

if TYPE_CHECKING:
    from spark_jobs.sql.bind.query.queries import QueryBinder

Relations = tuple[Relation, ...]

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
_TABLE_PARTS = {"this", "alias", "version", "joins"}


class FromBinder:
    """Binds the FROM of one query block."""

    def __init__(self, query: "QueryBinder", hints: TtlHints) -> None:
        self.query = query
        self.source = query.source
        self.hints = hints
        outer = query.outer
        self.outer = None if outer is None else Outer(outer.scope, outer.refused_in or "FROM")

    def bind(self, first: exp.Expr, joins: list[exp.Expr]) -> tuple[Logical, Scope]:
        """The rows of FROM, and the names that the rest of the query sees."""
        node, relations = self._chain(first)
        for join in joins:
            node, relations = self._join(node, relations, join)
        return node, Scope(self.source, relations, self.query.outer)

    def scope(self, relations: Relations) -> Scope:
        """What ON and the arguments of a join see."""
        return Scope(self.source, relations, self.outer)

    def position(self, node: exp.Expr) -> Position:
        return Position(*self.source.position(start_of(node)))

    def table(self, name: Name) -> Logical:
        """A table or view by its name.

        Raises:
            PositionedError, NotBoundError: there is none.
        """
        names = self.query.names
        view = names.views.get(name.text)
        if view is not None:
            return view
        table = names.tables.get(name.text)
        if table is not None:
            return scan(table, Position(*self.source.position(name.start)))
        if name.text in self.source.broken:
            raise NotBoundError
        known = (*names.tables, *names.views)
        hint = nearest(name.text, known) or (
            "CREATE TABLE or CREATE VIEW must come before it is read"
        )
        error = CatalogError("UNKNOWN_TABLE", f"no table or view {name.text}", hint)
        raise self.source.place(error, name.start)

    def renamed(self, node: Logical, alias: exp.Expr | None) -> Logical:
        """The node with the column names that `AS t (a, b)` gives it."""
        renames = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if not renames:
            return node
        return renamed(self.query, node, [Name(c.name, start_of(c)) for c in renames])

    def _chain(self, first: exp.Expr, joined: bool = False) -> tuple[Logical, Relations]:
        """An element of FROM with the joins that are written inside of it.

        `joined` says that it stands alone behind JOIN, where it may have a version.
        """
        if first.args.get("version") is not None and (not joined or first.args.get("joins")):
            hint = "it stands behind the JOIN of one table with those to its left"
            self.query.refuse(first, "FOR SYSTEM_TIME AS OF outside of a JOIN", hint)
        node, relations = self._element(first)
        for join in first.args.get("joins") or []:
            node, relations = self._join(node, relations, join)
        return node, relations

    def _element(self, node: exp.Expr) -> tuple[Logical, Relations]:
        """A table, view, subquery or parenthesised join, its positions counted from 0."""
        name: str | None
        match node:
            case exp.Table():
                bound, name = self._table(node), node.alias or node.name
            case exp.Subquery(this=exp.Query() as inner) if not _is_join(inner):
                self.query.only(node, {"this", "alias", "joins"})
                bound, name = self.query.nested(self.outer).bind(inner), node.alias or None
            case exp.Subquery():
                self.query.only(node, {"this", "joins"})
                return self._chain(node.this)
            case exp.Values():
                self.query.refuse(node, "VALUES", "a query reads from a Kafka topic")
            case TableFunction():
                self.query.refuse(node, "LATERAL at the beginning of FROM")
            case exp.Unnest():
                self.query.refuse(node, "UNNEST")
            case _:
                self.query.refuse(node, type(node).__name__.upper())
        bound = self.renamed(bound, node.args.get("alias"))
        return bound, (Relation(name, bound.fields, 0),)

    def _table(self, node: exp.Table) -> Logical:
        if node.args.get("db"):
            what = "a table name with a catalog or database"
            self.query.refuse(node, what, "use the name alone: a job file has one name space")
        self.query.only(node, _TABLE_PARTS)
        if not isinstance(node.this, exp.Identifier):
            self.query.refuse(node, f"the table function {node.this.name.upper()}")
        return self.table(Name(node.name, start_of(node.this)))

    def _join(
        self, left: Logical, relations: Relations, node: exp.Expr
    ) -> tuple[Logical, Relations]:
        kind = self._kind(node)
        if isinstance(node.this, TableFunction):
            joined, right_relations = bind_lateral(self, left, relations, node, kind)
            return joined, _over(joined, (*relations, *right_relations))
        right, right_relations = self._chain(node.this, joined=True)
        both = (*relations, *_shifted(right_relations, len(left.fields)))
        version = node.this.args.get("version")
        as_of = None
        if version is not None:
            if version.args.get("kind") != "AS OF":
                self.query.refuse(node, "FOR SYSTEM_TIME with anything but AS OF")
            with self.source.collecting():
                as_of = ExpressionBinder(self.scope(relations)).bind(version.expression)
        needs_on = bool(node.args.get("side")) or version is not None
        condition = self.condition(node, both, needs_on)
        ttl = (None, None) if version else (self._ttl(relations), self._ttl(right_relations))
        position = self.position(node.this)
        joined = Join(left, right, kind, condition, as_of, position, ttl_ms=ttl)
        return joined, _over(joined, both)

    def condition(self, node: exp.Expr, both: Relations, needed: bool) -> Expr | None:
        """What ON says; None for a comma or CROSS JOIN."""
        on = node.args.get("on")
        if on is not None:
            with self.source.collecting():
                return ExpressionBinder(self.scope(both)).condition(on, "ON")
        elif node.args.get("kind") != "CROSS" and needed:
            error = SqlError("JOIN_WITHOUT_ON", "the join has no ON condition", "add ON ...")
            self.source.report(error, start_of(node.this))
        return None

    def _ttl(self, relations: Relations) -> int | None:
        """What a STATE_TTL hint says of a side that is one table."""
        alias = relations[0].alias if len(relations) == 1 else None
        return None if alias is None else self.hints.take(alias)

    def _kind(self, node: exp.Expr) -> JoinType:
        for part in others(node, _JOIN_PARTS):
            name = "NATURAL JOIN" if part == "method" else f"JOIN ... {part.upper()}"
            self.query.refuse(node.this, name, "write JOIN ... ON")
        side, kind = node.args.get("side") or "", node.args.get("kind") or ""
        join_type = _JOIN_KINDS.get((side, kind))
        if join_type is None:
            self.query.refuse(
                node.this, f"{side} {kind} JOIN".strip(), "write WHERE ... IN or EXISTS"
            )
        return join_type


def renamed(query: "QueryBinder", node: Logical, names: list[Name]) -> Logical:
    """The node with other column names, as `AS t (a, b)` and `CREATE VIEW v (a, b)` give."""
    if len(names) != len(node.fields):
        raise query.source.place(
            SqlError("COLUMN_COUNT", f"{len(names)} names for {len(node.fields)} columns"),
            names[0].start,
        )
    return project(node, all_columns(node), [n.text for n in names])


def _is_join(node: exp.Expr) -> bool:
    """Whether what stands in parentheses is a part of FROM and not a query."""
    return isinstance(node, exp.Subquery) and bool(node.args.get("joins") or node.alias)


def _shifted(relations: Relations, offset: int) -> Relations:
    return tuple(replace(r, offset=r.offset + offset) for r in relations)


def _over(node: Logical, relations: Relations) -> Relations:
    """The relations with the fields as the node gives them: padded sides are nullable."""
    return tuple(
        replace(r, fields=node.fields[r.offset : r.offset + len(r.fields)]) for r in relations
    )

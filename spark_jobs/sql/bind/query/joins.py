"""Binds FROM: tables, views, subqueries, and the joins between them."""

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.query.common_columns import common_columns, merged
from spark_jobs.sql.bind.query.constant_rows import bind_values
from spark_jobs.sql.bind.query.context import Block, QueryContext
from spark_jobs.sql.bind.query.hints import Hints
from spark_jobs.sql.bind.query.laterals import bind_lateral
from spark_jobs.sql.bind.query.relations import (
    Relations,
    aliased,
    join_scope,
    on_condition,
    over,
    shifted,
    table_or_view,
)
from spark_jobs.sql.bind.query.subquery.lateral_queries import bind_lateral_query
from spark_jobs.sql.bind.query.subquery.subqueries import bind_where
from spark_jobs.sql.bind.query.unnest import bind_unnest
from spark_jobs.sql.bind.query.version_lookups import refuse_version_lookup
from spark_jobs.sql.bind.scope import Relation, Scope
from spark_jobs.sql.logical import Join, JoinType, Logical
from spark_jobs.sql.parse.positions import others, start_of
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.parse.syntax import TableFunction
from spark_jobs.sql.types.expr import and_all

_JOIN_PARTS = {"this", "side", "kind", "on", "using", "method"}
_SIDES: dict[str, JoinType] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
_TABLE_PARTS = {"this", "alias", "version", "joins"}


class FromBinder:
    """Binds the FROM of one query block."""

    def __init__(self, context: QueryContext, hints: Hints) -> None:
        self.context = context
        self.source = context.source
        self.hints = hints

    def bind(self, first: exp.Expr, joins: list[exp.Expr]) -> tuple[Logical, Scope]:
        """The rows of FROM, and the names that the rest of the query sees."""
        node, relations = self._chain(first)
        for join in joins:
            node, relations = self._join(node, relations, join)
        return node, Scope(self.source, relations, self.context.outer)

    def _chain(self, first: exp.Expr, joined: bool = False) -> tuple[Logical, Relations]:
        """An element of FROM with the joins that are written inside it.

        `joined`: it is the right side of a JOIN, where FOR SYSTEM_TIME AS OF may stand.
        """
        if first.args.get("version") is not None and (not joined or first.args.get("joins")):
            hint = "write it after the joined table: JOIN t FOR SYSTEM_TIME AS OF x.time ON ..."
            self.context.refuse(first, "FOR SYSTEM_TIME AS OF here", hint)
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
                self.context.only(node, {"this", "alias", "joins"})
                nested = self.context.nested(self.context.outer_of_from)
                bound, name = nested.bind(inner), node.alias or None
            case exp.Subquery():
                self.context.only(node, {"this", "joins"})
                return self._chain(node.this)
            case exp.Values():
                bound, name = bind_values(self.context, node), node.alias or None
            case TableFunction() | exp.Lateral():
                self.context.refuse(node, "LATERAL at the beginning of FROM")
            case exp.Unnest():
                hint = "write it behind a table: FROM t CROSS JOIN UNNEST(t.c) AS u (x)"
                self.context.refuse(node, "UNNEST at the beginning of FROM", hint)
            case _:
                self.context.refuse(node, type(node).__name__.upper())
        bound = aliased(self.source, bound, node.args.get("alias"))
        return bound, (Relation(name, bound.fields, 0),)

    def _table(self, node: exp.Table) -> Logical:
        if node.args.get("db"):
            what = "a table name with a catalog or database"
            self.context.refuse(node, what, "use the table's name alone")
        self.context.only(node, _TABLE_PARTS)
        if not isinstance(node.this, exp.Identifier):
            self.context.refuse(node, f"the table function {node.this.name.upper()}")
        name = Name(node.name, start_of(node.this))
        return table_or_view(self.source, self.context.names, name)

    def _join(
        self, left: Logical, relations: Relations, node: exp.Expr
    ) -> tuple[Logical, Relations]:
        kind = self._kind(node)
        if isinstance(node.this, TableFunction):
            joined, right_relations = bind_lateral(self.context, left, relations, node, kind)
            return joined, over(joined, (*relations, *right_relations))
        if isinstance(node.this, exp.Lateral):
            return bind_lateral_query(self.context, left, relations, node, kind)
        if isinstance(node.this, exp.Unnest):
            return bind_unnest(self.context, left, relations, node, kind)
        right, right_relations = self._chain(node.this, joined=True)
        shifted_right = shifted(right_relations, len(left.fields))
        both = (*relations, *shifted_right)
        version = node.this.args.get("version")
        as_of = None
        if version is not None:
            scope = join_scope(self.context, relations)
            with self.source.collecting():
                as_of = ExpressionBinder(scope).bind(version.expression)
        common = common_columns(self.context, node, relations, shifted_right)
        subqueries: exp.Expr | None = None
        if kind == "inner" and as_of is None:
            subqueries = self._without_subqueries(node, ())
        elif as_of is None and kind in ("left", "right"):
            left, right = self._matching(node, kind, (left, relations), (right, right_relations))
        if common:
            condition = and_all(column.equal for column in common)
        else:
            needs_on = bool(node.args.get("side")) or version is not None
            condition = on_condition(self.context, node, both, needs_on)
        ttl = (None, None) if version else (self._ttl(relations), self._ttl(right_relations))
        position = self.context.position(node.this)
        joined = Join(
            left, right, kind, condition, as_of, position, None, ttl, self.hints.take_early_fire()
        )
        rows = joined if subqueries is None else self._filtered(joined, both, subqueries)
        return merged(rows, kind, over(rows, both), common)

    def _matching(
        self,
        node: exp.Expr,
        kind: JoinType,
        left: tuple[Logical, Relations],
        right: tuple[Logical, Relations],
    ) -> tuple[Logical, Logical]:
        """Both sides; what ON asks in subqueries of the side that is padded filters that side."""
        (kept, kept_names), (padded, names) = (left, right) if kind == "left" else (right, left)
        asked = self._without_subqueries(node, kept_names)
        if asked is not None:
            padded = self._filtered(padded, names, asked)
        return (kept, padded) if kind == "left" else (padded, kept)

    def _without_subqueries(self, node: exp.Expr, others: Relations) -> exp.Expr | None:
        """What ON has of subqueries that name none of the others.

        For an inner join that is as good as WHERE behind it.
        """
        on = node.args.get("on")
        if on is None or on.find(exp.Query) is None:
            return None
        refuse_version_lookup(self.source, self.context.names, on.find(exp.Select))
        parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
        taken = [p for p in parts if p.find(exp.Query) is not None and not _names(p, others)]
        if not taken:
            return None
        plain = [part for part in parts if part not in taken]
        node.set("on", exp.and_(*plain, copy=False) if plain else exp.true())
        return exp.and_(*taken, copy=False)

    def _filtered(self, rows: Logical, relations: Relations, condition: exp.Expr) -> Logical:
        context = self.context.nested(self.context.outer_of_from)
        block = Block(rows, join_scope(self.context, relations), ())
        return bind_where(context, condition, block, self.hints).rows

    def _ttl(self, relations: Relations) -> int | None:
        """The STATE_TTL hint of a side; None where the side is several tables."""
        alias = relations[0].alias if len(relations) == 1 else None
        return None if alias is None else self.hints.take(alias)

    def _kind(self, node: exp.Expr) -> JoinType:
        method = node.args.get("method") or ""
        for part in others(node, _JOIN_PARTS) or (
            [method] if method not in ("", "NATURAL") else []
        ):
            self.context.refuse(node.this, f"JOIN ... {part.upper()}", "write JOIN ... ON")
        side, kind = node.args.get("side") or "", node.args.get("kind") or ""
        known = ("", "OUTER") if side else ("", "INNER", "CROSS")
        join_type = _SIDES.get(side) if kind in known else None
        if join_type is None:
            name = f"{side} {kind} JOIN".strip()
            self.context.refuse(node.this, name, "write WHERE ... IN or EXISTS")
        return join_type


def _names(part: exp.Expr, relations: Relations) -> bool:
    """Whether a condition names columns of the relations; in its subqueries, by their aliases."""
    aliases = {relation.alias for relation in relations}
    fields = {field.name for relation in relations for field in relation.fields}
    outside = part.walk(prune=lambda node: isinstance(node, exp.Query))
    plain = {node.name for node in outside if isinstance(node, exp.Column) and not node.table}
    return bool(plain & fields) or any(c.table in aliases for c in part.find_all(exp.Column))


def _is_join(node: exp.Expr) -> bool:
    """Whether what stands in parentheses is a part of FROM and not a query."""
    return isinstance(node, exp.Subquery) and bool(node.args.get("joins") or node.alias)

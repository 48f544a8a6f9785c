"""Binds WHERE: subqueries in it become semi and anti joins over the rows of FROM."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from spark_jobs.sql.bind.expressions import COMPARISONS, ExpressionBinder
from spark_jobs.sql.bind.query.aggregates import is_aggregated
from spark_jobs.sql.bind.query.context import Block, QueryContext
from spark_jobs.sql.bind.query.hints import Hints
from spark_jobs.sql.bind.query.subquery.subquery_rows import (
    SubqueryRows,
    asks_for_rows,
    block,
    counted,
    is_one_row,
    rows_of,
    truth,
)
from spark_jobs.sql.bind.query.subquery.value_subqueries import ValueSubqueries
from spark_jobs.sql.bind.scope import Scope, mirrored
from spark_jobs.sql.logical import Filter, Join, JoinType, Logical
from spark_jobs.sql.parse.dialect import CONSTRUCTORS
from spark_jobs.sql.parse.syntax import TypedCast
from spark_jobs.sql.types.data_types import BOOLEAN, with_nullable
from spark_jobs.sql.types.expr import (
    FLIPPED,
    Call,
    Column,
    Expr,
    and_all,
    columns,
    conjuncts,
    transform,
)
from spark_jobs.sql.types.functions import GROUP_FUNCTIONS

_MIRRORED = FLIPPED | {"<>": "<>"}
_OPPOSITES: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def bind_where(context: QueryContext, node: exp.Expr, from_: Block, hints: Hints) -> Block:
    """The rows of FROM that pass WHERE, and the conditions that read the query around this one.

    Raises:
        NotBoundError: problems, which are reported to the source.
    """
    input_, scope = from_.rows, from_.scope
    if context.outer is None and node.find(exp.Query) is None:
        condition = ExpressionBinder(scope).condition(node, "WHERE")
        return replace(from_, rows=Filter(input_, condition))
    values = ValueSubqueries(context, scope, input_)
    binder = ExpressionBinder(scope, values.special)
    local: list[Expr] = []
    correlated: list[Expr] = []
    joins: list[tuple[exp.Expr, bool]] = []
    with context.source.all_or_nothing():
        for leaf, negated in _leaves(node, False):
            if _is_join(leaf):
                joins.append((leaf, negated))
                continue
            with context.source.collecting():
                values.prepare(leaf, not negated)
                bound = binder.condition(leaf, "WHERE")
                for part in conjuncts(binder.negated(bound) if negated else bound):
                    outside = any(i < 0 for i in columns((part,)))
                    (correlated if outside else local).append(part)
        own = and_all(local)
        input_ = values.rows if own is None else Filter(values.rows, own)
        semi_joins = _SemiJoins(context, scope, hints)
        for leaf, negated in joins:
            with context.source.collecting():
                input_ = semi_joins.bind(input_, leaf, negated)
    return replace(from_, rows=input_, correlated=tuple(correlated))


def _leaves(node: exp.Expr, negated: bool) -> Iterator[tuple[exp.Expr, bool]]:
    """The conditions that must hold together, NOT moved inward by De Morgan's laws."""
    match node:
        case exp.Paren():
            yield from _leaves(node.this, negated)
        case exp.Not():
            yield from _leaves(node.this, not negated)
        case exp.And() if not negated:
            yield from _leaves(node.this, False)
            yield from _leaves(node.expression, False)
        case exp.Or() if negated:
            yield from _leaves(node.this, True)
            yield from _leaves(node.expression, True)
        case exp.EQ(expression=exp.Any()):
            yield _in(node), negated
        case exp.NEQ(expression=exp.All()):
            yield _in(node), not negated
        case exp.Binary(expression=exp.All(this=query)) if type(node) in _OPPOSITES:
            yield (
                _OPPOSITES[type(node)](this=node.this, expression=exp.Any(this=query)),
                not negated,
            )
        case exp.Anonymous(expressions=[exp.Subquery()]) if node.name.upper() == "EXISTS":
            yield exp.Exists(this=node.expressions[0]), negated
        case _:
            yield node, negated


def _in(node: exp.Expr) -> exp.Expr:
    """`x = ANY (SELECT ...)` as `x IN (SELECT ...)`."""
    return exp.In(this=node.this, query=node.expression.this)


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A comparison with a scalar subquery; `is_behind`: the query is its right side."""

    other: exp.Expr
    query: exp.Select
    is_behind: bool


@dataclass(frozen=True, slots=True)
class _SemiJoins:
    """Turns the subquery predicates of one WHERE into joins."""

    context: QueryContext
    scope: Scope
    hints: Hints

    def bind(self, left: Logical, node: exp.Expr, negated: bool) -> Logical:
        """The rows of `left` for which the predicate holds."""
        match node:
            case exp.Exists():
                rows = rows_of(self.context, self.scope, node.this)
                if rows.without != "nothing":
                    self._refuse_empty(node, "EXISTS")
                return self._join(left, rows, rows.conditions, node, negated)
            case exp.In() if node.args.get("query") is not None:
                return self._some(left, "=", node.args["query"], node, negated)
            case exp.Binary(expression=exp.Any(this=query)):
                return self._some(left, COMPARISONS[type(node)], query, node, negated)
            case _ if (scalar := _scalar(node)) is not None:
                return self._compared(left, node, scalar, negated)
            case _:
                raise AssertionError(node)

    def _some(
        self, left: Logical, op: str, query: exp.Expr, node: exp.Expr, negated: bool
    ) -> Logical:
        """`x IN (query)`, `x op ANY (query)`."""
        value = node.this
        is_row = isinstance(value, exp.Anonymous) and value.name == CONSTRUCTORS[TokenType.ROW]
        values = value.expressions if is_row or isinstance(value, exp.Tuple) else [value]
        rows = rows_of(self.context, self.scope, query)
        if rows.without in ("zero", "computed") or (rows.without == "null" and negated):
            self._refuse_empty(node, "NOT IN" if negated else "IN")
        if len(values) != len(rows.items):
            message = f"IN compares {len(values)} values with {len(rows.items)} columns"
            self.context.at.fail("COLUMN_COUNT", message, node)
        binder = ExpressionBinder(self.scope)
        terms = [
            self._compares(binder, op, self._outside(binder.bind(v), v), item, node, negated)
            for v, item in zip(values, rows.items, strict=True)
        ]
        return self._join(left, rows, (*rows.conditions, *terms), node, negated)

    def _compares(
        self,
        binder: ExpressionBinder,
        op: str,
        value: Expr,
        item: Expr,
        node: exp.Expr,
        negated: bool,
    ) -> Expr:
        """The comparison of IN; for NOT IN also what is neither true nor false: NULL."""
        found = binder.compared(op, value, item, node)
        unknown = [_is("IS NULL", side) for side in (value, item) if side.type.nullable]
        return Call("OR", (found, *unknown), found.type) if negated and unknown else found

    def _compared(self, left: Logical, node: exp.Expr, scalar: _Scalar, negated: bool) -> Logical:
        """A comparison with the one value that an aggregate without GROUP BY gives."""
        op = COMPARISONS[type(node)]
        other, select, flipped = scalar.other, scalar.query, scalar.is_behind
        asked = _MIRRORED.get(op, op) if flipped else op
        number = other.name if isinstance(other, exp.Literal) and not other.is_string else ""
        some = asks_for_rows(asked, number)
        values = counted(select)
        if values is not None and some is not None:
            rows = block(self.context, self.scope, select, values)
            known = [_is("IS NOT NULL", item) for item in rows.items if item.type.nullable]
            return self._join(left, rows, (*rows.conditions, *known), node, negated == some)
        if not is_one_row(select):
            hint = (
                "compare with an aggregate without GROUP BY, which is one value, LIMIT 1, or JOIN"
            )
            self.context.at.refuse(node, "a scalar subquery of several rows", hint)
        rows = rows_of(self.context, self.scope, select, left)
        if len(rows.items) != 1:
            message = f"a scalar subquery must have one column, found {len(rows.items)}"
            self.context.at.fail("COLUMN_COUNT", message, node)
        binder = ExpressionBinder(self.scope)
        value = self._outside(binder.bind(other), other)
        pair = (value, rows.items[0]) if flipped else (rows.items[0], value)
        found = binder.compared(op, *pair, node)
        empty = truth(asked, number, 0) if rows.without == "zero" else False
        if empty is None or (rows.without == "null" and asked not in _MIRRORED):
            self._refuse_empty(node, op)
        # true without any inner row: then there must be no inner row for which it fails
        holds = rows.without == "zero" and empty != negated
        wanted = binder.negated(found) if negated != holds else found
        return self._join(left, rows, (*rows.conditions, wanted), node, holds)

    def _outside(self, expr: Expr, node: exp.Expr) -> Expr:
        """An expression of this query as its subqueries see it."""
        if any(index < 0 for index in columns((expr,))):
            self.context.refuse(node, "a column of the outer query in a subquery of a subquery")
        return mirrored(expr)

    def _join(
        self,
        left: Logical,
        rows: SubqueryRows,
        conditions: Sequence[Expr],
        node: exp.Expr,
        negated: bool,
    ) -> Logical:
        width = len(left.fields)

        def placed(column: Column) -> Column:
            index = column.index + width if column.index >= 0 else -1 - column.index
            return Column(index, column.name, column.type)

        parts = [transform(part, placed) for c in conditions for part in conjuncts(c)]
        kind: JoinType = "anti" if negated else "semi"
        position = self.context.position(node)
        alias = self.scope.relations[0].alias if len(self.scope.relations) == 1 else None
        ttl_ms = (None if alias is None else self.hints.take(alias), None)
        return Join(left, rows.input, kind, and_all(parts), None, position, ttl_ms=ttl_ms)

    def _refuse_empty(self, node: exp.Expr, what: str) -> NoReturn:
        """An aggregate without GROUP BY has a row even for no rows; a join cannot give that one."""
        hint = "add GROUP BY to the subquery, which leaves that row out"
        name = f"{what} with a correlated aggregate, which has a row even for no rows,"
        self.context.at.refuse(node, name, hint)


def _is_join(node: exp.Expr) -> bool:
    """Whether a condition is IN, EXISTS or a comparison with one subquery: a join decides it."""
    match node:
        case exp.Exists():
            return True
        case exp.Binary(expression=exp.Any()) if type(node) in COMPARISONS:
            return node.this.find(exp.Query) is None
        case exp.In():
            return node.args.get("query") is not None and node.this.find(exp.Query) is None
        case _:
            return _scalar(node) is not None


def _scalar(node: exp.Expr) -> _Scalar | None:
    """The sides of a comparison with one subquery; None for anything else."""
    if type(node) not in COMPARISONS:
        return None
    sides = [_bare(node.this), _bare(node.expression)]
    is_behind = isinstance(sides[1], exp.Subquery)
    other, subquery = sides if is_behind else reversed(sides)
    query = subquery.this if isinstance(subquery, exp.Subquery) else None
    if not isinstance(query, exp.Select) or other.find(exp.Query) is not None:
        return None
    if is_aggregated(query) and not _is_strict(query):
        return None
    return _Scalar(other, query, is_behind)


def _is_strict(query: exp.Select) -> bool:
    """Whether an aggregate is a function, or computed of functions that are NULL for no rows.

    Anything else is a value also where the query around it finds no rows: no join has that row.
    """
    if len(query.expressions) != 1:
        return True
    item = query.expressions[0]
    item = item.this if isinstance(item, exp.Alias) else item
    if isinstance(item, exp.Anonymous):
        return item.name.upper() in GROUP_FUNCTIONS
    around = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Paren, exp.Neg, TypedCast)
    inner = item.walk(prune=lambda n: isinstance(n, exp.Anonymous))
    parts = [n for n in inner if not isinstance(n, (*around, exp.Literal))]
    names = [n.name.upper() if isinstance(n, exp.Anonymous) else "" for n in parts]
    return all(name in GROUP_FUNCTIONS and name != "COUNT" for name in names)


def _is(op: str, expr: Expr) -> Expr:
    return Call(op, (expr,), with_nullable(BOOLEAN, False))


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren) or (
        isinstance(node, exp.Subquery) and isinstance(node.this, exp.Subquery)
    ):
        node = node.this
    return node

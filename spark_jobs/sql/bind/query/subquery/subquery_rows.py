"""Takes subqueries apart: their rows, and the conditions that read the outer query as well."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Literal, NamedTuple

from sqlglot import exp

from spark_jobs.sql.bind.casts import cast
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project, unique_names
from spark_jobs.sql.bind.query.aggregates import is_aggregated
from spark_jobs.sql.bind.query.context import Block, QueryContext
from spark_jobs.sql.bind.query.limits import Limited, is_limited
from spark_jobs.sql.bind.query.relations import Relations, shifted
from spark_jobs.sql.bind.query.select_lists import grouped, select_items
from spark_jobs.sql.bind.query.subquery.outer_values import with_outer_values
from spark_jobs.sql.bind.query.version_lookups import refuse_version_lookup
from spark_jobs.sql.bind.query.with_clauses import with_queries
from spark_jobs.sql.bind.scope import Outer, Scope, mirrored
from spark_jobs.sql.logical import Logical, Rank, all_columns, column
from spark_jobs.sql.types.data_types import BIGINT, BOOLEAN, with_nullable
from spark_jobs.sql.types.expr import COMPARED, Call, Column, Expr, columns, predicate, walk
from spark_jobs.sql.types.expr import Literal as Constant

_CORRELATED = "a correlated aggregate"
# operators that give NULL for NULL
_STRICT = ("+", "-", "*", "/", "%", "CAST")


@dataclass(frozen=True, slots=True)
class SubqueryRows:
    """A subquery; conditions and items are over its input and, mirrored, the outer query.

    `names` are those of the items, None for one without a name.
    `counts` are the columns of the input that COUNT gives, where such a row has 0 instead of NULL.

    `without` is what an outer row without inner rows gets: nothing, or the one row of an aggregate
    without GROUP BY, which holds NULL, 0 or what is computed of them. A join has no such row.
    """

    input: Logical
    conditions: tuple[Expr, ...]
    items: tuple[Expr, ...]
    names: tuple[str | None, ...]
    without: Literal["nothing", "null", "zero", "computed"] = "nothing"
    counts: frozenset[int] = frozenset()


def rows_of(
    context: QueryContext, scope: Scope, query: exp.Expr, outer: Logical | None = None
) -> SubqueryRows:
    """A subquery of a query with that scope.

    `outer` are the rows of that query, where the scope's columns are the first of theirs.
    """
    node = bare(context, query)
    context = with_queries(context, node)
    if isinstance(node, exp.Select) and is_limited(node):
        return _first_rows(context, scope, node)
    if isinstance(node, exp.Select) and is_aggregated(node):
        return _groups(context, scope, node, outer)
    whole = None if isinstance(node, exp.Select) else "a set operation"
    if whole is None and any(item.find(exp.Window) for item in node.expressions):
        whole = "OVER"
    if whole is None and isinstance(node, exp.Select):
        return block(context, scope, node, node.expressions)
    bound = context.nested(Outer(scope, whole)).bind(node)
    return SubqueryRows(bound, (), all_columns(bound), tuple(f.name for f in bound.fields))


def bare(context: QueryContext, node: exp.Expr) -> exp.Expr:
    """The query without the parentheses around it."""
    while isinstance(node, exp.Subquery):
        context.only(node, {"this"})
        node = node.this
    return node


def block(
    context: QueryContext, scope: Scope, node: exp.Select, items: Sequence[exp.Expr]
) -> SubqueryRows:
    """FROM, WHERE and select list; duplicate rows change neither IN nor EXISTS."""
    inner = context.nested(Outer(scope))
    with context.source.all_or_nothing():
        found = inner.bind_block(node)
        bound = select_items(inner, items, found.scope, ExpressionBinder(found.scope))
    names = tuple(name for name, _, _ in bound)
    return SubqueryRows(found.rows, found.correlated, tuple(e for _, e, _ in bound), names)


def _first_rows(context: QueryContext, scope: Scope, node: exp.Select) -> SubqueryRows:
    """ORDER BY and LIMIT: the first rows for each value that the outer query is compared with."""
    if is_aggregated(node) or node.args.get("distinct") is not None:
        hint = "group in a subquery of its FROM"
        context.refuse(node, "LIMIT beside groups or DISTINCT in a subquery", hint)
    asked = Limited.of(context, node)
    select = asked.query
    if not isinstance(select, exp.Select):
        raise TypeError(f"LIMIT of {type(select).__name__}")
    rows = block(context, scope, select, select.expressions)
    given, equal = with_keys(context, node, rows, "LIMIT in a subquery")
    width = len(rows.items) - asked.added
    by = tuple(range(len(rows.items), len(given.fields)))
    order = asked.sort_keys(given, width)
    position = context.position(node)
    ranked = Rank(given, by, order, asked.first, asked.last, None, position)
    return SubqueryRows(ranked, equal, all_columns(ranked)[:width], rows.names[:width])


def with_keys(
    context: QueryContext, node: exp.Select, rows: SubqueryRows, what: str
) -> tuple[Logical, tuple[Expr, ...]]:
    """The items, what the outer query is compared with behind them, and the equalities."""
    own_items(context, node, rows.items)
    pairs = [equal_pair(context, node, condition, what) for condition in rows.conditions]
    keys = [pair.inner for pair in pairs]
    names = unique_names([*rows.names, *(None for _ in keys)])
    given = project(rows.input, [*rows.items, *keys], names)
    equal = tuple(
        predicate("=", (column(given.fields, len(rows.items) + i), pair.outer))
        for i, pair in enumerate(pairs)
    )
    return given, equal


def own_items(context: QueryContext, node: exp.Expr, items: Sequence[Expr]) -> None:
    """Refuse items that read the outer query."""
    if any(index < 0 for index in columns(items)):
        hint = "compute with it outside of the subquery"
        context.at.refuse(node, "a column of the outer query in what is selected", hint)


def or_zero(value: Expr) -> Expr:
    """What COUNT gives for no rows."""
    zero = cast(Constant(0, with_nullable(BIGINT, False)), value.type)
    return Call("COALESCE", (value, zero), with_nullable(value.type, False))


def is_one_row(node: exp.Expr) -> bool:
    """Whether a query has one row at most, as one that is a value has to."""
    if not isinstance(node, exp.Select):
        return False
    limit = node.args.get("limit")
    if limit is not None:
        number = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
        return isinstance(number, exp.Literal) and number.name == "1"
    if is_aggregated(node):
        return node.args.get("group") is None
    return node.args.get("from_") is None


def truth(op: str, number: str, counted: int) -> bool | None:
    """`counted op number`; None if the text is no number."""
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    return COMPARED[op](counted, value) if op in COMPARED else None


def asks_for_rows(op: str, number: str) -> bool | None:
    """Whether `COUNT(*) op number` means that there is a row (True) or none (False).

    None if it means neither: a comparison that is true for 1 must be true for every greater count.
    """
    empty, one = truth(op, number, 0), truth(op, number, 1)
    more = truth(op, number, max(int(Decimal(number)), 1) + 1) if one is not None else None
    if empty is None or empty == one or one != more:
        return None
    return one


def counted(node: exp.Select) -> list[exp.Expr] | None:
    """What `SELECT COUNT(...)` without groups counts, nothing for *; None for other queries."""
    if node.args.get("group") or node.args.get("having") or len(node.expressions) != 1:
        return None
    item = node.expressions[0]
    item = item.this if isinstance(item, exp.Alias) else item
    is_count = isinstance(item, exp.Anonymous) and item.name.upper() == "COUNT"
    if not is_count or len(item.expressions) != 1 or isinstance(item.expressions[0], exp.Distinct):
        return None
    return [] if isinstance(item.expressions[0], exp.Star) else item.expressions


def _groups(
    context: QueryContext, scope: Scope, node: exp.Select, outer: Logical | None
) -> SubqueryRows:
    """Groups: what equals a column of the outer query becomes one more key."""
    inner = context.nested(Outer(scope))
    with context.source.all_or_nothing():
        found = inner.bind_block(node)
        given, relations, pairs = _keyed(context, node, found, outer)
        inside = replace(found.scope, relations=relations, outer=Outer(scope, _CORRELATED))
        keys = [pair.inner for pair in pairs]
        rows, grouping, listed = grouped(inner, node, given, inside, keys)
    names, items = tuple(n for n, _ in listed), tuple(e for _, e in listed)
    equal = tuple(_equal(grouping.key(pair.inner), pair) for pair in pairs)
    if not equal or node.args.get("group") is not None:
        return SubqueryRows(rows, equal, items, names)
    if node.args.get("having") is not None:
        context.at.refuse(node, f"{_CORRELATED} with HAVING", "write its condition outside")
    read = [e for item in items for e in walk(item) if isinstance(e, Column)]
    counts = frozenset(c.index for c in read if grouping.call(c).function == "COUNT")
    found_rows = SubqueryRows(rows, equal, items, names, "computed", counts)
    if not counts and all(map(_is_strict, items)):
        return replace(found_rows, without="null")
    if all(isinstance(item, Column) and item.index in counts for item in items):
        return replace(found_rows, without="zero")
    return found_rows


class Pair(NamedTuple):
    """What is equal: an expression over a subquery, and one over the query around it, mirrored."""

    inner: Expr
    outer: Expr
    op: str = "="


def _keyed(
    context: QueryContext, node: exp.Select, found: Block, outer: Logical | None
) -> tuple[Logical, Relations, list[Pair]]:
    """The rows that are grouped, their relations, and what is equal to the outer query."""
    if outer is None or all(_pair(condition) for condition in found.correlated):
        pairs = [equal_pair(context, node, c, _CORRELATED) for c in found.correlated]
        return found.rows, found.scope.relations, pairs
    refuse_version_lookup(context.source, context.names, node)
    rows, values = with_outer_values(context, node, outer, found.rows, found.correlated)
    pairs = [
        Pair(column(rows.fields, i), mirrored(value), "IS NOT DISTINCT FROM")
        for i, value in enumerate(values)
    ]
    return rows, shifted(found.scope.relations, len(values)), pairs


def equal_pair(context: QueryContext, node: exp.Expr, condition: Expr, what: str) -> Pair:
    """The inner and the outer side of an equality between them, which `what` needs."""
    found = _pair(condition)
    if found is not None:
        return found
    refuse_version_lookup(context.source, context.names, node)
    hint = "compare columns of the subquery only by = with columns of the outer query"
    context.at.refuse(node, f"{what} with another condition than =", hint)


def _pair(condition: Expr) -> Pair | None:
    match condition:
        case Call(op="=", args=(left, right)):
            for inner, outside in ((left, right), (right, left)):
                own, others = columns((inner,)), columns((outside,))
                if min(own, default=-1) >= 0 > max(others, default=0):
                    return Pair(inner, outside)
    return None


def _equal(key: Expr, pair: Pair) -> Expr:
    if pair.op == "=":
        return predicate("=", (key, pair.outer))
    return Call(pair.op, (key, pair.outer), with_nullable(BOOLEAN, False))


def _is_strict(expr: Expr) -> bool:
    """Whether an expression over aggregates is NULL where they are."""
    match expr:
        case Column():
            return True
        case Call(op=op, args=args) if op in _STRICT:
            return any(map(_is_strict, args))
        case _:
            return False

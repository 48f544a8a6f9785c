"""Takes subqueries apart: their rows, and the conditions that read the outer query as well."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Literal

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.query.aggregates import is_aggregated
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.select_lists import grouped, select_items
from spark_jobs.sql.bind.query.version_lookups import refuse_version_lookup
from spark_jobs.sql.bind.query.with_clauses import with_queries
from spark_jobs.sql.bind.scope import Outer, Scope
from spark_jobs.sql.logical import Logical, all_columns
from spark_jobs.sql.types.expr import COMPARED, Call, Column, Expr, columns, walk

_CORRELATED = "a correlated aggregate"
# operators that give NULL for NULL
_STRICT = ("+", "-", "*", "/", "%", "CAST")


@dataclass(frozen=True, slots=True)
class SubqueryRows:
    """A subquery; conditions and items are over its input and, mirrored, the outer query.

    `without` is what an outer row without inner rows gets: nothing, or the one row of an aggregate
    without GROUP BY, which holds NULL or 0. A join has no such row.
    """

    input: Logical
    conditions: tuple[Expr, ...]
    items: tuple[Expr, ...]
    without: Literal["nothing", "null", "zero"] = "nothing"


def rows_of(context: QueryContext, scope: Scope, node: exp.Expr) -> SubqueryRows:
    """A subquery of a query with that scope."""
    while isinstance(node, exp.Subquery):
        context.only(node, {"this"})
        node = node.this
    context = with_queries(context, node)
    if isinstance(node, exp.Select) and is_aggregated(node):
        return _groups(context, scope, node)
    whole = None if isinstance(node, exp.Select) else "a set operation"
    if whole is None and any(item.find(exp.Window) for item in node.expressions):
        whole = "OVER"
    if whole is None and isinstance(node, exp.Select):
        return block(context, scope, node, node.expressions)
    bound = context.nested(Outer(scope, whole)).bind(node)
    return SubqueryRows(bound, (), all_columns(bound))


def block(
    context: QueryContext, scope: Scope, node: exp.Select, items: Sequence[exp.Expr]
) -> SubqueryRows:
    """FROM, WHERE and select list; duplicate rows change neither IN nor EXISTS."""
    inner = context.nested(Outer(scope))
    with context.source.all_or_nothing():
        found = inner.bind_block(node)
        bound = select_items(inner, items, found.scope, ExpressionBinder(found.scope))
    return SubqueryRows(found.rows, found.correlated, tuple(e for _, e, _ in bound))


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


def _groups(context: QueryContext, scope: Scope, node: exp.Select) -> SubqueryRows:
    """Groups: what equals a column of the outer query becomes one more key."""
    inner = context.nested(Outer(scope))
    with context.source.all_or_nothing():
        found = inner.bind_block(node)
        pairs = [_pair(context, node, condition) for condition in found.correlated]
        inside = replace(found.scope, outer=Outer(scope, _CORRELATED))
        keys = [key for key, _ in pairs]
        rows, grouping, listed = grouped(inner, node, found.rows, inside, keys)
    items = tuple(e for _, e in listed)
    conditions = zip(pairs, found.correlated, strict=True)
    equal = tuple(Call("=", (grouping.key(k), o), c.type) for (k, o), c in conditions)
    if not equal or node.args.get("group") is not None:
        return SubqueryRows(rows, equal, items)
    if node.args.get("having") is None and all(map(_is_strict, items)):
        read = [e for item in items for e in walk(item) if isinstance(e, Column)]
        functions = {grouping.call(column).function for column in read}
        if "COUNT" not in functions:
            return SubqueryRows(rows, equal, items, "null")
        if all(isinstance(item, Column) for item in items) and functions == {"COUNT"}:
            return SubqueryRows(rows, equal, items, "zero")
    hint = "compare with SUM, MIN, MAX, AVG or COUNT alone, without HAVING"
    context.at.refuse(node, _CORRELATED, hint)


def _pair(context: QueryContext, node: exp.Expr, condition: Expr) -> tuple[Expr, Expr]:
    """The inner and the outer side of an equality between them."""
    match condition:
        case Call(op="=", args=(left, right)):
            for inner, outside in ((left, right), (right, left)):
                own, others = columns((inner,)), columns((outside,))
                if min(own, default=-1) >= 0 > max(others, default=0):
                    return inner, outside
    refuse_version_lookup(context.source, context.names, node)
    hint = "compare columns of the subquery only by = with columns of the outer query"
    context.at.refuse(node, f"{_CORRELATED} with another condition than =", hint)


def _is_strict(expr: Expr) -> bool:
    """Whether an expression over aggregates is NULL where they are."""
    match expr:
        case Column():
            return True
        case Call(op=op, args=args) if op in _STRICT:
            return any(map(_is_strict, args))
        case _:
            return False

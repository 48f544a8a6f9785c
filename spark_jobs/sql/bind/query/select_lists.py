"""Binds select lists: the columns that each element stands for, and GROUP BY and HAVING."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder, Special
from spark_jobs.sql.bind.query.aggregates import Grouping
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.grouping_sets import groups_of
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import Filter, Logical
from spark_jobs.sql.parse.positions import name_path, others, start_of
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.types.expr import Expr

# one column of a select list: its name, what it is, and the element that it comes from
Item = tuple[str | None, Expr, exp.Expr]


def select_items(
    context: QueryContext, nodes: Sequence[exp.Expr], scope: Scope, binder: ExpressionBinder
) -> list[Item]:
    """A select list; problems are reported to the source."""
    found: list[Item] = []
    for item in nodes:
        with context.source.collecting():
            found += ((n, e, item) for n, e in _columns_of(context, item, scope, binder))
    return found


class Values(Protocol):
    """Subqueries as values: columns that `rows` gets when they are prepared."""

    rows: Logical

    def prepare(self, node: exp.Expr, unknown_is_false: bool = False) -> None: ...

    def special(self, node: exp.Expr) -> Expr | None: ...


Subqueries: TypeAlias = Callable[[Logical, Grouping], Values]
"""The values over the rows of groups."""


def grouped(
    context: QueryContext,
    node: exp.Select,
    input_: Logical,
    scope: Scope,
    hidden: Sequence[Expr],
    subqueries: Subqueries | None = None,
) -> tuple[Logical, Grouping, list[tuple[str | None, Expr]]]:
    """GROUP BY, HAVING and the select list over it; problems are reported to the source."""
    groups = groups_of(scope, node)
    if hidden and not groups.is_plain:
        context.refuse(node, "GROUP BY of several sets in a correlated subquery")
    grouping = Grouping(scope, len(input_.fields), groups, hidden)
    having = None if node.args.get("having") is None else node.args["having"].this
    position = context.position(node.args.get("group") or node)
    special: Special = grouping.bind
    values: Values | None = None
    if subqueries is not None and (own := _with_subqueries(node.expressions, having)):
        for item in own:
            grouping.bind_calls(item)
        values = subqueries(grouping.rows(input_, position), grouping)
        for item in own:
            values.prepare(item, item is having)
        special = _or_value(grouping, values)
    binder = ExpressionBinder(scope, special)
    bound = select_items(context, node.expressions, scope, binder)
    condition: Expr | None = None
    if having is not None:
        with context.source.collecting():
            found = binder.condition(having, "HAVING")
            condition = grouping.over(found, having)
    items: list[tuple[str | None, Expr]] = []
    for name, expr, item in bound:
        with context.source.collecting():
            items.append((name, grouping.over(expr, item)))
    rows = grouping.rows(input_, position) if values is None else values.rows
    return rows if condition is None else Filter(rows, condition), grouping, items


def _with_subqueries(items: Sequence[exp.Expr], having: exp.Expr | None) -> list[exp.Expr]:
    """All expressions over groups, if a subquery stands in one of them."""
    own = [*items, *([] if having is None else [having])]
    return own if any(item.find(exp.Query) is not None for item in own) else []


def _or_value(grouping: Grouping, values: Values) -> Special:
    """An aggregate function, or a subquery, as a column."""

    def special(node: exp.Expr) -> Expr | None:
        value = values.special(node)
        return grouping.bind(node) if value is None else grouping.value(value)

    return special


def _columns_of(
    context: QueryContext, node: exp.Expr, scope: Scope, binder: ExpressionBinder
) -> Iterator[tuple[str | None, Expr]]:
    """The columns that one element of the select list stands for; None is an unnamed one."""
    if isinstance(node, exp.Star):
        _check_star(context, node)
        yield from ((c.name, c) for c in scope.columns_of(None))
    elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        _check_star(context, node.this)
        alias = node.args["table"]
        name = Name(alias.name, start_of(alias))
        yield from ((c.name, c) for c in scope.columns_of(name))
    elif isinstance(node, exp.Alias):
        yield node.alias, binder.bind(node.this)
    else:
        expr = binder.bind(node)
        parts, _ = name_path(node)
        yield (parts[-1].text if parts else None), expr


def _check_star(context: QueryContext, node: exp.Expr) -> None:
    if others(node, set()):
        context.refuse(node, "* with EXCEPT, REPLACE or RENAME", "name the columns")

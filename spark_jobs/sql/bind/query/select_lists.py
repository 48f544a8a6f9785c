"""Binds select lists: the columns that each element stands for, and GROUP BY and HAVING."""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.query.aggregates import Grouping, group_keys
from spark_jobs.sql.bind.query.context import QueryContext
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


def grouped(
    context: QueryContext, node: exp.Select, input_: Logical, scope: Scope, hidden: Sequence[Expr]
) -> tuple[Logical, Grouping, list[tuple[str | None, Expr]]]:
    """GROUP BY, HAVING and the select list over it; problems are reported to the source."""
    grouping = Grouping(scope, len(input_.fields), group_keys(scope, node), hidden)
    binder = ExpressionBinder(scope, grouping.bind)
    bound = select_items(context, node.expressions, scope, binder)
    having = node.args.get("having")
    condition: Expr | None = None
    if having is not None:
        with context.source.collecting():
            found = binder.condition(having.this, "HAVING")
            condition = grouping.over(found, having.this)
    items: list[tuple[str | None, Expr]] = []
    for name, expr, item in bound:
        with context.source.collecting():
            items.append((name, grouping.over(expr, item)))
    rows: Logical = grouping.rows(input_, context.position(node.args.get("group") or node))
    return rows if condition is None else Filter(rows, condition), grouping, items


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

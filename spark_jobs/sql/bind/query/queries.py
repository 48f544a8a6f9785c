"""Binds whole queries: FROM, WHERE, groups and the select list become logical nodes."""

from functools import partial

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.namespace import Namespace
from spark_jobs.sql.bind.projections import project, unique_names
from spark_jobs.sql.bind.query.aggregates import is_aggregated
from spark_jobs.sql.bind.query.constant_rows import bind_values, one_row
from spark_jobs.sql.bind.query.context import Block, QueryContext
from spark_jobs.sql.bind.query.hints import Hints, read_hints
from spark_jobs.sql.bind.query.joins import FromBinder
from spark_jobs.sql.bind.query.limits import first_rows, is_limited
from spark_jobs.sql.bind.query.rankings import Ranking
from spark_jobs.sql.bind.query.select_lists import grouped, select_items
from spark_jobs.sql.bind.query.set_operations import bind_set_operation, distinct
from spark_jobs.sql.bind.query.subquery.subqueries import bind_where
from spark_jobs.sql.bind.query.subquery.value_subqueries import ValueSubqueries
from spark_jobs.sql.bind.query.with_clauses import with_queries
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import Aggregate, Logical
from spark_jobs.sql.parse.positions import others
from spark_jobs.sql.parse.source_text import SourceText

_SELECT_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "hint"}


def bind_node(source: SourceText, names: Namespace, node: exp.Expr) -> Logical:
    """The logical plan of a query over the tables and views of one job file.

    Raises:
        PositionedError: a problem that ended the work; others are reported to the source.
        NotBoundError: only reported problems.
    """
    return QueryContext(source, names, _query, _block).bind(node)


def _query(context: QueryContext, node: exp.Expr) -> Logical:
    context = with_queries(context, node)
    if is_limited(node):
        return first_rows(context, node, _query)
    match node:
        case exp.Select():
            return _select(context, node)
        case exp.Subquery() if not others(node, {"this", "alias"}):
            return context.bind(node.this)
        case exp.SetOperation():
            return bind_set_operation(context, node)
        case exp.Values():
            return bind_values(context, node)
        case _:
            context.refuse(node, type(node).__name__.upper())


def _block(context: QueryContext, node: exp.Select) -> Block:
    source = context.source
    for part in others(node, _SELECT_PARTS):
        source.problems.append(context.unsupported_part(node, part))
    hints = Hints(source)
    with source.collecting():
        hints = read_hints(source, node.args.get("hint"))
    found = Block(*_from(context, node, hints), ())
    where = node.args.get("where")
    if where is not None:
        with source.collecting():
            found = bind_where(context, where.this, found, hints)
    aliases = [r.alias for r in found.scope.relations if r.alias]
    hints.check(aliases, is_aggregated(node) or node.args.get("distinct") is not None)
    return found


def _from(context: QueryContext, node: exp.Select, hints: Hints) -> tuple[Logical, Scope]:
    """The rows of FROM, or the one row of a query without it."""
    from_ = node.args.get("from_")
    if from_ is not None:
        return FromBinder(context, hints).bind(from_.this, node.args.get("joins") or [])
    if any(isinstance(item, exp.Star) for item in node.expressions):
        context.refuse(node, "* without FROM", "name a table in FROM")
    return one_row(context.position(node)), Scope(context.source, (), context.outer)


def _select(context: QueryContext, node: exp.Select) -> Logical:
    with context.source.all_or_nothing():
        # no condition is left over: what is bound whole may not read the query around it
        block = context.bind_block(node)
        input_, scope = block.rows, block.scope
        if is_aggregated(node):
            values_of_groups = partial(ValueSubqueries.of_groups, context, scope)
            input_, _, items = grouped(context, node, input_, scope, (), values_of_groups)
        else:
            values = ValueSubqueries(context, scope, input_)
            for item in node.expressions:
                values.prepare(item)
            input_ = values.rows
            ranking = Ranking(scope, len(input_.fields))
            binder = ExpressionBinder(scope, lambda e: values.special(e) or ranking.bind(e))
            bound = select_items(context, node.expressions, scope, binder)
            input_ = ranking.rows(input_)
            items = [(name, ranking.over(expr)) for name, expr, _ in bound]
    names = unique_names([n for n, _ in items])
    projected = project(input_, [e for _, e in items], names)
    return projected if node.args.get("distinct") is None else _distinct(context, node, projected)


def _distinct(context: QueryContext, node: exp.Select, projected: Logical) -> Aggregate:
    if others(node.args["distinct"], set()):
        context.refuse(node, "DISTINCT ON", "number the rows of a subquery with ROW_NUMBER()")
    return distinct(projected, context.position(node))

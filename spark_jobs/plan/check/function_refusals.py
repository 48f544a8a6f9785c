"""Calls of Python functions where no Python runs: below the last operator of a query."""

from collections.abc import Iterator

from spark_jobs.errors import PositionedError
from spark_jobs.plan.check.problems import unsupported
from spark_jobs.sql.logical import (
    Aggregate,
    Filter,
    Join,
    Logical,
    Position,
    Project,
    Scan,
    Sink,
    Union,
    Unnest,
    nodes,
)
from spark_jobs.sql.types.expr import Expr, python_calls

_HINT = (
    "call it in the SELECT list or WHERE of the query that is inserted, over what its joins and"
    " aggregates give"
)


def function_refusals(optimized: Logical) -> Iterator[PositionedError]:
    """Every call that is not in the SELECT list or WHERE above all operators."""
    for base in _bases(optimized):
        for node in nodes(base):
            for call in python_calls(_exprs(node)):
                message = f"the Python function {call.op} cannot be called {_place(node)}"
                at = Position(call.line, call.column)
                yield unsupported("FUNCTION_PLACE", message, at, _HINT)


def _bases(node: Logical) -> Iterator[Logical]:
    """What stands below the SELECT list, WHERE and UNION ALL at the top."""
    match node:
        case Sink() | Project() | Filter():
            yield from _bases(node.input)
        case Union(inputs=inputs):
            for input_ in inputs:
                yield from _bases(input_)
        case _:
            yield node


def _exprs(node: Logical) -> list[Expr]:
    """What a node evaluates."""
    found: list[Expr | None] = []
    match node:
        case Project(exprs=exprs):
            found += exprs
        case Filter(condition=condition):
            found.append(condition)
        case Join():
            found += [node.condition, node.as_of]
        case Aggregate(keys=keys, calls=calls):
            found += [*keys, *(e for call in calls for e in (call.argument, call.filter))]
        case Unnest():
            found += [node.collection, node.condition]
        case Scan(table=table):
            found += [column.expr for column in table.columns]
            found.append(None if table.watermark is None else table.watermark.expr)
    return [expr for expr in found if expr is not None]


def _place(node: Logical) -> str:
    match node:
        case Join():
            return "in the condition of a join"
        case Aggregate():
            return "in GROUP BY, DISTINCT or an aggregate function"
        case Scan(table=table):
            return f"in a column of {table.name}"
        case _:
            return "below a join or another operator"

"""Steps that rules share: expressions moved through projections, nodes rebuilt around inputs."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    NoRows,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    Union,
    Unnest,
)
from spark_jobs.sql.types.expr import Expr, Literal, and_all, transform


def map_inputs(node: Logical, rule: Callable[[Logical], Logical]) -> Logical:
    """The node over inputs that the rule has rewritten."""
    match node:
        case Scan() | NoRows():
            return node
        case Join(left=left, right=right):
            return replace(node, left=rule(left), right=rule(right))
        case Union(inputs=inputs):
            return replace(node, inputs=tuple(rule(i) for i in inputs))
        case Filter() | Project() | RowNumber() | Rank() | Deduplicate():
            return replace(node, input=rule(node.input))
        case Aggregate() | Unnest() | Sink():
            return replace(node, input=rule(node.input))
        case _:
            assert_never(node)


def filtered(node: Logical, predicates: Iterable[Expr]) -> Logical:
    """The node below a filter of these predicates; without one where all are TRUE."""
    condition = and_all(without_true(predicates))
    return node if condition is None else Filter(node, condition)


def without_true(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(p for p in predicates if not (isinstance(p, Literal) and p.value is True))


def moved(expr: Expr, places: dict[int, int]) -> Expr:
    """The expression after its columns have gone to other positions."""
    return transform(expr, lambda c: replace(c, index=places[c.index]))

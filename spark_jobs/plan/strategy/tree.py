"""A logical tree as operators that feed each other: the walk from a node to what runs for it."""

from typing import TypeAlias

from spark_jobs.plan.facts.intervals import interval_of
from spark_jobs.plan.facts.sources import Source, source_of
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.nodes.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Project,
    Scan,
    Union,
)
from spark_jobs.plan.strategy.building import (
    Building,
    Feed,
    Peeled,
    Rows,
    Shape,
    Wanted,
    all_of,
    peel,
)
from spark_jobs.plan.strategy.join_operators import interval_join, regular_join, temporal_join
from spark_jobs.plan.strategy.multi_join import Chain, multi_join, peel_chain
from spark_jobs.plan.strategy.row_operators import aggregate, deduplicate
from spark_jobs.plan.strategy.scans import rekey, table_feed

Stateful: TypeAlias = Join | Deduplicate | Aggregate | Chain
"""What becomes one operator."""


def feed(node: Logical, shape: Shape, side: int, building: Building) -> Feed:
    """The node's rows as one side of an operator, in the shape that it wants."""
    above = peel(node)
    match above.base:
        case Scan():
            return table_feed(source_below(node, above), shape, side, building)
        case Union():
            inner = shape.over(above.exprs)
            return all_of([feed(branch, inner, side, building) for branch in branches(above)])
        case _:
            base, over = stateful_below(above, building)
            inner = shape.over(over.exprs)
            wanted = Wanted(inner.exprs, over.where, forwards=shape.marks)
            rows = operate(base, wanted, building)
            rekeyed = rekey(rows.node, rows.names, inner, side, building, ordered=rows.ordered)
            return Feed((rekeyed,), rows.streams, rows.topics)


def stateful_below(above: Peeled, building: Building) -> tuple[Stateful, Peeled]:
    """The operator below projections and filters, and those over its fields."""
    chain = peel_chain(above) if building.settings.multi_join else None
    if chain is not None:
        return chain
    match above.base:
        case Join() | Deduplicate() | Aggregate() as base:
            return base, above
        case base:
            raise ValueError(f"{type(base).__name__} is no operator")


def operate(node: Stateful, wanted: Wanted, building: Building) -> Rows:
    """The operator itself, with everything below it."""
    match node:
        case Chain():
            return multi_join(node, wanted, feed, building)
        case Join():
            return _join(node, wanted, building)
        case Deduplicate():
            return deduplicate(node, wanted, feed, building)
        case Aggregate():
            return aggregate(node, wanted, feed, building)


def _join(join: Join, wanted: Wanted, building: Building) -> Rows:
    if is_versioned(join):
        return temporal_join(join, wanted, feed, building)
    interval = interval_of(join)
    if interval is not None:
        return interval_join(join, interval, wanted, feed, building)
    return regular_join(join, wanted, feed, building)


def branches(above: Peeled) -> tuple[Logical, ...]:
    """The inputs of a union below a projection, under the filter that stood above it."""
    if not isinstance(above.base, Union):
        raise ValueError(f"{type(above.base).__name__} is no union")
    inputs = above.base.inputs
    return inputs if above.where is None else tuple(Filter(i, above.where) for i in inputs)


def source_below(node: Logical, above: Peeled) -> Source:
    """The table below projections and filters, however they are stacked."""
    below = above.base if above.where is None else Filter(above.base, above.where)
    source = source_of(Project(below, above.exprs, node.fields))
    if source is None:
        raise ValueError(f"{type(above.base).__name__} is no table")
    return source

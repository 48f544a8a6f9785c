"""A logical tree as operators that feed each other: the one place that goes from node to node."""

from dataclasses import replace
from itertools import chain
from typing import TypeAlias, assert_never

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.lookups import looked_up
from spark_jobs.plan.facts.sources import Peeled, peel, source_of
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.nodes.physical import JoinInput
from spark_jobs.plan.strategy.building import Building, Input, Planned, Required
from spark_jobs.plan.strategy.join_operators import interval_join, regular_join, temporal_join
from spark_jobs.plan.strategy.lookup_join import lookup_join
from spark_jobs.plan.strategy.multi_join import Chain, multi_join, peel_chain
from spark_jobs.plan.strategy.row_operators import aggregate, deduplicate, rank
from spark_jobs.plan.strategy.scans import rekey, table_input
from spark_jobs.plan.strategy.unnest import unnest
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Rank,
    Union,
    Unnest,
)

Operated: TypeAlias = Join | Deduplicate | Rank | Aggregate | Unnest | Chain
"""A logical node, or a chain of them, that one operator runs."""


def operate(node: Operated, required: Required, building: Building) -> Planned:
    """The operator of a node, with everything below it."""
    return fed(_planned(node, required, building), building)


def fed(planned: Planned, building: Building) -> Planned:
    """The operator over its inputs, whose warnings come before its own."""
    inputs = tuple(chain.from_iterable(_feeds(i, building) for i in planned.inputs))
    building.warn(*planned.warnings)
    return replace(planned, node=replace(planned.node, inputs=inputs))


def _feeds(wanted: Input, building: Building) -> tuple[JoinInput, ...]:
    source = source_of(wanted.node)
    if source is not None:
        return (table_input(source, wanted, building),)
    above = peel(wanted.node)
    if isinstance(above.base, Union):
        over = replace(wanted, shape=wanted.shape.over(above.exprs))
        each = (_feeds(replace(over, node=branch), building) for branch in branches(above))
        return tuple(chain.from_iterable(each))
    base, above = stateful_below(above, building)
    shape = wanted.shape.over(above.exprs)
    required = Required(shape.exprs, above.where, forwards=shape.marks)
    below = operate(base, required, building)
    read = rekey(below.node, below.names, shape, wanted.side, building)
    return (replace(read, ordered=below.ordered),)


def stateful_below(above: Peeled, building: Building) -> tuple[Operated, Peeled]:
    """The operator below projections and filters, and those over its fields."""
    joins = peel_chain(above) if building.settings.multi_join else None
    if joins is not None:
        return joins
    match above.base:
        case Join() | Deduplicate() | Rank() | Aggregate() | Unnest() as base:
            return base, above
        case base:
            raise ValueError(f"{type(base).__name__} is no operator")


def _planned(node: Operated, required: Required, building: Building) -> Planned:
    match node:
        case Chain():
            return multi_join(node, required, building)
        case Join() if is_versioned(node):
            if looked_up(node) is not None:
                return lookup_join(node, required, building)
            return temporal_join(node, required, building)
        case Join():
            interval = facts(node).interval
            if interval is not None:
                return interval_join(node, interval, required, building)
            return regular_join(node, required, building)
        case Deduplicate():
            return deduplicate(node, required, building)
        case Rank():
            return rank(node, required, building)
        case Aggregate():
            return aggregate(node, required, building)
        case Unnest():
            return unnest(node, required, building)
        case _:
            assert_never(node)


def branches(above: Peeled) -> tuple[Logical, ...]:
    """The inputs of a union below a projection, under the filter that stood above it."""
    if not isinstance(above.base, Union):
        raise ValueError(f"{type(above.base).__name__} is no union")
    inputs = above.base.inputs
    return inputs if above.where is None else tuple(Filter(i, above.where) for i in inputs)

"""The one walk over physical nodes: from a node to what feeds it, left to right."""

from collections.abc import Iterator
from typing import assert_never

from spark_jobs.plan.nodes.physical import (
    KafkaScan,
    KafkaSink,
    LookupJoin,
    Physical,
    Project,
    Rekey,
    Results,
    Stateful,
)


def inputs_of(node: Physical) -> tuple[Physical, ...]:
    """The nodes that feed this one."""
    match node:
        case KafkaScan():
            return ()
        case Rekey() | Project():
            return (node.input,)
        case KafkaSink() | Results() | Stateful():
            return node.inputs
        case _:
            assert_never(node)


def nodes(node: Physical) -> Iterator[Physical]:
    """The node and all below it, parents first."""
    yield node
    for below in inputs_of(node):
        yield from nodes(below)


def scans(node: Physical) -> tuple[KafkaScan, ...]:
    """The scans below a node, in Spark's order of sources."""
    return tuple(found for found in nodes(node) if isinstance(found, KafkaScan))


def looks_up(node: Physical) -> bool:
    """Whether rows of a database are looked up for it."""
    return any(isinstance(each.machine, LookupJoin) for each in stateful_nodes(node))


def stateful_nodes(node: Physical) -> tuple[Stateful, ...]:
    """The operators with state, in the order in which Spark reports on them: the last one first."""
    return tuple(found for found in nodes(node) if isinstance(found, Stateful))


def idle_timeouts(node: Physical) -> dict[int, int]:
    """The idle timeouts of the topics, by index, whose watermarks operators follow; 0 for never."""
    sides = (side for found in stateful_nodes(node) for side in found.timing.inputs)
    return {stream.topic: stream.idle_timeout_ms for side in sides for stream in side}

"""What depends on the whole tree, given in one pass over it: ids, topic indexes, streams, gating.

Checkpoints hold state under these names and numbers, so their order is for ever. Topics count up
from left to right. An operator comes after everything that feeds it: the second of a kind gets a
number, and so does each operator whose watermark goes on.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from spark_jobs.plan.nodes.parts import FIRST_FORWARD, Timing, Topic, TopicTime
from spark_jobs.plan.nodes.physical import (
    BUILD_SIDE,
    JoinInput,
    KafkaScan,
    KafkaSink,
    KeyChanges,
    Normalize,
    Operator,
    Rekey,
    Results,
    Stateful,
    TemporalJoin,
)
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.strategy.timing import tick_ms


def numbered(root: KafkaSink | Results) -> KafkaSink | Results:
    """The finished tree with what depends on all of it filled in."""
    numbers = _Numbers()
    inputs = [replace(p, input=numbers.operator(p.input, gated=False)) for p in root.inputs]
    return replace(root, inputs=tuple(inputs))


@dataclass(slots=True)
class _Numbers:
    topics: int = 0
    forwards: int = 0
    names: Counter[str] = field(default_factory=Counter)

    def operator(self, node: Operator, *, gated: bool) -> Operator:
        return self._scan(node, gated) if isinstance(node, KafkaScan) else self._fed(node, gated)

    def _input(self, node: JoinInput, gated: bool) -> JoinInput:
        if isinstance(node, KafkaScan):
            return self._scan(node, gated)
        return replace(node, input=self._fed(node.input, gated))

    def _scan(self, node: KafkaScan, gated: bool) -> KafkaScan:
        first = self.topics
        self.topics += len(node.topics)
        topics = tuple(Topic(t.name, first + i) for i, t in enumerate(node.topics))
        return replace(node, id=self._name(f"{node.side}-{node.table}"), topics=topics, gated=gated)

    def _fed(self, node: Stateful, gated: bool) -> Stateful:
        inputs = tuple(self._input(i, gated or _opens_gate(node, i)) for i in node.inputs)
        fed = replace(node, inputs=inputs, passes_loaded=gated)
        return replace(fed, id=self._name(node.kind), timing=self._timing(fed))

    def _timing(self, node: Stateful) -> Timing:
        timing = node.timing
        if not timing.listens:
            return timing
        streams = tuple(tuple(_streams(node, side)) for side in range(len(timing.ttl_ms)))
        if not any(streams):  # constants have no watermark that anything could wait for
            return replace(timing, listens=False, forwards=False)
        if timing.forwards:
            self.forwards += 1
        return replace(
            timing,
            inputs=streams,
            forward=FIRST_FORWARD + self.forwards - 1 if timing.forwards else None,
            tick_ms=tick_ms(timing, streams),
        )

    def _name(self, name: str) -> str:
        """The second of a name gets a number."""
        self.names[name] += 1
        count = self.names[name]
        return name if count == 1 else f"{name}-{count}"


def _opens_gate(node: Stateful, read: JoinInput) -> bool:
    """Whether the node's probe rows wait until this input of it is loaded."""
    join = node.machine
    waits = isinstance(join, TemporalJoin) and join.gate.kind == "loaded"
    return waits and read.side == BUILD_SIDE


def _streams(node: Stateful, side: int) -> Iterator[TopicTime]:
    """Whose watermarks speak for a side: its tables', or those that operators below pass on.

    A side that has to be loaded is followed down to its topics, which report being loaded.
    """
    for read in node.inputs:
        if read.side != side:
            continue
        if _opens_gate(node, read):
            yield from (time for scan in scans(read) for time in _topic_times(scan))
        else:
            yield from _speaks(read)


def _speaks(read: JoinInput) -> Iterator[TopicTime]:
    match read:
        case KafkaScan():
            yield from _topic_times(read) if read.marks else ()
        case Rekey(input=Stateful(machine=Normalize() | KeyChanges(), inputs=(below,))):
            yield from _speaks(below)
        case Rekey(input=Stateful(timing=Timing(forward=forward))):
            yield from () if forward is None else (TopicTime(forward, 0),)
        case _:
            assert_never(read)


def _topic_times(scan: KafkaScan) -> Iterator[TopicTime]:
    for topic in scan.topics:
        yield TopicTime(topic.index, scan.idle_timeout_ms)

"""A planned query with the topics that its patterns match, which only the broker knows.

The plan holds one topic per pattern. Its index stands for all of them in the plan, and no topic has
it: those that match get indexes of their own behind the plan's, which the manifest keeps for ever.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from spark_jobs.errors import ConfigError
from spark_jobs.plan.nodes.parts import FIRST_FORWARD, Timing, Topic, TopicTime
from spark_jobs.plan.nodes.physical import JoinInput, KafkaScan, KafkaSink, Operator, Stateful
from spark_jobs.plan.nodes.walk import scans

MatchedTopics: TypeAlias = dict[str, dict[str, int]]
"""By scan id: the topics that its pattern has matched, with their indexes."""


def numbered_after(
    sink: KafkaSink, known: Mapping[str, Mapping[str, int]], new: Mapping[str, Iterable[str]]
) -> MatchedTopics:
    """The known topics and the new ones, which get the next free indexes."""
    found = {scan: dict(topics) for scan, topics in known.items()}
    planned = [topic.index for scan in scans(sink) for topic in scan.topics]
    used = [*planned, *(index for topics in known.values() for index in topics.values())]
    free = max(used) + 1
    for scan, names in new.items():
        for name in sorted(names):
            found.setdefault(scan, {})[name] = free
            free += 1
    if free > FIRST_FORWARD:
        raise ConfigError(
            "TOO_MANY_TOPICS",
            f"query {sink.name}: its patterns have matched {free} topics, and a query can tell "
            f"{FIRST_FORWARD} apart",
            hint="narrow 'topic-pattern'",
        )
    return found


def with_topics(sink: KafkaSink, matched: Mapping[str, Mapping[str, int]]) -> KafkaSink:
    """The plan in which each pattern's topic is replaced by those that it matches."""
    inputs = [replace(p, input=_operator(p.input, matched)) for p in sink.inputs]
    return replace(sink, inputs=tuple(inputs))


def _operator(node: Operator, matched: Mapping[str, Mapping[str, int]]) -> Operator:
    return _scan(node, matched) if isinstance(node, KafkaScan) else _fed(node, matched)


def _input(node: JoinInput, matched: Mapping[str, Mapping[str, int]]) -> JoinInput:
    if isinstance(node, KafkaScan):
        return _scan(node, matched)
    return replace(node, input=_fed(node.input, matched))


def _scan(scan: KafkaScan, matched: Mapping[str, Mapping[str, int]]) -> KafkaScan:
    if scan.pattern is None:
        return scan
    topics = (Topic(name, index) for name, index in matched[scan.id].items())
    return replace(scan, topics=tuple(topics))


def _fed(node: Stateful, matched: Mapping[str, Mapping[str, int]]) -> Stateful:
    stands_for = {
        scan.topics[0].index: list(matched[scan.id].values())
        for scan in scans(node)
        if scan.pattern is not None
    }
    inputs = tuple(_input(read, matched) for read in node.inputs)
    return replace(node, inputs=inputs, timing=_timing(node.timing, stands_for))


def _timing(timing: Timing, stands_for: Mapping[int, list[int]]) -> Timing:
    """The watermarks of a pattern's topics in place of the pattern's."""
    followed = (
        tuple(
            TopicTime(index, stream.idle_timeout_ms)
            for stream in side
            for index in stands_for.get(stream.topic, [stream.topic])
        )
        for side in timing.inputs
    )
    return replace(timing, inputs=tuple(followed))

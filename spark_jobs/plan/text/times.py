"""Time for people: how long an operator keeps its rows and whose watermarks it follows."""

from collections.abc import Sequence
from typing import assert_never

from spark_jobs.plan.nodes.parts import Timing
from spark_jobs.plan.nodes.physical import (
    Aggregate,
    Deduplicate,
    IntervalJoin,
    KeyChanges,
    LookupJoin,
    MultiJoin,
    Normalize,
    Rank,
    RegularJoin,
    SinkMaterializer,
    Stateful,
    TemporalJoin,
    Unnest,
)


def retention_text(node: Stateful) -> list[str]:
    """How long what is stored stays."""
    ttl, machine = node.timing.ttl_ms, node.machine
    match machine:
        case IntervalJoin():
            return [_interval_retention(machine)]
        case TemporalJoin(time="event"):
            idle = f"; a key that is idle for {_ttl(ttl)} is forgotten" if any(ttl) else ""
            text = "retention: the newest version at or below the watermark and all later ones"
            return [text + idle]
        case LookupJoin(probe_changes=False) | Unnest():
            return []
        case LookupJoin():
            return [f"retention: {_ttl(ttl)}"]
        case RegularJoin() | MultiJoin() | TemporalJoin() if any(ttl):
            texts = [f"{s} {_ttl((ms,))}" for s, ms in zip(node.side_names, ttl, strict=True)]
            return [f"retention: {', '.join(texts)}"]
        case RegularJoin() | MultiJoin() | TemporalJoin():
            return ["retention: for ever"]
        case KeyChanges():
            wait = f"one half of a key change waits {machine.wait_ms} ms for the other"
            return [f"retention: as the rows of the normaliser; {wait}"]
        case Normalize() | Deduplicate() | Rank() | Aggregate() | SinkMaterializer():
            return [f"retention: {_ttl(ttl)}"]
        case _:
            assert_never(machine)


def _ttl(ttl_ms: Sequence[int]) -> str:
    longest = 0 if 0 in ttl_ms else max(ttl_ms, default=0)
    return f"{longest} ms after the last write" if longest else "for ever"


def _interval_retention(node: IntervalJoin) -> str:
    """How far behind the watermark rows are kept, and how long they may be changed."""
    left, right = (kept_ms - node.min_cleanup_ms for kept_ms in node.kept_ms)
    clock = "watermark" if node.time == "event" else "clock"
    cleanup = f" and {node.min_cleanup_ms} ms for cleanup" if node.min_cleanup_ms else ""
    if node.lower_ms > node.upper_ms:
        return "state: none, no pair can match and outer rows are padded at once"
    return f"retention: left {left} ms, right {right} ms behind the {clock}{cleanup}"


def closing_text(node: IntervalJoin) -> str:
    """Until when rows of an interval join may change."""
    left, right = max(-node.lower_ms, 0), max(node.upper_ms, 0)
    cleanup = f", and {node.min_cleanup_ms} ms more" if node.min_cleanup_ms else ""
    return f"changes: taken until left {left} ms, right {right} ms behind the watermark{cleanup}"


def early_text(node: IntervalJoin) -> str:
    """When rows without a partner are padded although one may still come."""
    clock = "watermark" if node.time == "event" else "clock"
    delay = f"{node.early_fire_ms} ms past an outer row's time"
    return f"early padding: when the {clock} is {delay}; taken back if a match comes"


def watermark_text(node: Stateful) -> list[str]:
    """Whose watermarks the operator follows."""
    timing = node.timing
    inputs = timing.inputs
    if node.gated_topics:
        # the right side is listed for its gate alone
        inputs = inputs[:1]
    if not any(inputs):
        return []
    idle = sorted({s.idle_timeout_ms for side in inputs for s in side} - {0})
    text = f", idle after {', '.join(map(str, idle))} ms" if idle else ""
    speaking = [side for side in inputs if side]
    match len(speaking), len(inputs):
        case 2, 2:
            whose = f"{timing.policy} of both inputs"
        case 1, 1:
            whose = "of the input"
        case 1, 2:
            whose = "of the left input" if inputs[0] else "of the right input"
        case _:
            whose = f"{timing.policy} of all inputs"
    return [f"watermark: {whose}{text}"]


def forward_text(timing: Timing) -> list[str]:
    return [] if timing.forward is None else ["watermark: goes on to the next operator"]

"""How time reaches an operator: whose watermarks it follows, how often the clock ticks for it."""

from collections.abc import Sequence

from spark_jobs.plan.nodes.parts import Timing, Topic, TopicTime
from spark_jobs.plan.strategy.building import Building
from spark_jobs.sql.catalog import Table

TICK_MS = 1_000
"""A tick starts a batch, which costs more than being late by so much."""
MAX_TTL_TICK_MS = 60_000
GRAVE_TICK_MS = 3_600_000


def topic_times(table: Table, topics: Sequence[Topic], building: Building) -> tuple[TopicTime, ...]:
    """The watermarks of a table; its own idle timeout goes before the job's."""
    own = table.options.kafka.idle_timeout_ms
    idle = building.settings.idle_timeout_ms if own is None else own
    return tuple(TopicTime(topic.index, idle) for topic in topics)


def state_ttl(building: Building, sides: int = 1) -> tuple[int, ...]:
    """The job's state TTL for each side."""
    return (building.settings.state_ttl_ms,) * sides


def timing(
    building: Building,
    sides: Sequence[tuple[TopicTime, ...]],
    *,
    hears: bool = False,
    forwards: bool = False,
    ticks: bool = False,
    buries: bool = False,
    waits_ms: int = 0,
    ttl_ms: tuple[int, ...] = (0,),
) -> Timing:
    """`hears`: the operator itself goes by watermarks; `ticks`: by processing time.

    `buries`: it keeps the graves of deleted rows for a day. `waits_ms`: something waits that long.
    """
    inputs = tuple(sides) if hears or forwards else ()
    idle = [s.idle_timeout_ms for streams in inputs for s in streams if s.idle_timeout_ms]
    periods = [max(ms // 2, TICK_MS) for ms in idle]
    periods += [min(max(ms // 4, TICK_MS), MAX_TTL_TICK_MS) for ms in ttl_ms if ms]
    periods += [TICK_MS] if ticks else []
    periods += [GRAVE_TICK_MS] if buries else []
    periods += [max(waits_ms // 4, TICK_MS)] if waits_ms else []
    return Timing(
        inputs=inputs,
        policy=building.settings.watermark_policy,
        forward=building.forward() if forwards else None,
        tick_ms=min(periods) if periods else (0 if inputs else None),
        ttl_ms=ttl_ms,
    )

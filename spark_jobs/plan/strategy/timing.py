"""How time reaches an operator: whether it follows watermarks, how often the clock ticks for it."""

from collections.abc import Sequence

from spark_jobs.plan.nodes.parts import Timing, TopicTime
from spark_jobs.plan.strategy.building import Building
from spark_jobs.sql.catalog import Table

TICK_MS = 1_000
"""A tick starts a batch, which costs more than being late by so much."""
MAX_TTL_TICK_MS = 60_000
GRAVE_TICK_MS = 3_600_000


def idle_timeout_ms(table: Table, building: Building) -> int:
    """A table's own idle timeout goes before the job's."""
    own = table.options.kafka.idle_timeout_ms
    return building.settings.idle_timeout_ms if own is None else own


def state_ttl(building: Building, hints: Sequence[int | None] = (None,)) -> tuple[int, ...]:
    """State TTL of each side: a STATE_TTL hint goes before the job's setting."""
    default = building.settings.state_ttl_ms
    return tuple(default if hint is None else hint for hint in hints)


def timing(
    building: Building,
    *,
    ttl_ms: tuple[int, ...],
    listens: bool = False,
    forwards: bool = False,
    ticks: bool = False,
    starts: bool = False,
    keeps_graves: bool = False,
    waits_ms: int = 0,
) -> Timing:
    """`listens`: the operator itself goes by watermarks; `ticks`: by processing time.

    `starts`: it needs the first epoch, which the clock starts even where no record is there.
    `keeps_graves`: it remembers deleted rows for a day. `waits_ms`: something waits that long.
    """
    periods = [min(max(ms // 4, TICK_MS), MAX_TTL_TICK_MS) for ms in ttl_ms if ms]
    periods += [TICK_MS] if ticks else []
    periods += [GRAVE_TICK_MS] if keeps_graves else []
    periods += [max(waits_ms // 4, TICK_MS)] if waits_ms else []
    return Timing(
        policy=building.settings.watermark_policy,
        tick_ms=min(periods, default=0 if starts else None),
        ttl_ms=ttl_ms,
        listens=listens or forwards,
        forwards=forwards,
    )


def tick_ms(own: Timing, streams: Sequence[Sequence[TopicTime]]) -> int:
    """How often the clock ticks for an operator that follows these watermarks.

    Without a period of its own or an idle timeout it needs the clock's other news alone: 0.
    """
    idle = [s.idle_timeout_ms for side in streams for s in side if s.idle_timeout_ms]
    periods = [max(ms // 2, TICK_MS) for ms in idle]
    return min([*periods, *(() if own.tick_ms is None else (own.tick_ms,))], default=0)

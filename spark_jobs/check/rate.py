"""How fast a table's topics fill, counted by offsets rather than estimated from a sample."""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from spark_jobs.access.topics import Limit, TableTopics
from spark_jobs.terminal import utc_text

HOUR_MS = 3_600_000
_LEAST_MS = 1_000


@dataclass(frozen=True, slots=True)
class FillRate:
    """Offsets in the hour before the newest record, or since the oldest one if that is later.

    Other times of day may differ. Transaction markers have offsets and are counted too.
    """

    offsets: int
    span_ms: int
    newest_ms: int
    record_bytes: int
    sampled: int

    @property
    def per_hour(self) -> float | None:
        """Records per hour; None if all records arrived within a second."""
        if self.span_ms < _LEAST_MS:
            return None
        return (self.offsets - 1) * HOUR_MS / self.span_ms  # n records have n - 1 gaps

    def text(self) -> str:
        text = f"newest record of {utc_text(self.newest_ms)}, {self.record_bytes} bytes each"
        rate = self.per_hour
        if rate is None:
            return f"{text}; no rate, as all arrived within a second"
        spent = f"{self.span_ms / 60_000:.1f} min"
        return f"{text}; {self.offsets} offsets in {spent} up to then: {rate:.0f} records/h"


def measure_rate(edge: TableTopics, newest: Sequence[Message]) -> FillRate | None:
    """The fill rate of a table; None if it has no records."""
    if not newest:
        return None
    newest_ms = max(message.timestamp()[1] for message in newest)
    oldest_ms = min((message.timestamp()[1] for message in edge.oldest()), default=newest_ms)
    begins_ms = max(newest_ms - HOUR_MS, oldest_ms)
    starts, ends = edge.exact_starts(Limit("timestamp", begins_ms)), edge.latest()
    offsets = sum(end - starts[topic][p] for topic, of in ends.items() for p, end in of.items())
    size = sum(len(m.key() or b"") + len(m.value() or b"") for m in newest) // len(newest)
    return FillRate(offsets, newest_ms - begins_ms, newest_ms, size, len(newest))

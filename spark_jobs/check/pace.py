"""How fast a table's topics fill: counted by offsets, not guessed from a few records."""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from spark_jobs.access.topics import Limit, TableTopics
from spark_jobs.terminal import utc_text

HOUR_MS = 3_600_000
_LEAST_MS = 1_000


@dataclass(frozen=True, slots=True)
class Pace:
    """Offsets of the hour up to the newest record, or of as long as there are records.

    It says nothing of other times of day. Markers of transactions are counted as well.
    """

    offsets: int
    span_ms: int
    newest_ms: int
    record_bytes: int
    sampled: int

    @property
    def per_hour(self) -> float | None:
        """None where all records came at once."""
        if self.span_ms < _LEAST_MS:
            return None
        return (self.offsets - 1) * HOUR_MS / self.span_ms  # from the first one to the last one

    def text(self) -> str:
        told = f"newest record of {utc_text(self.newest_ms)}, {self.record_bytes} bytes each"
        rate = self.per_hour
        if rate is None:
            return f"{told}; no pace, as all came within a second"
        spent = f"{self.span_ms / 60_000:.1f} min"
        return f"{told}; {self.offsets} offsets in {spent} up to then: {rate:.0f} records/h"


def measure(edge: TableTopics, newest: Sequence[Message]) -> Pace | None:
    """None for a table without records."""
    if not newest:
        return None
    newest_ms = max(message.timestamp()[1] for message in newest)
    oldest_ms = min((message.timestamp()[1] for message in edge.oldest()), default=newest_ms)
    begins_ms = max(newest_ms - HOUR_MS, oldest_ms)
    starts, ends = edge.exact_starts(Limit("timestamp", begins_ms)), edge.latest()
    offsets = sum(end - starts[topic][p] for topic, of in ends.items() for p, end in of.items())
    size = sum(len(m.key() or b"") + len(m.value() or b"") for m in newest) // len(newest)
    return Pace(offsets, newest_ms - begins_ms, newest_ms, size, len(newest))

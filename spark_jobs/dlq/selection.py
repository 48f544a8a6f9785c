"""Which dead-letter records a command selects."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.dlq.dead_letter import DeadLetter, Position
from spark_jobs.errors import ConfigError
from spark_jobs.options.kinds import parse_duration_ms

_RANGE = re.compile(r"(\d+):(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition of the dead-letter topic, both ends included."""

    partition: int
    first: int
    last: int

    def __contains__(self, at: Position) -> bool:
        return self.partition == at.partition and self.first <= at.offset <= self.last


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters that must all match; an empty one, or None, matches every record."""

    tables: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    since_ms: int | None = None
    ranges: tuple[OffsetRange, ...] = ()

    def takes(self, dead_letter: DeadLetter) -> bool:
        return (
            (not self.tables or dead_letter.table in self.tables)
            and (not self.reasons or dead_letter.reason in self.reasons)
            and (self.since_ms is None or dead_letter.timestamp_ms >= self.since_ms)
            and (not self.ranges or any(dead_letter.position in r for r in self.ranges))
        )


def parse_offset_ranges(text: str) -> tuple[OffsetRange, ...]:
    """Parse partitions and offsets of the dead-letter topic.

    >>> parse_offset_ranges("0:17,1:20-35")
    (OffsetRange(partition=0, first=17, last=17), OffsetRange(partition=1, first=20, last=35))
    """
    found = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise ConfigError(
            "DLQ_SELECTION",
            f"'{text}' is no list of partitions and offsets",
            hint="write partition:offset or partition:first-last, with commas: 0:17,1:20-35",
        )
    return tuple(OffsetRange(int(m[1]), int(m[2]), int(m[3] or m[2])) for m in found if m)


def parse_since(text: str, now: datetime) -> int:
    """Parse a time, or a duration before `now`, to epoch milliseconds.

    >>> parse_since("2 h", datetime(2024, 1, 1, 12, tzinfo=UTC))
    1704103200000
    """
    ago_ms = parse_duration_ms(text)
    if ago_ms is not None:
        return int(now.timestamp() * 1000) - ago_ms
    try:
        at = datetime.fromisoformat(text)
    except ValueError as cause:
        raise ConfigError(
            "DLQ_SELECTION",
            f"'{text}' is neither a time nor a duration",
            hint="write 2024-01-31, 2024-01-31T12:00:00Z (UTC without a zone), 30 min, 2 h or 7 d",
        ) from cause
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)

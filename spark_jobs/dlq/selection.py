"""Which letters a command is about."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.dlq.letter import Letter, Place
from spark_jobs.errors import ConfigError
from spark_jobs.options.kinds import parse_duration_ms

_RANGE = re.compile(r"(\d+):(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class Places:
    """Offsets of one partition of the dead-letter topic, both ends included."""

    partition: int
    first: int
    last: int

    def __contains__(self, place: Place) -> bool:
        return self.partition == place.partition and self.first <= place.offset <= self.last


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that is given has to fit; what is empty or None fits all."""

    tables: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    since_ms: int | None = None
    places: tuple[Places, ...] = ()

    def takes(self, letter: Letter) -> bool:
        return (
            (not self.tables or letter.table in self.tables)
            and (not self.reasons or letter.reason in self.reasons)
            and (self.since_ms is None or letter.timestamp_ms >= self.since_ms)
            and (not self.places or any(letter.place in places for places in self.places))
        )


def parse_places(text: str) -> tuple[Places, ...]:
    """Partition and offsets in the dead-letter topic.

    >>> parse_places("0:17,1:20-35")
    (Places(partition=0, first=17, last=17), Places(partition=1, first=20, last=35))
    """
    found = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise ConfigError(
            "DLQ_SELECTION",
            f"'{text}' names no places of letters",
            hint="partition:offset or partition:first-last, with commas between: 0:17,1:20-35",
        )
    return tuple(Places(int(m[1]), int(m[2]), int(m[3] or m[2])) for m in found if m)


def parse_since(text: str, now: datetime) -> int:
    """A time, or how long ago, as epoch milliseconds.

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
            hint="2024-01-31, 2024-01-31T12:00:00Z (UTC without a zone), 30 min, 2 h, 7 d",
        ) from cause
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)

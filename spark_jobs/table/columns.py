"""Columns of a table that a topic suggests, and how to read an instant from their values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from spark_jobs.sql.types.data_types import DataType

TimeUnit: TypeAlias = Literal["text", "seconds", "millis", "micros", "nanos"]

_PER_MS: Mapping[str, float] = {"seconds": 1_000, "millis": 1, "micros": 0.001, "nanos": 0.000001}
# names of columns in which a bare number is a time
_TIME_NAME = re.compile(r"(?i)(^|_)(ts|at|time|date|timestamp|when|millis|ms)($|_)|time|[a-z]At$")
# numbers of the years 2001 to 2099, in each unit
_RANGES: tuple[tuple[TimeUnit, int, int], ...] = (
    ("seconds", 1_000_000_000, 4_100_000_000),
    ("millis", 1_000_000_000_000, 4_100_000_000_000),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A physical column; `unit`: what its values count, where they are instants.

    `note` is what a reader of the statement should know about the type.
    """

    name: str
    type: DataType
    note: str | None = None
    unit: TimeUnit | None = None

    @property
    def is_rowtime(self) -> bool:
        """Whether an event time may be this column itself, not a computed one."""
        return self.type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")


def number_unit(name: str, values: list[int]) -> TimeUnit | None:
    """The unit of epoch numbers, if the name is one of a time and all values are near the present.

    >>> number_unit("created_at", [1704110400000]), number_unit("amount", [1704110400000])
    ('millis', None)
    """
    if not values or _TIME_NAME.search(name) is None:
        return None
    for unit, least, most in _RANGES:
        if all(least <= value <= most for value in values):
            return unit
    return None


def instant_ms(column: Column, value: Any) -> float | None:
    """Milliseconds since 1970, taking local times as UTC; None if the value is no instant."""
    if column.unit is None or value is None or isinstance(value, bool):
        return None
    if column.unit == "text":
        return _text_ms(value) if isinstance(value, str) else None
    return value * _PER_MS[column.unit] if isinstance(value, int) else None


def _text_ms(text: str) -> float | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1_000

"""Which times of a topic could be its event time, and how much out of order they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from spark_jobs.table.columns import Column, instant_ms
from spark_jobs.table.values import SampledValue

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
# delays that a watermark is given, from the first that is not below the disorder seen
_STEPS_MS = (
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 4, 6, 12)),
    *(n * _DAY for n in (1, 2, 3, 7)),
)
MOST_MS = _DAY  # times that are more out of order are no event time


@dataclass(frozen=True, slots=True)
class Disorder:
    """How far records are behind the greatest time before them in their partition, milliseconds.

    `at_quantile` holds for the share `quantile` of the `records`, `most` for all of them.
    """

    quantile: float
    at_quantile: float
    most: float
    records: int

    @property
    def delay_ms(self) -> int:
        """The delay of the watermark.

        >>> Disorder(0.99, 3_200, 8_000, 500).delay_ms
        5000
        """
        return rounded_up_ms(self.at_quantile)

    def text(self) -> str:
        return (
            f"{self.quantile * 100:.6g} % of {self.records} sampled records are at most "
            f"{duration_text(self.at_quantile)} behind the newest before them in their partition, "
            f"and all at most {duration_text(self.most)}"
        )


@dataclass(frozen=True, slots=True)
class EventTime:
    """A time that every record with a row has. `column` is None for the time of the record (Kafka's
    timestamp, or the database's for a change event)."""

    column: Column | None
    disorder: Disorder


def column_times(
    columns: Sequence[Column], values: Sequence[SampledValue], quantile: float
) -> list[EventTime]:
    """The columns that are never NULL and hold instants, the least disordered first."""
    found = []
    for column in columns:
        if column.unit is None:
            continue
        times = [_of_row(column, value) for value in values]
        if times and all(time is not None for time in times):
            found.append(EventTime(column, _disorder(values, times, quantile)))
    return sorted(found, key=lambda time: time.disorder.at_quantile)


def change_time(values: Sequence[SampledValue], quantile: float) -> EventTime | None:
    """The time at which the database made each change; None if an event lacks it."""
    times = [value.source_ms for value in values]
    if not times or None in times:
        return None
    return EventTime(None, _disorder(values, times, quantile))


def record_time(values: Sequence[SampledValue], quantile: float) -> EventTime:
    times = [value.record.timestamp_ms for value in values]
    return EventTime(None, _disorder(values, times, quantile))


def rounded_up_ms(ms: float) -> int:
    """The next duration that a person would write.

    >>> rounded_up_ms(0), rounded_up_ms(61_000)
    (1000, 120000)
    """
    return next((step for step in _STEPS_MS if step >= ms), ceil(ms / _DAY) * _DAY)


def duration_text(ms: float) -> str:
    """
    >>> duration_text(0), duration_text(1500), duration_text(7_200_000)
    ('0 s', '1.5 s', '2 h')
    """
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms / _SECOND:.3g} s"


def quantile_of(values: Sequence[float], share: float) -> float:
    """The smallest value that the share of all values does not exceed; the values are not empty.

    >>> quantile_of([0, 0, 5, 9], 0.75)
    5
    """
    return sorted(values)[max(ceil(share * len(values)) - 1, 0)]


def _of_row(column: Column, value: SampledValue) -> float | None:
    return None if value.row is None else instant_ms(column, value.row.get(column.name))


def _disorder(
    values: Sequence[SampledValue], times: Sequence[float | None], quantile: float
) -> Disorder:
    behind = list(_behind(values, times))
    return Disorder(quantile, quantile_of(behind, quantile), max(behind), len(behind))


def _behind(values: Sequence[SampledValue], times: Sequence[float | None]) -> Iterator[float]:
    """Per record, how far it is behind; each run of neighbouring records begins anew."""
    pairs = zip(values, times, strict=True)
    for _, run in groupby(pairs, key=lambda pair: pair[0].record.run):
        newest = float("-inf")
        for _, time in run:
            if time is not None:
                newest = max(newest, time)
                yield newest - time

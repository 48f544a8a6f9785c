"""Samples of the status over the last hour, for rates, growth and how long a figure has stood."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_jobs.status import JobStatus, QueryStatus

EVERY_S = 5.0
KEPT_S = 3600.0
RATE_WINDOW_S = 60.0
END_MS = 2**62  # inputs that have ended have a watermark above this


@dataclass(frozen=True, slots=True)
class Point:
    """One sample: a number for each (what, query) and (what, query, operator or table)."""

    at_s: float
    values: dict[tuple[str, ...], int]


class History:
    """Samples of the status; a restart of the driver clears them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._points: deque[Point] = deque()
        self._driver: tuple[int, object] | None = None

    def add(self, status: JobStatus | None) -> None:
        """Take a sample unless the last one is recent."""
        if status is None:
            return
        now = self._clock()
        with self._lock:
            driver = (status.pid, status.started_at)
            if driver != self._driver:
                self._driver = driver
                self._points.clear()
            if not self._points or now - self._points[-1].at_s >= EVERY_S:
                self._points.append(_point(now, status))
            while now - self._points[0].at_s > KEPT_S:
                self._points.popleft()

    def input_rate(self, query: str) -> float | None:
        """Rows per second over the last minute; None with fewer than two samples."""
        return self._slope("rows in", query)

    def output_rate(self, query: str) -> float | None:
        return self._slope("rows out", query)

    def state_rows_per_minute(self, query: str, operator: str) -> float | None:
        return self._slope("state rows", query, operator, per_s=60)

    def state_bytes_per_minute(self, query: str, operator: str) -> float | None:
        return self._slope("state bytes", query, operator, per_s=60)

    def state_series(self, query: str, operator: str) -> list[tuple[float, int]]:
        """Samples as (seconds ago, rows), oldest first."""
        now = self._clock()
        return [(now - at_s, rows) for at_s, rows in self._series("state rows", query, operator)]

    def window(self, seconds: float) -> list[Point]:
        """The samples of the last seconds, oldest first, with `at_s` as seconds ago."""
        now = self._clock()
        with self._lock:
            return [Point(now - p.at_s, p.values) for p in self._points if now - p.at_s <= seconds]

    def still_s(self, *key: str) -> float | None:
        """Seconds for which the value has not changed; None if it has no samples."""
        series = self._series(*key)
        if not series:
            return None
        first_s, last = series[-1]
        for at_s, value in reversed(series):
            if value != last:
                break
            first_s = at_s
        return self._clock() - first_s

    def last(self, *key: str) -> int:
        """The newest value; 0 if there is none."""
        series = self._series(*key)
        return series[-1][1] if series else 0

    def growth(self, *key: str, seconds: float = RATE_WINDOW_S) -> int:
        """By how much the value has grown in the last seconds."""
        now = self._clock()
        values = [value for at_s, value in self._series(*key) if now - at_s <= seconds]
        return values[-1] - values[0] if values else 0

    def _series(self, *key: str) -> list[tuple[float, int]]:
        with self._lock:
            return [(p.at_s, p.values[key]) for p in self._points if key in p.values]

    def _slope(self, *key: str, per_s: int = 1) -> float | None:
        points = self._series(*key)
        if len(points) < 2:
            return None
        last_s, last = points[-1]
        first_s, first = next(p for p in points if last_s - p[0] <= RATE_WINDOW_S)
        return (last - first) / (last_s - first_s) * per_s if last_s > first_s else None


def _point(now: float, status: JobStatus) -> Point:
    at_ms = int(status.updated_at.timestamp() * 1000)
    values: dict[tuple[str, ...], int] = {}
    for query in status.queries:
        values |= {(what, query.name): value for what, value in _figures(query, at_ms)}
        for source in query.sources:
            key = ("offsets", query.name, source.table)
            values[key] = values.get(key, 0) + sum(p.offset for p in source.partitions)
        for bound, count in query.latency.counts.items():
            values["latency", query.name, bound] = count
        for operator in query.operators:
            rows = sum(side.rows for side in operator.sides)
            values["state rows", query.name, operator.id] = rows
            values["state bytes", query.name, operator.id] = operator.state_bytes
    return Point(now, values)


def _figures(query: QueryStatus, at_ms: int) -> Iterator[tuple[str, int]]:
    yield "rows in", query.input_rows_total
    yield "rows out", query.output_rows_total
    yield "lag", query.lag_records
    yield "rejects", sum(query.rejects.values())
    yield "late", query.late_rows_total
    yield "restarts", query.restarts_total
    yield "aborts", query.transactions_aborted_total
    if query.watermark_ms is not None and query.watermark_ms < END_MS:
        yield "watermark", query.watermark_ms
        yield "watermark delay", max(at_ms - query.watermark_ms, 0)

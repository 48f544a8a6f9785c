"""Samples of the status over the last hour, for rates and growth."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from spark_jobs.status import JobStatus

EVERY_S = 5.0
KEPT_S = 3600.0
RATE_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Point:
    """One sample: a number for each (what, query) and (what, query, operator)."""

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
    values: dict[tuple[str, ...], int] = {}
    for query in status.queries:
        values["rows in", query.name] = query.input_rows_total
        values["rows out", query.name] = query.output_rows_total
        for operator in query.operators:
            rows = sum(side.rows for side in operator.sides)
            values["state rows", query.name, operator.id] = rows
            values["state bytes", query.name, operator.id] = operator.state_bytes
    return Point(now, values)

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
    """One sample: totals by query, or by (query, operator)."""

    at_s: float
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    state_rows: dict[tuple[str, str], int]
    state_bytes: dict[tuple[str, str], int]


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
        return self._slope(lambda p: p.rows_in.get(query))

    def output_rate(self, query: str) -> float | None:
        return self._slope(lambda p: p.rows_out.get(query))

    def state_rows_per_minute(self, query: str, operator: str) -> float | None:
        return self._slope(lambda p: p.state_rows.get((query, operator)), per_s=60)

    def state_bytes_per_minute(self, query: str, operator: str) -> float | None:
        return self._slope(lambda p: p.state_bytes.get((query, operator)), per_s=60)

    def state_series(self, query: str, operator: str) -> list[tuple[float, int]]:
        """Samples as (seconds ago, rows), oldest first."""
        with self._lock:
            now = self._clock()
            key = (query, operator)
            return [(now - p.at_s, p.state_rows[key]) for p in self._points if key in p.state_rows]

    def _slope(self, value: Callable[[Point], int | None], per_s: int = 1) -> float | None:
        with self._lock:
            points = [(p.at_s, v) for p in self._points if (v := value(p)) is not None]
        if len(points) < 2:
            return None
        last_s, last = points[-1]
        first_s, first = next(p for p in points if last_s - p[0] <= RATE_WINDOW_S)
        return (last - first) / (last_s - first_s) * per_s if last_s > first_s else None


def _point(now: float, status: JobStatus) -> Point:
    operators = [(q.name, o) for q in status.queries for o in q.operators]
    return Point(
        now,
        {q.name: q.input_rows_total for q in status.queries},
        {q.name: q.output_rows_total for q in status.queries},
        {(name, o.id): sum(side.rows for side in o.sides) for name, o in operators},
        {(name, o.id): o.state_bytes for name, o in operators},
    )

"""How fast a query reads, and when it will have caught up, computed from successive statuses."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from spark_jobs.status import QueryStatus

_WINDOW = timedelta(seconds=30)  # several epochs: offsets change only at the end of an epoch
_MIN_SHOWN_S = 3.0


@dataclass(frozen=True, slots=True)
class Loading:
    """A table with initial content that probe rows wait for; `share` of it is read."""

    table: str
    share: float
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Records per second over all inputs, and the seconds until the lag is gone.

    None means not known yet. `caught_up_s` is also None if there is hardly any lag, or if the lag
    does not shrink.
    """

    rate: float | None = None
    caught_up_s: float | None = None
    loading: tuple[Loading, ...] = ()


@dataclass(frozen=True, slots=True)
class _Point:
    at: datetime
    read: int
    latest: int
    loaded: dict[str, int]


@dataclass(slots=True)
class ProgressTracker:
    """The progress of one query over the last half minute."""

    _points: deque[_Point] = field(default_factory=deque)

    def update(self, query: QueryStatus, at: datetime) -> Progress:
        """The progress up to the newest status; the same status may come again."""
        point = _point(query, at)
        if self._points and at < self._points[-1].at:  # the clock was set back
            self._points.clear()
        if not self._points or at > self._points[-1].at:
            self._points.append(point)
        while len(self._points) > 2 and at - self._points[1].at >= _WINDOW:
            self._points.popleft()
        first = self._points[0]
        seconds = (point.at - first.at).total_seconds()
        if seconds <= 0 or point.read <= first.read:
            return Progress(loading=tuple(_loading(query, first, 0)))
        rate = (point.read - first.read) / seconds
        shrinks = rate - max(point.latest - first.latest, 0) / seconds
        left_s = query.lag_records / shrinks if shrinks > 0 else None
        caught_up_s = left_s if left_s is not None and left_s >= _MIN_SHOWN_S else None
        return Progress(rate, caught_up_s, tuple(_loading(query, first, seconds)))


def _point(query: QueryStatus, at: datetime) -> _Point:
    partitions = [p for source in query.sources for p in source.partitions]
    loaded = {s.topic: s.load.read for s in query.sources if s.load is not None}
    read, latest = sum(p.offset for p in partitions), sum(p.latest_offset for p in partitions)
    return _Point(at, read, latest, loaded)


def _loading(query: QueryStatus, first: _Point, seconds: float) -> Iterator[Loading]:
    """The tables that are not loaded yet; `seconds` since `first`, 0 if nothing was read."""
    for source in query.sources:
        if (load := source.load) is not None and load.read < load.total:
            rate = (load.read - first.loaded.get(source.topic, 0)) / seconds if seconds else 0.0
            left_s = (load.total - load.read) / rate if rate else None
            yield Loading(source.table, load.read / load.total, left_s)


def duration_text(seconds: float) -> str:
    """A duration, rounded for people.

    >>> duration_text(39.6), duration_text(200), duration_text(8000)
    ('40 s', '3 min 20 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"

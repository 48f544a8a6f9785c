"""Throughput, latency, lag and watermark delay of each query over the last minutes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from service.history import RATE_WINDOW_S, History, Point
from service.models import QueryTrends, Trend
from spark_jobs.status import LATENCY_BOUNDS_MS

KEPT_S = 600.0
_SMOOTH = 6  # samples: half a minute, because an epoch can take longer than one
_MS = 1000.0


def trends(queries: Sequence[str], history: History) -> tuple[QueryTrends, ...]:
    """The charts of every query; a value that is not known is None."""
    points = history.window(KEPT_S)
    return tuple(_of_query(query, points) for query in queries)


def latencies(query: str, history: History) -> tuple[float | None, float | None]:
    """p50 and p99 in seconds of the results of the last minute; None if there were none."""
    counts = _counts(query, history.window(RATE_WINDOW_S))
    return quantile_s(counts, 0.5), quantile_s(counts, 0.99)


def quantile_s(counts: Mapping[str, int], share: float) -> float | None:
    """A quantile of a histogram by upper bounds in ms; linear within a bucket, as in Prometheus.

    >>> quantile_s({"100": 5, "150": 5}, 0.5), quantile_s({"150": 2}, 0.5)
    (0.1, 0.125)
    """
    wanted = sum(counts.values()) * share
    if wanted <= 0:
        return None
    below = 0
    for low, bound in pairwise((0, *LATENCY_BOUNDS_MS)):
        count = counts.get(str(bound), 0)
        if count and below + count >= wanted:
            return (low + (bound - low) * (wanted - below) / count) / _MS
        below += count
    return LATENCY_BOUNDS_MS[-1] / _MS


def _of_query(query: str, points: Sequence[Point]) -> QueryTrends:
    recent = [points[max(i - _SMOOTH, 0) : i + 1] for i in range(len(points))]
    counts = [_counts(query, window) for window in recent]
    ages = [p.at_s for p in points]

    def trend(name: str, unit: str, values: Sequence[float | None]) -> Trend:
        return Trend(name=name, unit=unit, points=tuple(zip(ages, values, strict=True)))

    delays = (p.values.get(("watermark delay", query)) for p in points)
    return QueryTrends(
        query=query,
        charts=(
            (
                trend("read", "/s", [_rate("rows in", query, window) for window in recent]),
                trend("written", "/s", [_rate("rows out", query, window) for window in recent]),
            ),
            (
                trend("latency p99", "s", [quantile_s(found, 0.99) for found in counts]),
                trend("p50", "s", [quantile_s(found, 0.5) for found in counts]),
            ),
            (trend("lag", "records", [p.values.get(("lag", query)) for p in points]),),
            (trend("watermark delay", "s", [None if ms is None else ms / _MS for ms in delays]),),
        ),
    )


def _rate(what: str, query: str, window: Sequence[Point]) -> float | None:
    found = [(p.at_s, p.values[what, query]) for p in window if (what, query) in p.values]
    if len(found) < 2:
        return None
    (first_ago, first), (last_ago, last) = found[0], found[-1]
    return max(last - first, 0) / (first_ago - last_ago) if first_ago > last_ago else None


def _counts(query: str, window: Sequence[Point]) -> dict[str, int]:
    """How many results of each latency the window has brought."""
    if not window:
        return {}
    bounds = [k for k in window[-1].values if k[:2] == ("latency", query)]
    first, last = window[0].values, window[-1].values
    return {key[2]: max(last[key] - first.get(key, 0), 0) for key in bounds}

"""The charts of the page: what they say of samples whose times the test holds."""

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from service.history import EVERY_S, History
from service.models import Trend
from service.trends import KEPT_S, latencies, quantile_s, trends
from spark_jobs.status import JobStatus, LatencyStatus, QueryStatus

Job = Callable[..., JobStatus]


class Past:
    """A history of one query, of whose totals the test gives the growth per sample."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._at_s = 0.0
        self._read = 0
        self._slow = 0
        self.history = History(lambda: self._at_s)

    def grow(self, samples: int, read: int = 0, slow: int = 0, **facts: int | None) -> None:
        for _ in range(samples):
            self._at_s += EVERY_S
            self._read += read
            self._slow += slow
            counts = {"100": 2 * self._read, "25000": self._slow} if self._read else {}
            query = QueryStatus.model_validate(
                {
                    "name": "q", "sink": "s", "input_rows_total": self._read,
                    "output_rows_total": 2 * self._read, "latency": LatencyStatus(counts=counts),
                    **facts,
                }
            )  # fmt: skip
            self.history.add(self._job(queries=(query,), started_at="2026-01-01T00:00:00Z"))

    def lines(self) -> dict[str, Trend]:
        [found] = trends(["q"], self.history)
        return {line.name: line for lines in found.charts for line in lines}


@pytest.fixture
def past(job: Job) -> Past:
    return Past(job)


def test_lines_are_rates_and_levels(past: Past) -> None:
    past.grow(20, read=50)
    lines = past.lines()
    assert [value for _, value in lines["read"].points] == [None] + [10.0] * 19
    assert lines["written"].points[-1] == (0.0, 20.0)
    assert lines["lag"].points[0] == (95.0, 0.0)
    assert {line.unit for line in lines.values()} == {"/s", "s", "records"}


def test_an_idle_query_has_no_latency(past: Past) -> None:
    past.grow(20, read=50)
    # as far as the histogram knows, the results lie evenly between 60 and 100 ms
    assert latencies("q", past.history) == (0.08, 0.0996)
    assert past.lines()["latency p99"].points[-1][1] == 0.0996
    past.grow(30, read=0)
    assert latencies("q", past.history) == (None, None)
    line = past.lines()["latency p99"].points
    assert line[-1][1] is None
    assert line[5][1] == 0.0996, "what it was stays in the chart"
    assert past.lines()["read"].points[-1][1] == 0.0


def test_a_few_slow_results_are_the_p99(past: Past) -> None:
    past.grow(20, read=50, slow=5)
    p50, p99 = latencies("q", past.history)
    assert p50 == pytest.approx(0.081)
    assert p99 == pytest.approx(22.9)


def test_the_chart_is_of_ten_minutes(past: Past) -> None:
    past.grow(500, read=1)
    assert past.lines()["read"].points[0][0] == KEPT_S
    assert len(past.lines()["read"].points) == KEPT_S / EVERY_S + 1


def test_quantiles() -> None:
    assert quantile_s({}, 0.5) is None
    assert quantile_s({"10": 4}, 0.5) == 0.005
    assert quantile_s({"+Inf": 3}, 0.5) == 3600.0
    assert quantile_s({"100": 1, "+Inf": 99}, 0.99) == 3600.0
    assert quantile_s({"100": 99, "150": 1}, 0.99) == 0.1


def test_over_http(client: TestClient, job: Job, write: Callable[[JobStatus], None]) -> None:
    assert client.get("/trends").json() == []
    write(job())
    [found] = client.get("/trends").json()
    assert found["query"] == "enriched"
    assert [[line["name"] for line in chart] for chart in found["charts"]] == [
        ["read", "written"], ["latency p99", "p50"], ["lag"], ["watermark delay"],
    ]  # fmt: skip

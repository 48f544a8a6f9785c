"""Rates over a clock that the test holds; plan and configuration as the driver left them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.history import EVERY_S, KEPT_S, History
from spark_jobs.job_record import GraphEdge, GraphNode, JobRecord, QueryRecord, write_job
from spark_jobs.status import JobStatus, OperatorStatus, QueryStatus, SideStatus

Write = Callable[[JobStatus | bytes], None]
Job = Callable[..., JobStatus]
RECORD = JobRecord(
    job="shop",
    config={"rejoin.key-groups": "128"},
    tables={"orders": {"topic": "shop.orders", "properties.sasl.jaas.config": "***"}},
    queries=(
        QueryRecord(
            name="enriched",
            nodes=(
                GraphNode(id="source-1", kind="source", title="orders", table="orders"),
                GraphNode(
                    id="j", kind="operator", title="RegularJoin", operator="join-0",
                    retention="for ever",
                ),
            ),
            edges=(GraphEdge(source="source-1", target="j", side="left"),),
            warnings=("state grows without bound",),
            text="== Logical Plan ==",
        ),
    ),
)  # fmt: skip


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def status(job: Job, rows: int, read: int) -> JobStatus:
    operator = OperatorStatus(
        id="join-0", kind="k", sides=(SideStatus(side="left", rows=rows),), state_bytes=rows * 10
    )
    query = QueryStatus(
        name="q", sink="s", input_rows_total=read, output_rows_total=2 * read, operators=(operator,)
    )
    return job(queries=(query,), started_at="2026-01-01T00:00:00Z")


def test_rates_are_those_of_the_last_minute(job: Job, clock: Clock) -> None:
    history = History(clock)
    for n in range(40):
        clock.now = n * EVERY_S
        # fast in the beginning, slow in the last minute
        rows = n * 1000 if n <= 27 else 27_000 + (n - 27) * 10
        history.add(status(job, rows, rows))
    assert history.input_rate("q") == 2.0
    assert history.output_rate("q") == 4.0
    assert history.state_rows_per_minute("q", "join-0") == 120.0
    assert history.state_bytes_per_minute("q", "join-0") == 1200.0
    assert history.input_rate("other") is None


def test_one_sample_tells_no_rate(job: Job, clock: Clock) -> None:
    history = History(clock)
    history.add(status(job, 1, 1))
    clock.now = EVERY_S / 2
    history.add(status(job, 5, 5))
    assert history.input_rate("q") is None
    assert history.state_series("q", "join-0") == [(EVERY_S / 2, 1)]


def test_a_new_driver_begins_a_new_history(job: Job, clock: Clock) -> None:
    history = History(clock)
    history.add(status(job, 100, 100))
    clock.now = EVERY_S
    history.add(status(job, 1, 1).model_copy(update={"pid": 8}))
    assert history.state_series("q", "join-0") == [(0.0, 1)]


def test_the_past_is_bounded(job: Job, clock: Clock) -> None:
    history = History(clock)
    for n in range(2000):
        clock.now = n * EVERY_S
        history.add(status(job, n, n))
    assert len(history.state_series("q", "join-0")) == KEPT_S / EVERY_S + 1


def test_state_and_queries(client: TestClient, folder: Path, write: Write, job: Job) -> None:
    write(job())
    write_job(folder, RECORD)
    [state] = client.get("/state").json()
    assert (state["operator"], state["title"], state["retention"]) == (
        "join-0", "RegularJoin", "for ever",
    )  # fmt: skip
    assert state["sides"] == [{"side": "left", "rows": 7}, {"side": "right", "rows": 2}]
    assert state["top_keys"] == "rejoin state top JOB.sql --operator join-0"
    [query] = client.get("/queries").json()
    assert (query["name"], query["lag_records"], query["rejects"]) == ("enriched", 4, {"json": 2})
    assert query["warnings"] == ["state grows without bound"]


def test_plan_and_config(client: TestClient, folder: Path) -> None:
    assert client.get("/plan").json() == []
    write_job(folder, RECORD)
    [plan] = client.get("/plan").json()
    assert plan["edges"] == [{"source": "source-1", "target": "j", "side": "left"}]
    assert client.get("/plan?format=text&query=enriched").text == "== Logical Plan ==\n"
    assert client.get("/plan?query=other").status_code == 404
    config = client.get("/config").json()
    assert config["tables"]["orders"]["properties.sasl.jaas.config"] == "***"


def test_lag_without_a_broker_is_the_drivers(client: TestClient, write: Write, job: Job) -> None:
    write(job())
    lag = client.get("/lag").json()
    assert (lag["measured"], lag["lag_records"]) == ("driver", 4)
    assert lag["problem"]["code"] == "broker_unreachable"
    assert client.get("/rows?query=enriched").json() == {
        "enabled": False, "problem": None, "rows": [],
    }  # fmt: skip

"""Why no result comes: the causes that the page names, over a clock that the test holds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.driver import DriverView
from service.history import EVERY_S, History
from service.models import Silence
from service.silence import QUIET_S, silence
from service.watermarks import watermarks
from spark_jobs.job_record import GraphNode, JobRecord, QueryRecord
from spark_jobs.status import (
    BootstrapStatus,
    ErrorStatus,
    JobStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    SourceStatus,
)

Job = Callable[..., JobStatus]
NOON_MS = 1_704_110_400_000


@dataclass
class Watched:
    """A query over orders and customers, seen every five seconds."""

    job: Job
    tells_time: bool = False
    now: float = 0.0
    history: History = field(init=False)
    status: JobStatus = field(init=False)

    def __post_init__(self) -> None:
        self.history = History(lambda: self.now)

    def goes_on(
        self, seconds: float, figures: Callable[[float], dict[str, Any]], **facts: Any
    ) -> "Watched":
        """`figures` are those of the query, by the seconds since the test began."""
        for _ in range(int(seconds / EVERY_S)):
            self.now += EVERY_S
            given = {"name": "q", "sink": "results", "epoch": 7, **figures(self.now)}
            self.status = self.job(
                queries=(QueryStatus(**given),), started_at="2026-01-01T00:00:00Z", **facts
            )
            self.history.add(self.status)
        return self

    def why(self) -> Silence | None:
        nodes = tuple(
            GraphNode(id=t, kind="source", title=t, table=t, tells_time=self.tells_time)
            for t in ("orders", "customers")
        )
        record = JobRecord(job="j", queries=(QueryRecord(name="q", nodes=nodes, edges=()),))
        [marks] = watermarks(self.status, record)
        [query] = self.status.queries
        return silence(DriverView(self.status, 0.1, None), query, marks, self.history)

    def reasons(self) -> dict[str, str]:
        found = self.why()
        assert found is not None
        return {reason.code: reason.message for reason in found.reasons}


@pytest.fixture
def watched(job: Job) -> Watched:
    return Watched(job)


def tables(
    orders: float,
    customers: float,
    lag: int = 0,
    marks: tuple[int | None, int | None] = (None, None),
) -> dict[str, Any]:
    """The sources, of one partition each; `marks` are their watermarks."""
    return {
        "sources": tuple(
            SourceStatus(
                table=table,
                topic=table,
                lag_records=lag,
                partitions=(
                    PartitionStatus(
                        partition=0,
                        offset=int(offset),
                        latest_offset=int(offset) + lag,
                        watermark_ms=watermark_ms,
                    ),
                ),
            )
            for table, offset, watermark_ms in (
                ("orders", orders, marks[0]),
                ("customers", customers, marks[1]),
            )
        ),
        "input_rows_total": int(orders) + int(customers),
    }


def test_nothing_is_said_while_results_come(watched: Watched) -> None:
    watched.goes_on(300, lambda s: tables(s, s) | {"output_rows_total": int(s)})
    assert watched.why() is None
    watched.goes_on(QUIET_S - EVERY_S, lambda s: tables(300, 300) | {"output_rows_total": 300})
    assert watched.why() is None
    watched.goes_on(60, lambda s: tables(300, 300) | {"output_rows_total": 300})
    found = watched.why()
    assert found is not None
    assert found.seconds == 85.0


def test_a_job_of_long_epochs_has_time(watched: Watched) -> None:
    watched.goes_on(120, lambda s: tables(1, 1) | {"trigger_ms": 60_000})
    assert watched.why() is None
    watched.goes_on(120, lambda s: tables(1, 1) | {"trigger_ms": 60_000})
    assert watched.why() is not None


def test_no_records_at_all(watched: Watched) -> None:
    watched.goes_on(65, lambda s: tables(5, 5))
    assert watched.reasons() == {
        "no_records": "no input has had a record for 60 s: orders, customers"
    }


def test_records_that_nobody_reads(watched: Watched) -> None:
    watched.goes_on(65, lambda s: tables(5, 5, lag=40))
    assert watched.reasons() == {"not_reading": "80 records wait, but none was read for 60 s"}


def test_one_input_is_idle(watched: Watched) -> None:
    watched.goes_on(200, lambda s: tables(s, 5))
    assert watched.reasons() == {
        "input_idle": "table customers has had no record for 3 min",
        "no_match": "60 rows were read in the last minute and changed no result: they found no"
        " match, were filtered, or wait for one",
    }


def test_a_standing_watermark_names_the_partition(watched: Watched) -> None:
    watched.tells_time = True
    watched.goes_on(
        125,
        lambda s: tables(s, s, marks=(NOON_MS + int(s), NOON_MS)) | {"watermark_ms": NOON_MS},
    )
    held = watched.reasons()["watermark_held"]
    assert held.startswith(
        "the watermark has stood for 2 min: partition 0 of topic customers (table customers) has"
        " the lowest watermark and no unread records. Set 'scan.watermark.idle-timeout'"
    )


def test_no_watermark_yet(watched: Watched) -> None:
    watched.tells_time = True
    watched.goes_on(65, lambda s: tables(s, s, marks=(NOON_MS, None)))
    held = watched.reasons()["watermark_held"]
    assert held.startswith("there is no watermark yet: partition 0 of topic customers")


def test_a_watermark_that_is_far_behind(watched: Watched) -> None:
    watched.tells_time = True
    long_ago = 1_000  # milliseconds since 1970
    watched.goes_on(
        65,
        lambda s: (
            tables(s, s, marks=(long_ago + int(s), long_ago + int(s)))
            | {"watermark_ms": long_ago + int(s)}
        ),
    )
    assert "behind the clock: newer rows wait for it" in watched.reasons()["watermark_behind"]


def test_a_gate_that_waits(watched: Watched) -> None:
    waiting = BootstrapStatus(
        partitions_loaded=0, partitions_total=2, waiting_rows=9, complete=False
    )
    join = OperatorStatus(id="q/join", kind="temporal-join", bootstrap=waiting)
    watched.goes_on(65, lambda s: tables(s, s) | {"operators": (join,)})
    message = "q: 0 of 2 partitions loaded, 9 rows wait for the build side"
    assert watched.reasons() == {"bootstrap_pending": message}


def test_an_epoch_that_does_not_end(watched: Watched) -> None:
    watched.goes_on(
        65, lambda s: tables(5, 5) | {"epoch_running_ms": int(s * 1000), "input_rows_total": 99}
    )
    assert watched.reasons() == {
        "epoch_unfinished": "epoch 8 has been running for 65 s: it has read its input, and its"
        " results are not committed; an operator is slow, or the topic of the sink does not take"
        " records"
    }


def test_a_query_that_is_restarted(watched: Watched) -> None:
    failure = ErrorStatus(code="KAFKA_FAILED", message="no leader")
    watched.goes_on(
        65, lambda s: tables(5, 5) | {"restarts_total": int(s / 30), "last_failure": failure}
    )
    assert watched.reasons() == {
        "restarting": "the query was restarted twice in a minute, last after KAFKA_FAILED: no"
        " leader"
    }


def test_a_sink_that_aborts(watched: Watched) -> None:
    watched.goes_on(65, lambda s: tables(5, 5) | {"transactions_aborted_total": int(s / 10)})
    message = "6 transactions of sink topic results were aborted in a minute"
    assert watched.reasons() == {"sink_stalled": message}


def test_everything_is_rejected(watched: Watched) -> None:
    watched.goes_on(65, lambda s: tables(s, 0) | {"rejects": {"json-malformed": int(s)}})
    message = "all 60 records of the last minute were rejected; so far json-malformed 65"
    assert watched.reasons() == {"rejected": message}


def test_late_rows_are_counted_apart(watched: Watched) -> None:
    watched.goes_on(65, lambda s: tables(s, s) | {"late_rows_total": int(s)})
    reasons = watched.reasons()
    assert reasons["late_rows"].startswith("60 rows of the last minute were behind the watermark")
    assert reasons["no_match"].startswith("60 rows were read")


def test_a_job_that_does_not_run_says_only_that(watched: Watched) -> None:
    error = ErrorStatus(code="X", message="gone")
    watched.goes_on(65, lambda s: tables(5, 5), state="failed", error=error)
    assert watched.reasons() == {"not_running": "failed: X gone"}

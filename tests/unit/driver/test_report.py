"""Spark's progress and the kernel's counters as a status record, and as a line for people."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.driver.console import JsonConsole, TextConsole, progress_line
from spark_jobs.driver.progress import Loading, Progress, ProgressTracker
from spark_jobs.driver.report import (
    JobReport,
    OperatorShape,
    QueryShape,
    query_status,
)
from spark_jobs.errors import KafkaError
from spark_jobs.kernel.calls import Counters, OperatorLevels
from spark_jobs.status import LookupStatus, QueryStatus, read_status

SHAPE = QueryShape(
    name="joined",
    sink="out",
    tables={"0-orders": "orders", "1-prices": "prices"},
    topics={"o": 0, "p": 1},
    operators=[
        OperatorShape(
            "joined/temporal-join",
            "temporal-join",
            sides=("left", "right"),
            tells_time=True,
            waits=True,
            gated=(1,),
        )
    ],
)
COUNTERS = Counters(
    {
        "joined": {
            "rows": {"orders": 10, "prices": 5},
            "lost": {"1-prices": 3},
            "rejects": {"orders": {"malformed": 2}, "prices": {"malformed": 1}},
            "written": 7,
            "partial": 2,
            "changes": {"+I": 5, "-U": 2},
            "operators": {
                "temporal-join": {
                    "rows": {"left": 5, "right": 2},
                    "late": 1,
                    "watermark": 1000,
                    "unknown-retractions": 3,
                    "open": 0,
                    "source": {
                        "0": {"watermark": 5000, "idle": 0, "loaded": 0},
                        "2": {"watermark": -(2**63), "idle": 1, "loaded": 0},
                        "65536": {"watermark": -(2**63), "idle": 0, "loaded": 1},
                        "65537": {"watermark": -(2**63), "idle": 0, "loaded": 0},
                    },
                }
            },
        },
        "elsewhere": {
            "rows": {"orders": 99},
            "lost": {"1-prices": 99},
            "rejects": {"orders": {"malformed": 99}},
            "changes": {"+I": 99},
        },
    },
    {
        "commits": {"joined": 4},
        "aborts": {"joined": 1},
        "registry": {"calls": 6, "failures": 2},
        "overflow": {"files": 3},
    },
)
PROGRESS = {
    "batchId": 4,
    "inputRowsPerSecond": 12.5,
    "processedRowsPerSecond": "NaN",
    "durationMs": {"triggerExecution": 321},
    "stateOperators": [{"customMetrics": {"rocksdbSstFileSize": 100}, "memoryUsedBytes": 11}],
    "sources": [
        {
            "description": "0-orders",
            "endOffset": {"o": {"0": 5, "10": 2, "2": 1}},
            "latestOffset": {"o": {"0": 8, "2": 1, "10": 3}},
        },
        {"description": "rejoin clock", "endOffset": {"time": 1}, "latestOffset": None},
    ],
}


def test_query_status_adds_up() -> None:
    found = query_status(SHAPE, PROGRESS, COUNTERS)
    assert (found.epoch, found.epochs_total, found.trigger_ms) == (4, 5, 321)
    assert (found.input_rows_total, found.output_rows_total) == (18, 7)
    assert found.partial_update_rows_total == 2
    assert found.changes == {"+I": 5, "-U": 2}
    assert (found.transactions_committed_total, found.transactions_aborted_total) == (4, 1)
    assert found.rejects == {"malformed": 3}
    assert found.lost_records_total == 3
    assert (found.input_rows_per_second, found.processed_rows_per_second) == (12.5, 0.0)
    assert found.late_rows_total == 1
    assert found.watermark_ms == 1000
    (operator,) = found.operators
    assert [(s.side, s.rows) for s in operator.sides] == [("left", 5), ("right", 2)]
    assert operator.state_bytes == 111
    assert operator.unknown_retractions == 3
    (source,) = found.sources
    assert (source.table, source.topic, source.lag_records) == ("orders", "o", 4)
    assert [p.partition for p in source.partitions] == [0, 2, 10]


def test_partitions_tell_their_own_time() -> None:
    (source,) = query_status(SHAPE, PROGRESS, COUNTERS).sources
    known = {p.partition: (p.watermark_ms, p.idle) for p in source.partitions}
    assert known == {0: (5000, False), 2: (None, True), 10: (None, False)}


def test_a_partition_may_have_reported_some_of_its_levels_only() -> None:
    levels: OperatorLevels = {
        "source": {"0": {"idle": 1}, "2": {"watermark": 7}, "65536": {"idle": 0}}
    }
    begun = Counters({"joined": {"operators": {"temporal-join": levels}}})
    found = query_status(SHAPE, PROGRESS, begun)
    (source,) = found.sources
    known = {p.partition: (p.watermark_ms, p.idle) for p in source.partitions}
    assert known == {0: (None, True), 2: (7, False), 10: (None, False)}
    bootstrap = found.operators[0].bootstrap
    assert bootstrap is not None
    assert (bootstrap.partitions_loaded, bootstrap.partitions_total) == (0, 1)


def test_bootstrap_counts_the_partitions_of_the_build_side() -> None:
    (operator,) = query_status(SHAPE, PROGRESS, COUNTERS).operators
    assert operator.bootstrap is not None
    assert (operator.bootstrap.partitions_loaded, operator.bootstrap.partitions_total) == (1, 2)
    assert operator.bootstrap.waiting_rows == 5
    assert not operator.bootstrap.complete
    assert not operator.bootstrap.timed_out


def test_bootstrap_says_when_the_time_and_not_the_load_has_opened_it() -> None:
    opened = Counters({"joined": {"operators": {"temporal-join": {"gate-timeouts": 1}}}})
    (operator,) = query_status(SHAPE, PROGRESS, opened).operators
    assert operator.bootstrap is not None
    assert operator.bootstrap.timed_out


def test_lookups_are_those_of_their_operator() -> None:
    asks = replace(SHAPE, operators=[replace(SHAPE.operators[0], id="joined/lookup", asks=True)])
    done = {"hits": 5, "misses": 4, "queries": 2, "waited-ms": 70}
    counters = Counters(
        {"joined": {"lookups": {"lookup": done, "other": {"hits": 99}}}},
        {"lookup-retries": {"joined/lookup": 3}, "lookup-failures": {"elsewhere/lookup": 9}},
    )
    (operator,) = query_status(asks, PROGRESS, counters).operators
    assert operator.lookups == LookupStatus(
        keys_cached=5, keys_asked=4, queries=2, retries=3, failures=0, waited_ms=70
    )
    assert query_status(SHAPE, PROGRESS, counters).operators[0].lookups is None


def test_query_status_before_the_first_epoch() -> None:
    found = query_status(SHAPE, None, Counters())
    assert (found.epoch, found.epochs_total, found.watermark_ms) == (None, 0, None)
    assert "epoch -" in progress_line(found, Progress())
    assert query_status(replace(SHAPE, epochs=9), None, Counters()).epochs_total == 9


def test_progress_line() -> None:
    line = progress_line(query_status(SHAPE, PROGRESS, COUNTERS), Progress())
    for part in ("epoch 4", "in 18", "out 7", "lag 4", "1970-01-01 00:00:01", "state 5 + 2 rows"):
        assert part in line


LOADS = {"p": {0: (10, 30), 1: (0, 60)}}


def reading(at_s: int, offsets: tuple[int, int], latest: int) -> tuple[QueryStatus, datetime]:
    """A status of that second, with the two partitions of the table that is loaded."""
    source = {
        "description": "1-prices",
        "endOffset": {"p": {"0": offsets[0], "1": offsets[1]}},
        "latestOffset": {"p": {"0": latest, "1": 100}},
    }
    shape = replace(SHAPE, loads=LOADS)
    found = query_status(shape, PROGRESS | {"sources": [source]}, COUNTERS)
    return found, datetime.fromtimestamp(at_s, UTC)


def test_rate_and_time_to_catch_up() -> None:
    tracker = ProgressTracker()
    assert tracker.update(*reading(0, (10, 0), 200)) == Progress(
        loading=(Loading("prices", 0.0, None),)
    )
    found, at = reading(10, (30, 30), 210)
    assert found.lag_records == 250
    progress = tracker.update(found, at)
    # 50 records read and 10 more to read: 4 a second gained; 30 of 80 still to be loaded
    assert progress == Progress(5.0, 62.5, (Loading("prices", 0.625, 6.0),))
    assert tracker.update(found, at) == progress
    line = progress_line(found, progress)
    assert "(5/s)" in line
    assert "caught up in 1 min 2 s" in line
    assert "loading: 62 % of the initial content of prices, 6 s left" in line


def test_no_time_to_catch_up_while_the_lag_grows() -> None:
    tracker = ProgressTracker()
    tracker.update(*reading(0, (10, 60), 100))
    progress = tracker.update(*reading(10, (40, 60), 200))
    assert progress == Progress(3.0, None, ())


def test_rate_of_the_last_half_minute() -> None:
    tracker = ProgressTracker()
    tracker.update(*reading(0, (10, 60), 1000))
    for at_s in (40, 80):
        progress = tracker.update(*reading(at_s, (at_s * 10, 60), 1000))
    assert progress.rate == 10.0


def test_programs_read_lines(tmp_path: Path) -> None:
    out = io.StringIO()
    console = JsonConsole(out)
    status = JobReport("orders", tmp_path, [SHAPE]).write("running", COUNTERS, {"joined": PROGRESS})
    console.say("hello")
    console.show(status)
    console.show(status)
    note, progress = map(json.loads, out.getvalue().splitlines())
    assert note == {"event": "note", "text": "hello"}
    assert (progress["event"], progress["queries"][0]["rows_out"]) == ("progress", 7)


def test_report_keeps_what_it_knew_when_the_job_fails(tmp_path: Path) -> None:
    report = JobReport("orders", tmp_path, [SHAPE])
    report.write("running", COUNTERS, {"joined": PROGRESS})
    report.write("failed", error=KafkaError("KAFKA_UNREACHABLE", "gone", hint="start it"))
    found = read_status(tmp_path)
    assert found is not None
    assert (found.state, found.queries[0].epoch) == ("failed", 4)
    assert found.error is not None
    assert (found.error.code, found.error.hint) == ("KAFKA_UNREACHABLE", "start it")
    assert (found.registry_calls_total, found.registry_failures_total) == (6, 2)
    assert found.overflow_files_total == 3


def test_wait_for_a_registry_is_told(tmp_path: Path) -> None:
    report = JobReport("orders", tmp_path, [SHAPE])
    waits = {"http://b": 1_600_000_001_000, "http://a": 1_600_000_000_000}
    out = io.StringIO()
    TextConsole(out).show(report.write("running", COUNTERS, {}, waits=waits))
    found = read_status(tmp_path)
    assert found is not None
    assert found.registry_waiting_since == datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)
    assert "waiting for the schema registry since 12:26:40" in out.getvalue()
    assert report.write("running", COUNTERS, {}).registry_waiting_since is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_console_renews_its_line_only_on_a_terminal(out: io.StringIO, tmp_path: Path) -> None:
    status = JobReport("orders", tmp_path, [SHAPE]).write("running", COUNTERS, {})
    console = TextConsole(out)
    console.show(status)
    console.show(status)
    console.say("done")
    text = out.getvalue()
    assert text.endswith("done\n")
    assert ("\x1b" in text) == out.isatty()
    assert text.count("joined") == (2 if out.isatty() else 1)


def test_a_clock_that_is_set_back_starts_a_new_measurement() -> None:
    tracker = ProgressTracker()
    tracker.update(*reading(5000, (10, 60), 1000))
    tracker.update(*reading(0, (20, 60), 1000))
    assert tracker.update(*reading(10, (120, 60), 1000)).rate == 10.0

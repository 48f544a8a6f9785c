"""The parts of `bench.object_store` that read what a run leaves behind."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.measure import BenchError
from bench.object_store import Epoch, Run, epochs_of, requests_per_epoch

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def event(second: int, rows: int, ms: int) -> str:
    """As Spark logs it; its times are UTC."""
    progress = {
        "timestamp": f"2024-01-01T12:00:{second:02d}.000Z",
        "durationMs": {"triggerExecution": ms, "walCommit": ms // 10},
        "sources": [{"numInputRows": rows}, {"numInputRows": 0}],
    }
    name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    return json.dumps({"Event": name, "progress": progress})


def test_cold_and_empty_epochs_do_not_count(tmp_path: Path) -> None:
    lines = [event(n, 10, 100 * (n + 1)) for n in range(5)] + [event(9, 0, 9000)]
    (tmp_path / "local-1").write_text("\n".join(['{"Event":"SparkListenerLogStart"}', *lines]))
    epochs = epochs_of(tmp_path)
    assert [epoch.began - NOON for epoch in epochs] == [timedelta(seconds=n) for n in (2, 3, 4)]
    run = Run(epochs, {})
    assert (run.median_ms("triggerExecution"), run.median_ms("walCommit")) == (400, 40)


def test_a_run_of_cold_epochs_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "local-1").write_text(event(0, 10, 100))
    with pytest.raises(BenchError, match="1 epochs: too few"):
        epochs_of(tmp_path)


def test_requests_of_the_warm_epochs_are_counted() -> None:
    def line(second: int, request: str) -> str:
        at = (NOON + timedelta(seconds=second)).astimezone().strftime("%d/%b/%Y %H:%M:%S")
        return f'127.0.0.1 - - [{at}] "{request} HTTP/1.1" 200 -'

    log = "\n".join(
        [
            line(0, "PUT /bucket/job/before"),
            *(line(second, f"PUT /bucket/job/{second}") for second in (2, 3, 3, 4)),
            line(3, "GET /bucket?list-type=2&prefix=job"),
            line(4, "GET /bucket/job/3"),
            line(9, "DELETE /bucket/job/after"),
        ]
    )
    epochs = [Epoch(NOON + timedelta(seconds=n), {"triggerExecution": 1000}) for n in (2, 4)]
    assert requests_per_epoch(log, epochs) == {"PUT": 2.0, "LIST": 0.5, "GET": 0.5}

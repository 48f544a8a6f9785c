"""The addresses over a driver that works, has not begun, has stopped, lies, or is silent."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.files import MAX_BYTES
from spark_jobs.status import (
    STATUS_FILE,
    BootstrapStatus,
    ErrorStatus,
    JobStatus,
    OperatorStatus,
    QueryStatus,
)

Write = Callable[[JobStatus | bytes], None]
Job = Callable[..., JobStatus]


def unready(client: TestClient) -> dict[str, str]:
    answer = client.get("/health/ready")
    body = answer.json()
    assert body["ok"] == (not body["reasons"])
    assert answer.status_code == (200 if body["ok"] else 503)
    return {reason["code"]: reason["message"] for reason in body["reasons"]}


def test_ready_when_running_and_past_the_first_epoch(
    client: TestClient, write: Write, job: Job
) -> None:
    write(job())
    assert unready(client) == {}


def test_alive_without_any_driver(client: TestClient) -> None:
    assert client.get("/health/live").json() == {"ok": True, "reasons": []}
    assert list(unready(client)) == ["status_missing"]
    assert client.get("/status").json()["status"] is None
    assert "rejoin_status_errors_total 0.0" in client.get("/metrics").text


@pytest.mark.parametrize("state", ["starting", "draining", "stopped", "failed"])
def test_not_ready_in_other_states(client: TestClient, write: Write, job: Job, state: str) -> None:
    write(job(state=state))
    assert unready(client) == {"not_running": state}


def test_a_failure_says_why(client: TestClient, write: Write, job: Job) -> None:
    error = ErrorStatus(code="KAFKA_GONE", message="no broker")
    write(job(state="failed", error=error))
    assert unready(client) == {"not_running": "failed: KAFKA_GONE no broker"}
    assert 'rejoin_job_error_info{code="KAFKA_GONE"} 1.0' in client.get("/metrics").text


def test_not_ready_before_the_first_epoch(client: TestClient, write: Write, job: Job) -> None:
    write(job(queries=(QueryStatus(name="a", sink="s"), QueryStatus(name="b", sink="t"))))
    assert unready(client) == {"first_epoch_pending": "no epoch yet in a, b"}


def test_not_ready_while_probe_rows_wait_for_their_build_side(
    client: TestClient, write: Write, job: Job
) -> None:
    waiting = BootstrapStatus(
        partitions_loaded=1, partitions_total=4, waiting_rows=12, complete=False
    )
    join = OperatorStatus(id="q/1", kind="temporal-join", bootstrap=waiting)
    write(
        job(queries=(QueryStatus(name="q", sink="s", epoch=1, epochs_total=2, operators=(join,)),))
    )
    message = "q: 1 of 4 partitions loaded, 12 rows wait for the build side"
    assert unready(client) == {"bootstrap_pending": message}
    done = join.model_copy(update={"bootstrap": waiting.model_copy(update={"complete": True})})
    write(
        job(queries=(QueryStatus(name="q", sink="s", epoch=1, epochs_total=2, operators=(done,)),))
    )
    assert unready(client) == {}


@pytest.mark.parametrize("shift_s", [-3600, 3600])
def test_a_silent_driver_and_a_wrong_clock_are_not_ready(
    client: TestClient, write: Write, job: Job, shift_s: int
) -> None:
    write(job(updated_at=datetime.now(UTC) + timedelta(seconds=shift_s)))
    assert list(unready(client)) == ["status_stale"]
    state = client.get("/status").json()
    assert state["status"]["job"] == "shop"
    assert abs(state["age_seconds"] + shift_s) < 60


def test_a_time_without_zone_is_utc(client: TestClient, write: Write, job: Job) -> None:
    write(job(updated_at=datetime.now(UTC).replace(tzinfo=None)))
    assert unready(client) == {}


BAD_FILES = {
    "empty": b"",
    "half": b'{"version":1,"job":"sh',
    "not json": b"\x00\xff\xfe",
    "not an object": b"[1,2]",
    "another version": b'{"version":2}',
    "deep": b"[" * 200_000,
    "a huge number": b'{"version":1,"pid":' + b"9" * 10_000 + b"}",
    "too large": b'{"job":"' + b"x" * MAX_BYTES + b'"}',
    "a number beyond the JVM's": b'{"version":1,"pid":9223372036854775808}',
}


@pytest.mark.parametrize("data", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_keeps_the_last_good_status(
    client: TestClient, write: Write, job: Job, data: bytes
) -> None:
    write(job())
    assert unready(client) == {}
    write(data)
    assert list(unready(client)) == ["status_unreadable"]
    assert client.get("/health/live").status_code == 200
    assert client.get("/status").json()["status"]["job"] == "shop"
    metrics = client.get("/metrics").text
    assert 'rejoin_epochs_total{query="enriched"} 4.0' in metrics
    assert "rejoin_status_errors_total 0.0" not in metrics
    write(job())
    assert unready(client) == {}


def test_the_words_of_a_bad_file_are_not_repeated(client: TestClient, write: Write) -> None:
    write(b'{"version":1,"job":["<script>"]}')
    assert "script" not in client.get("/health/ready").text


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_what_is_no_file_does_not_hold_the_sidecar(
    client: TestClient, folder: Path, kind: str
) -> None:
    path = folder / STATUS_FILE
    folder.mkdir()
    makers: dict[str, Callable[[Path], Any]] = {
        "folder": Path.mkdir,
        "pipe": os.mkfifo,
        "link": lambda p: p.symlink_to("/dev/zero"),
    }
    makers[kind](path)
    assert list(unready(client)) == ["status_unreadable"]


def test_numbers_that_json_lacks(client: TestClient, write: Write, job: Job) -> None:
    text = job().model_dump_json()
    write(text.replace('"input_rows_per_second":0.0', '"input_rows_per_second":NaN').encode())
    assert unready(client) == {}
    state = client.get("/status").json()
    assert state["status"]["queries"][0]["input_rows_per_second"] == 0


def test_a_driver_that_is_newer(client: TestClient, write: Write, job: Job) -> None:
    write(job().model_dump_json().replace("{", '{"of_tomorrow":1,', 1).encode())
    assert unready(client) == {}


def test_nothing_else_is_served(client: TestClient) -> None:
    assert client.get("/docs").status_code == 404
    assert client.post("/state").status_code == 405

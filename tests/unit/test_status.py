"""The status record: written in one step, read by whoever has an older or newer version."""

import json
from pathlib import Path

from spark_jobs.status import (
    STATUS_FILE,
    BuildStatus,
    ErrorStatus,
    JobStatus,
    QueryStatus,
    SourceStatus,
    now,
    read_status,
    write_status,
)


def status(**fields: object) -> JobStatus:
    base = JobStatus(
        job="orders",
        pid=7,
        started_at=now(),
        updated_at=now(),
        state="running",
        build=BuildStatus(version="1"),
    )
    return base.model_copy(update=fields)


def test_round_trip(tmp_path: Path) -> None:
    sources = (SourceStatus(table="a", topic="a", lag_records=3),) * 2
    written = status(
        queries=(QueryStatus(name="q", sink="out", rejects={"malformed": 2}, sources=sources),),
        error=ErrorStatus(code="X", message="no"),
    )
    write_status(tmp_path / "new", written)
    found = read_status(tmp_path / "new")
    assert found == written
    assert found.queries[0].lag_records == 6


def test_absent_record(tmp_path: Path) -> None:
    assert read_status(tmp_path) is None


def test_replacing_leaves_no_draft_behind(tmp_path: Path) -> None:
    for state in ("starting", "running"):
        write_status(tmp_path, status(state=state))
    assert [p.name for p in tmp_path.iterdir()] == [STATUS_FILE]


def test_fields_of_a_newer_driver_are_ignored(tmp_path: Path) -> None:
    write_status(tmp_path, status())
    path = tmp_path / STATUS_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mood": "fine"}))
    assert read_status(tmp_path) is not None

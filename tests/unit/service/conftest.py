"""A status directory whose file a test can write well or badly."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.main import create_app
from service.settings import Settings
from spark_jobs.status import (
    STATUS_FILE,
    BuildStatus,
    JobStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    SideStatus,
    SourceStatus,
    write_status,
)

QUERY = QueryStatus(
    name="enriched",
    sink="enriched_orders",
    epoch=3,
    epochs_total=4,
    trigger_ms=250,
    input_rows_total=100,
    output_rows_total=90,
    changes={"+I": 80, "-U": 5, "+U": 5},
    transactions_committed_total=8,
    transactions_aborted_total=1,
    rejects={"json": 2},
    late_rows_total=1,
    sources=(
        SourceStatus(
            table="orders",
            topic="shop.orders",
            partitions=(
                PartitionStatus(
                    partition=0, offset=5, latest_offset=9, watermark_ms=1_704_067_200_000
                ),
                PartitionStatus(partition=1, offset=7, latest_offset=7),
            ),
            lag_records=4,
        ),
    ),
    operators=(
        OperatorStatus(
            id="join-0",
            kind="regular-join",
            sides=(SideStatus(side="left", rows=7), SideStatus(side="right", rows=2)),
            state_bytes=99,
        ),
    ),
    durations_ms={"addBatch": 200},
)


@pytest.fixture
def job() -> Callable[..., JobStatus]:
    """A running job that has just said so, but for the given changes."""

    def build(**changes: Any) -> JobStatus:
        now = datetime.now(UTC)
        facts: dict[str, Any] = {
            "job": "shop",
            "pid": 7,
            "started_at": now,
            "updated_at": now,
            "state": "running",
            "build": BuildStatus(version="1.2.3"),
            "queries": (QUERY,),
        }
        return JobStatus(**facts | changes)

    return build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "status"


@pytest.fixture
def write(folder: Path) -> Callable[..., None]:
    """Writes a status as the driver does, or any bytes in its place."""

    def put(status: JobStatus | bytes) -> None:
        if isinstance(status, JobStatus):
            write_status(folder, status)
        else:
            folder.mkdir(exist_ok=True)
            (folder / STATUS_FILE).write_bytes(status)

    return put


@pytest.fixture
def client(folder: Path) -> TestClient:
    return TestClient(create_app(Settings(status_dir=folder, stale_after_s=30.0)))

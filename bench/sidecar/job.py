"""Writes the status of a pretended job, as large as a real one and changing every second."""

import itertools
import time
from datetime import UTC, datetime
from pathlib import Path

from spark_jobs.status import (
    BuildStatus,
    JobStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    SideStatus,
    SourceStatus,
    now,
    write_status,
)

EVERY_S = 1.0
_BEGAN = datetime(2024, 1, 31, 12, tzinfo=UTC)
_PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


def keep_changing(folder: str, partitions: int) -> None:
    """Write a new status every second until the process is stopped."""
    for epoch in itertools.count(1):
        write_status(Path(folder), status(epoch, partitions))
        time.sleep(EVERY_S)


def status(epoch: int, partitions: int) -> JobStatus:
    """A status with three queries, each joining two tables with so many partitions."""
    queries = tuple(_query(f"query_{n}", n, epoch, partitions) for n in range(3))
    return JobStatus(
        job="bench",
        pid=7,
        started_at=_BEGAN,
        updated_at=now(),
        state="running",
        build=BuildStatus(version="bench"),
        queries=queries,
    )


def _query(name: str, number: int, epoch: int, partitions: int) -> QueryStatus:
    tables = [f"table_{2 * number + side}" for side in range(2)]
    at = epoch * 10_000
    sides = (SideStatus(side="left", rows=at), SideStatus(side="right", rows=at // 2))
    join = OperatorStatus(
        id=f"{name}/temporal-join", kind="temporal-join", sides=sides, state_bytes=at * 80
    )
    return QueryStatus(
        name=name,
        sink=f"sink_{number}",
        epoch=epoch,
        epochs_total=epoch,
        trigger_ms=200 + epoch % 100,
        input_rows_total=at * 2,
        output_rows_total=at,
        changes={"+I": at, "-U": epoch, "+U": epoch, "-D": epoch // 2},
        rejects={"json-malformed": epoch, "null-record-key": epoch // 3},
        sources=tuple(_source(table, at, partitions) for table in tables),
        operators=(join,),
        durations_ms=dict.fromkeys(_PHASES, epoch % 300),
        watermark_ms=1_706_702_400_000 + epoch * 1000,
    )


def _source(table: str, at: int, partitions: int) -> SourceStatus:
    parts = tuple(
        PartitionStatus(
            partition=p,
            offset=at + p,
            latest_offset=at + p * 2,
            watermark_ms=1_706_702_400_000 + at,
        )
        for p in range(partitions)
    )
    return SourceStatus(table=table, topic=f"bench.{table}", partitions=parts, lag_records=at)

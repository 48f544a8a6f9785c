"""Which partition holds a watermark back, and what the sidecar says about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from spark_jobs.job_record import GraphNode, JobRecord, QueryRecord, write_job
from spark_jobs.status import JobStatus, PartitionStatus, QueryStatus, SourceStatus

Write = Callable[[JobStatus | bytes], None]
Job = Callable[..., JobStatus]
NOON_MS = 1_704_110_400_000


@pytest.fixture
def held(
    client: TestClient, folder: Path, write: Write, job: Job
) -> Callable[..., list[dict[str, Any]]]:
    """What holds back a query over one table with these partitions."""

    def ask(*partitions: PartitionStatus, **facts: Any) -> list[dict[str, Any]]:
        source = SourceStatus(table="orders", topic="shop.orders", partitions=partitions)
        write(job(queries=(QueryStatus(name="q", sink="s", sources=(source,)),)))
        node = {"id": "source-1", "kind": "source", "title": "orders", "table": "orders"}
        nodes = (GraphNode(**{**node, "tells_time": True, **facts}),)
        record = QueryRecord(name="q", nodes=nodes, edges=())
        write_job(folder, JobRecord(job="shop", queries=(record,)))
        [query] = client.get("/watermarks").json()
        found: list[dict[str, Any]] = query["held_back_by"]
        return found

    return ask


def partition(number: int, at_ms: int | None, **facts: Any) -> PartitionStatus:
    given = {"offset": 5, "latest_offset": 5, "watermark_ms": at_ms, **facts}
    return PartitionStatus(partition=number, **given)


def test_the_slowest_partition_is_named(held: Callable[..., list[dict[str, Any]]]) -> None:
    found = held(partition(0, NOON_MS + 5), partition(1, NOON_MS), partition(2, NOON_MS + 9))
    assert [h["partition"]["partition"] for h in found] == [1]
    assert found[0]["reason"] == (
        "partition 1 of topic shop.orders (table orders) has the lowest watermark and no unread"
        " records"
    )
    assert "'scan.watermark.idle-timeout' = '30 s'" in found[0]["advice"]


def test_a_partition_that_never_spoke_holds_back_more(
    held: Callable[..., list[dict[str, Any]]],
) -> None:
    found = held(partition(0, NOON_MS), partition(1, NOON_MS + 1), partition(2, None))
    assert [h["partition"]["partition"] for h in found] == [2]
    assert "has sent no event time yet" in found[0]["reason"]


def test_an_idle_partition_holds_nothing_back(held: Callable[..., list[dict[str, Any]]]) -> None:
    found = held(partition(0, NOON_MS), partition(1, None, idle=True), partition(2, NOON_MS + 1))
    assert [h["partition"]["partition"] for h in found] == [0]


def test_time_stands_still_when_all_are_idle(held: Callable[..., list[dict[str, Any]]]) -> None:
    [only] = held(partition(0, NOON_MS, idle=True), partition(1, None, idle=True))
    assert "event time stops until a record arrives" in only["reason"]


def test_the_declared_timeout_is_said(held: Callable[..., list[dict[str, Any]]]) -> None:
    [only] = held(partition(0, None), idle_timeout_ms=5000)
    assert only["advice"].endswith("once it has been silent for 5 s")


def test_a_backlog_needs_no_timeout(held: Callable[..., list[dict[str, Any]]]) -> None:
    [only] = held(partition(0, NOON_MS, latest_offset=95))
    assert "90 unread records" in only["reason"]
    assert "idle-timeout" not in only["advice"]


def test_a_table_without_a_follower_counts_for_nothing(
    held: Callable[..., list[dict[str, Any]]],
) -> None:
    assert held(partition(0, None), tells_time=False) == []


def test_ended_inputs_hold_nothing_back(held: Callable[..., list[dict[str, Any]]]) -> None:
    assert held(partition(0, 2**63 - 1)) == []

"""The rows on their way between two tasks of real-time mode, with threads for the tasks."""

import time
from typing import Any

import pytest

from tests.harness.gateway import jvm

WAIT_S = 60.0
MOST_BYTES = 4 << 20  # RowQueue.MostBytes
ROW_BYTES = 1 << 10
FILLING = 3 * MOST_BYTES // ROW_BYTES


def queue(writers: int) -> Any:
    return jvm().org.apache.spark.sql.rejoin.run.RowQueueRun(writers)


def until(thread: Any, *states: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while (state := thread.getState().name()) not in states:
        assert time.monotonic() < deadline, state
        time.sleep(0.01)


def full(rows: Any) -> Any:
    """A writer that waits, as the queue has as much as it takes."""
    writer = rows.write(0, FILLING, ROW_BYTES)
    until(writer, "TIMED_WAITING")
    return writer


def read_all(rows: Any) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while taken := [(writer, number) for writer, number in rows.take()]:
        found += taken
    return found


@pytest.mark.parametrize("size", [24, ROW_BYTES])
def test_rows_of_each_writer_come_in_its_order(size: int) -> None:
    rows, count = queue(3), 6_000
    threads = [rows.write(writer, count, size) for writer in range(3)]
    found = read_all(rows)
    for writer in range(3):
        assert [number for at, number in found if at == writer] == list(range(count))
    assert len(found) == 3 * count
    for thread in threads:
        until(thread, "TIMED_WAITING")  # until the reader leaves
    rows.leave()
    for thread in threads:
        until(thread, "TERMINATED")
    assert rows.failure() is None


def test_a_writer_waits_until_its_rows_are_taken() -> None:
    rows = queue(1)
    full(rows)
    assert rows.addedBytes() == MOST_BYTES
    assert [number for _, number in read_all(rows)] == list(range(FILLING))


def test_a_row_that_is_larger_than_the_queue_passes() -> None:
    rows = queue(1)
    rows.write(0, 2, 2 * MOST_BYTES)
    assert read_all(rows) == [(0, 0), (0, 1)]


def test_nobody_waits_for_a_reader_that_has_left() -> None:
    rows = queue(1)
    writer = full(rows)
    rows.leave()
    until(writer, "TERMINATED")
    assert rows.failure() is None


def test_a_killed_task_waits_no_longer() -> None:
    rows = queue(1)
    writer = full(rows)
    rows.kill()
    until(writer, "TERMINATED")
    assert rows.failure().getClass().getSimpleName() == "TaskKilledException"
    read = rows.take()
    assert len(read) == MOST_BYTES // ROW_BYTES
    with pytest.raises(Exception, match="TaskKilledException"):
        rows.take()  # the writer has not ended

"""When a step of real-time mode ends."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.gateway import jvm

EVERY_MS = 10
NEVER = 2**63 - 1


@pytest.fixture
def barriers(tmp_path: Path) -> Any:
    ingest: Any = jvm().org.apache.spark.sql.rejoin.ingest
    return ingest.Barriers(EVERY_MS, ingest.BarrierLog.of(str(tmp_path), 0))


def test_a_step_ends_some_time_after_its_first_row(barriers: Any) -> None:
    assert barriers.endOf(0) == NEVER
    barriers.begin(0, 100)
    barriers.begin(0, 105)  # of another reader
    assert barriers.endOf(0) == 100 + EVERY_MS
    barriers.begin(1, 120)  # of a reader that has ended it
    assert barriers.endOf(0) == 0


def test_a_step_does_not_end_before_all_writers_have_committed_the_one_before_it(
    barriers: Any,
) -> None:
    barriers.begin(0, 0)
    for writer in (0, 1):
        barriers.commit(writer, 0)
    barriers.begin(1, 100)
    assert barriers.endOf(1) == 100 + EVERY_MS
    barriers.begin(2, 200)
    for writer in (0, 1):
        assert barriers.endOf(2) == NEVER
        barriers.commit(writer, 1)
    assert barriers.endOf(2) == 200 + EVERY_MS

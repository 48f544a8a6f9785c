"""Real-time mode before its query starts: slots, the pace of watermarks, epochs without ledgers."""

from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.driver.real_time import Slots, check_checkpoint, check_master, marks_ms
from spark_jobs.errors import ConfigError
from spark_jobs.streaming.manifest import VERSION, Manifest

# of one table with more partitions than it has readers, and one with fewer
SLOTS = Slots(partitions=(8, 1), clocks=1, operators=("regular-join", "materializer"), tasks=4)


def manifest(unledgered: int | None, rescaled: tuple[int, int] | None = None) -> Manifest:
    return Manifest(
        version=VERSION,
        checkpoint="c",
        query="q",
        topics=(),
        groups=128,
        parallelism=2,
        state="",
        scans={},
        unledgered=unledgered,
        rescaled=rescaled,
    )


def test_every_task_needs_a_slot() -> None:
    assert SLOTS.needed == (2 + 1) + 1 + 4 * 2
    assert SLOTS.with_room == SLOTS.needed + 1
    check_master(f"local[{SLOTS.needed}]", "q", SLOTS)
    with pytest.raises(ConfigError, match=r"needs 12 task slots.*local.8. has 8") as refused:
        check_master("local[8]", "q", SLOTS)
    assert "3 for reading Kafka + 1 for clocks + 4 for regular-join" in refused.value.message
    assert "local[13]" in (refused.value.hint or "")


def test_executors_are_refused() -> None:
    with pytest.raises(ConfigError, match="REAL_TIME_MASTER"):
        check_master("local-cluster[9,9,1024]", "q", SLOTS)


@pytest.mark.parametrize(
    ("partitions", "groups", "expected"), [(2, 128, 20), (8, 128, 51), (8, 16, 20), (100, 128, 640)]
)
def test_watermarks_stay_within_their_budget(partitions: int, groups: int, expected: int) -> None:
    assert marks_ms(20, partitions, groups) == expected


@pytest.mark.parametrize(
    ("unledgered", "rescaled", "since"),
    [(None, None, 9), (4, None, 4), (4, (7, 9), 4), (None, (7, 9), 7)],
)
def test_an_epoch_without_ledgers_is_where_the_next_ones_begin(
    unledgered: int | None, rescaled: tuple[int, int] | None, since: int
) -> None:
    """A ledger is behind by the epochs that were written without one, and by no others."""
    assert manifest(unledgered, rescaled).since(9) == since


def test_an_epoch_begun_with_ledgers_may_stand_in_one() -> None:
    """Also where a run without ledgers has begun it again."""
    assert manifest(None).may_be_ledgered(4)
    assert manifest(4).may_be_ledgered(4)
    assert not manifest(4).may_be_ledgered(5)


def test_transactions_need_a_checkpoint_on_a_disk() -> None:
    folder: Any = SimpleNamespace(path="s3a://bucket/checkpoint/q")
    with pytest.raises(ConfigError, match="REAL_TIME_CHECKPOINT"):
        check_checkpoint(folder, "q")
    folder.path = "file:///checkpoint/q"
    check_checkpoint(folder, "q")

"""Tables of one alignment group: who waits for whom."""

import json
import uuid
from typing import Any

import pytest

from tests.harness.gateway import jvm

DRIFT_MS = 1000
FAST, SLOW, THIRD = 0, 1, 2


class Group:
    """Tables of a group of its own, by topic index; an operator of each tells its watermark."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._kernel: Any = jvm().org.apache.spark.sql.rejoin
        self._counters = self._kernel.run.Counters()
        self._epoch = 0

    def reads(self, topic: int, watermark: int | None, has_more: bool = True) -> None:
        described = {"group": self._mark, "maxDriftMs": DRIFT_MS, "query": "q", "topics": [topic]}
        alignment = self._kernel.ingest.Alignment.read(json.dumps(described))
        self._kernel.ingest.Alignment.report(self._name(topic), alignment, has_more)
        if watermark is not None:
            self.level(topic, 0, "watermark", watermark)

    def level(self, topic: int, partition: int, what: str, value: int, query: str = "q") -> None:
        self._epoch += 1
        source = topic * 65536 + partition
        self._counters.sourceLevel(query, "join", source, what, self._epoch, value)

    def is_ahead(self, topic: int) -> bool:
        return bool(self._kernel.ingest.Alignment.isAhead(self._name(topic), self._counters))

    def forget(self, topic: int) -> None:
        self._kernel.ingest.Alignment.forget(self._name(topic))

    def _name(self, topic: int) -> str:
        return f"{self._mark}/{topic}"


@pytest.fixture
def group() -> Group:
    return Group()


def test_the_fast_table_waits_and_the_slow_one_does_not(group: Group) -> None:
    group.reads(FAST, 10_001)
    group.reads(SLOW, 9_000)
    assert group.is_ahead(FAST)
    assert not group.is_ahead(SLOW)
    group.reads(SLOW, 9_001)
    assert not group.is_ahead(FAST)


def test_the_slowest_partition_speaks_unless_it_is_idle(group: Group) -> None:
    group.reads(FAST, 10_000)
    group.reads(SLOW, 10_000)
    group.level(SLOW, 1, "watermark", 5_000)
    assert group.is_ahead(FAST)
    group.level(SLOW, 1, "idle", 1)
    assert not group.is_ahead(FAST)


def test_a_query_whose_name_goes_on_behind_a_slash_is_another(group: Group) -> None:
    group.reads(FAST, 10_001)
    group.reads(SLOW, 9_000)
    group.level(SLOW, 0, "watermark", 10_000, query="q/q")
    assert group.is_ahead(FAST)


def test_nobody_waits_for_a_table_with_nothing_to_read(group: Group) -> None:
    group.reads(FAST, 10_000)
    group.reads(SLOW, 1_000, has_more=False)
    assert not group.is_ahead(FAST)
    group.reads(THIRD, 1_000)
    assert group.is_ahead(FAST)
    group.forget(THIRD)
    assert not group.is_ahead(FAST)


def test_a_table_without_a_watermark_neither_waits_nor_is_waited_for(group: Group) -> None:
    group.reads(FAST, 10_000)
    group.reads(SLOW, None)
    assert not group.is_ahead(FAST)
    assert not group.is_ahead(SLOW)
    group.level(SLOW, 0, "watermark", -(2**63))
    assert not group.is_ahead(FAST)


def test_other_groups_do_not_count(group: Group) -> None:
    other = Group()
    other.reads(SLOW, 1_000)
    group.reads(FAST, 10_000)
    assert not group.is_ahead(FAST)

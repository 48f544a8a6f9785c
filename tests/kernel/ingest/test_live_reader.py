"""A task of real-time mode that reads several partitions of a real broker's topic."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JJavaError

from spark_jobs.embedded.broker import Broker
from tests.harness.gateway import jvm

WAIT_S = 60.0
SOON_MS = 300
MARKS_DUE = -3
BARRIER, LAST = -4, 2**63 - 1
AT_ONCE = 500  # max.poll.records
LOOK_S = 0.1  # LiveReader.IdleMs


class Topic:
    """A topic of three partitions, and what was sent to it."""

    def __init__(self, broker: Broker) -> None:
        self.servers, self.name = broker.bootstrap_servers, f"live-{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.admin.create_topics([NewTopic(self.name, 3, 1)])[self.name].result(WAIT_S)

    def send(self, partition: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for _ in range(count):
            producer.produce(self.name, b"x", partition=partition)
        assert producer.flush(WAIT_S) == 0

    def delete(self, partition: int, before: int) -> None:
        at = TopicPartition(self.name, partition, before)
        for made in self.admin.delete_records([at]).values():
            made.result(WAIT_S)


@pytest.fixture
def topic(broker: Broker) -> Topic:
    return Topic(broker)


@pytest.fixture
def stepped(topic: Topic, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """The same for an epoch with barriers, which is repeated at each further call."""
    made = jvm().org.apache.spark.sql.rejoin.ingest.LiveReaderRun(topic.servers, topic.name)

    def begin(every_ms: int = 50) -> Any:
        return made.stepped({"0": 0, "1": 0}, every_ms, str(tmp_path))

    yield begin
    made.end()


@pytest.fixture
def read(topic: Topic) -> Iterator[Callable[..., Any]]:
    """Begins an epoch: `read({partition: offset})` is a reader of these partitions."""
    made = jvm().org.apache.spark.sql.rejoin.ingest.LiveReaderRun(topic.servers, topic.name)

    def begin(offsets: dict[str, int], marks_ms: int = 0) -> Any:
        return made.reader(offsets, marks_ms)

    yield begin
    made.end()


def taken(reader: Any, count: int) -> list[tuple[int, int]]:
    """Partition and offset of so many records."""
    deadline, found = time.monotonic() + WAIT_S, list[tuple[int, int]]()
    while len(found) < count:
        assert time.monotonic() < deadline, found
        if (record := reader.next(SOON_MS)) is not None:
            found.append((record[0], record[1]))
    return found


def test_the_records_of_all_partitions_come_once_epoch_after_epoch(
    topic: Topic, read: Callable[..., Any]
) -> None:
    """An epoch may end amid what was fetched, and the next one may have other partitions."""
    for partition in range(3):
        topic.send(partition, 700)
    first = read({"0": 0, "1": 0})
    found = taken(first, 600)
    offsets = dict(first.close())
    assert sum(offsets.values()) == 600
    second = read(offsets)
    found += taken(second, 700)
    offsets = dict(second.close())
    third = read({"1": offsets["1"], "2": 0})
    left = 700 - offsets["1"]
    found += taken(third, left + 700)
    assert third.next(SOON_MS) is None
    assert dict(third.close()) == {"1": 700, "2": 700}
    fourth = read({"0": offsets["0"]})
    found += taken(fourth, 700 - offsets["0"])
    fourth.close()
    for partition in range(3):
        assert [offset for at, offset in found if at == partition] == list(range(700))


def test_the_next_epoch_takes_what_was_fetched_in_advance(
    topic: Topic, read: Callable[..., Any]
) -> None:
    """What was deleted meanwhile can come from nowhere else."""
    for partition in (0, 1):
        topic.send(partition, 700)
    first = read({"0": 0, "1": 0})
    found = taken(first, AT_ONCE)
    offsets = dict(first.close())
    for partition in (0, 1):
        topic.delete(partition, 700)
    second = read(offsets)
    found += taken(second, 1400 - AT_ONCE)
    second.close()
    for partition in (0, 1):
        assert [offset for at, offset in found if at == partition] == list(range(700))


def test_marks_are_due_after_records_of_any_partition(
    topic: Topic, read: Callable[..., Any]
) -> None:
    reader = read({"0": 0, "1": 0}, marks_ms=1)
    for partition in (0, 1):
        topic.send(partition, 1)
        deadline = time.monotonic() + WAIT_S
        while (record := reader.next(SOON_MS)) is None:
            assert time.monotonic() < deadline
        assert list(record[:2]) == [partition, 0]
        assert list(reader.next(SOON_MS)) == [partition, 1, MARKS_DUE]
        assert reader.next(SOON_MS) is None
    reader.close()


def test_a_reader_has_looked_once_no_partition_has_more(
    topic: Topic, read: Callable[..., Any]
) -> None:
    """A silent partition does not keep the clock waiting; one whose records wait here does."""
    for partition in (0, 1):
        topic.send(partition, 3 * AT_ONCE)
    reader = read({"0": 0, "1": 0, "2": 0})
    first, _ = taken(reader, 1)[0]
    time.sleep(2 * LOOK_S)
    others = 1
    while taken(reader, 1)[0][0] == first:
        assert not reader.hasLooked()
        others += 1
    assert others >= AT_ONCE
    while reader.next(SOON_MS) is not None:
        pass
    assert reader.hasLooked()
    reader.close()


def test_records_that_are_gone_are_an_error(topic: Topic, read: Callable[..., Any]) -> None:
    """The query begins again where its checkpoint stands, and there they are counted."""
    topic.send(1, 10)
    topic.delete(1, 5)
    reader = read({"0": 0, "1": 2})
    with pytest.raises(Py4JJavaError, match=rf"SOURCE_DATA_LOST.*{topic.name}\[1\]: from offset 2"):
        taken(reader, 8)
    reader.close()
    again = read({"0": 0, "1": 5})
    assert taken(again, 5) == [(1, offset) for offset in range(5, 10)]
    again.close()


Step = tuple[int, list[tuple[int, int]]]  # the barrier, and the records in front of it


def steps(reader: Any, count: int, within_s: float = WAIT_S) -> list[Step]:
    """So many steps, whose records are sorted; no record or barrier takes longer."""
    found, records = list[Step](), list[tuple[int, int]]()
    while len(found) < count:
        record = reader.next(int(within_s * 1000))
        if record[2] == BARRIER:
            found.append((record[1], sorted(records)))
            records = []
        else:
            records.append((record[0], record[1]))
    return found


def test_a_barrier_follows_records_and_none_a_silence(
    topic: Topic, stepped: Callable[..., Any]
) -> None:
    reader = stepped(every_ms=500)
    topic.send(0, 3)
    assert steps(reader, 1) == [(0, [(0, 0), (0, 1), (0, 2)])]
    topic.send(1, 1)
    assert steps(reader, 1) == [(1, [(1, 0)])]
    assert list(reader.next(SOON_MS))[1:] == [LAST, BARRIER]  # at the end of the epoch
    assert reader.next(SOON_MS) is None
    reader.close()


def test_an_epoch_that_is_repeated_has_the_same_steps_and_then_new_ones(
    topic: Topic, stepped: Callable[..., Any]
) -> None:
    """The first start ends amid a step; records of it that were not noted are in a new one.

    An epoch whose time is over has all of the steps that are repeated.
    """
    first = stepped(every_ms=5)
    seen = []
    for _ in range(4):
        topic.send(0, 40)
        topic.send(1, 300)
        seen += steps(first, 1)
    topic.send(0, 1)
    taken(first, 1)
    first.close()
    topic.send(1, 1)
    for within_s in (WAIT_S, 0):
        again = stepped()
        assert steps(again, len(seen), within_s) == seen
        again.close()
    third = stepped()
    assert steps(third, len(seen)) == seen
    known = [record for _, records in seen for record in records]
    left = [(p, n) for p, sent in ((0, 161), (1, 1201)) for n in range(sent) if (p, n) not in known]
    found: list[tuple[int, int]] = []
    while len(found) < len(left):
        [(barrier, records)] = steps(third, 1)
        assert barrier >= len(seen)
        found += records
    assert sorted(found) == left
    third.close()


def test_a_step_that_is_repeated_has_the_records_that_were_fetched_with_earlier_ones(
    topic: Topic, stepped: Callable[..., Any]
) -> None:
    """Each step has records of one partition, and all of them come in one answer later."""
    first, seen = stepped(every_ms=5), list[Step]()
    for turn in range(6):
        topic.send(turn % 2, 3)
        while sum(len(records) for _, records in seen) < 3 * (turn + 1):
            seen += steps(first, 1)
    first.close()
    again = stepped()
    assert steps(again, len(seen)) == seen
    again.close()

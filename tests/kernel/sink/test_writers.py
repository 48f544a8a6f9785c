"""Writers of a sink against a real broker, without Spark: who may write what, and when."""

import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Literal

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from py4j.protocol import Py4JJavaError

from spark_jobs.embedded.broker import Broker
from tests.harness.gateway import jvm, kernel
from tests.harness.lookups import wait_until

_WAIT_S = 60.0
UNKNOWN_TIME = -(2**63)


class Sink:
    """A topic, and drivers that write to it; each has one writer."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.topic = f"sink-{uuid.uuid4().hex[:8]}"
        self.group = f"{self.topic}-q-0"
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.admin.create_topics([NewTopic(self.topic, 2, 1)])[self.topic].result(_WAIT_S)

    def spec(self, generation: int, **other: object) -> str:
        known = {
            "name": "q",
            "table": "t",
            "topic": self.topic,
            "guarantee": "exactly-once",
            "transactionalIdPrefix": self.topic,
            "properties": {"bootstrap.servers": self.servers},
            "checkpoint": "c",
            "generation": generation,
            "dense": True,
            "ledgers": 1,
            "heartbeatMs": 600_000,
            "deletesFirst": False,
            "realTime": False,
            "folder": "",
            "onError": "fail",
        }
        return json.dumps(known | other)

    def take_over(
        self,
        spec: str,
        epoch: int,
        repeated: bool = False,
        word: Literal["yes", "no"] | None = None,
    ) -> int:
        return kernel().take_over(
            json.loads(spec),
            1,
            epoch,
            since=epoch,
            repeated=repeated,
            known=1 if epoch or repeated else 0,
            written=word,
        )

    def writer(self, spec: str) -> Any:
        package: Any = jvm().org.apache.spark.sql.rejoin
        return package.sink.TransactionalWriter(
            package.sink.SinkSpec.read(spec), package.run.Counters()
        )

    def send(
        self,
        writer: Any,
        key: str | None,
        value: str = "v",
        join_key: int = 0,
        record_ms: int = UNKNOWN_TIME,
    ) -> None:
        """`join_key`: the hash of the row's key in the operator before the sink."""
        package: Any = jvm().org.apache.spark.sql.rejoin
        none = jvm().scala.Option.apply(None)
        bytes_ = None if key is None else key.encode()
        record = package.sink.SinkRecord(
            self.topic, bytes_, value.encode(), join_key, none, None, False, False, record_ms
        )
        writer.process(record)

    def write(self, writer: Any, epoch: int, *keys: str) -> bool:
        """Whether the epoch was to be written."""
        if not writer.open(0, epoch):
            return False
        for key in keys:
            self.send(writer, key)
        writer.close(None)
        return True

    def ledger(self) -> int | None:
        asked = [ConsumerGroupTopicPartitions(self.group, [TopicPartition(self.topic, 0)])]
        deadline = time.monotonic() + _WAIT_S
        while True:
            answer = self.admin.list_consumer_group_offsets(asked, require_stable=True)
            place = answer[self.group].result(_WAIT_S).topic_partitions[0]
            if place.error is None:  # else a commit is on its way
                return None if place.offset < 0 else int(place.offset)
            assert time.monotonic() < deadline, place.error
            time.sleep(0.1)

    def lose_ledger(self) -> None:
        self.admin.delete_consumer_groups([self.group])[self.group].result(_WAIT_S)

    def committed(self) -> list[tuple[int, str]]:
        """Partition and key, or else value, of what a read_committed reader finds."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        partitions = consumer.list_topics(self.topic, _WAIT_S).topics[self.topic].partitions
        consumer.assign([TopicPartition(self.topic, p, 0) for p in partitions])
        found, ended = [], 0
        deadline = time.monotonic() + _WAIT_S
        while ended < len(partitions):
            assert time.monotonic() < deadline, "a transaction is left open"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                ended += 1
            else:
                found.append((message.partition(), (message.key() or message.value()).decode()))
        consumer.close()
        return sorted(found)

    def producers(self) -> int:
        """How many Kafka producers of the topic's writers are open."""
        name = f"kafka-producer-network-thread | {self.topic}-"
        threads = jvm().java.lang.Thread.getAllStackTraces().keySet()
        return sum(thread.getName().startswith(name) for thread in threads)

    def keys(self) -> list[str]:
        return sorted(key for _, key in self.committed())


@pytest.fixture
def sink(broker: Broker) -> Sink:
    return Sink(broker.bootstrap_servers)


def test_repeated_epoch_is_skipped_by_the_next_driver(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    assert sink.ledger() == 0
    assert sink.write(sink.writer(sink.spec(1)), 0, "a")
    sink.take_over(sink.spec(2), 0, repeated=True)
    writer = sink.writer(sink.spec(2))
    assert not sink.write(writer, 0, "a")
    assert sink.write(writer, 1, "b")
    assert sink.keys() == ["a", "b"]


def test_open_transaction_of_a_dead_driver_holds_nobody_up(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    dead = sink.writer(sink.spec(1))
    assert dead.open(0, 0)
    sink.send(dead, "a")
    sink.take_over(sink.spec(2), 0, repeated=True)
    assert sink.keys() == []
    assert sink.write(sink.writer(sink.spec(2)), 0, "a")
    assert sink.keys() == ["a"]


def _begin_commit(sink: Sink) -> Producer:
    """A producer of the writer's id that has written a ledger entry and has not committed it."""
    producer = Producer({"bootstrap.servers": sink.servers, "transactional.id": sink.group})
    producer.init_transactions(_WAIT_S)
    producer.begin_transaction()
    producer.produce(sink.topic, b"v", b"a")
    producer.flush(_WAIT_S)
    group = Consumer({"bootstrap.servers": sink.servers, "group.id": sink.group})
    entry = TopicPartition(sink.topic, 0, 1)
    producer.send_offsets_to_transaction([entry], group.consumer_group_metadata(), _WAIT_S)
    group.close()
    return producer


def test_commit_that_a_dead_driver_began_holds_nobody_up(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    _begin_commit(sink)
    sink.take_over(sink.spec(2), 0, repeated=True)
    assert sink.write(sink.writer(sink.spec(2)), 0, "a")
    assert sink.keys() == ["a"]


def test_ledger_is_not_missing_while_an_entry_is_being_committed(sink: Sink) -> None:
    """Kafka's client leaves out what is unstable, as if there were nothing."""
    sink.take_over(sink.spec(1), 0)
    committing = _begin_commit(sink)
    package: Any = jvm().org.apache.spark.sql.rejoin.sink
    ledgers = package.KafkaBrokers.connect(package.SinkSpec.read(sink.spec(1)), "other").ledgers()
    end = threading.Timer(2.0, committing.abort_transaction, [_WAIT_S])
    end.start()
    found = package.EpochLedger(sink.group, sink.topic).read(ledgers)
    end.join()
    ledgers.close()
    assert found.isDefined()
    assert found.get().next() == 0


def test_replaced_driver_cannot_commit_and_does_not_disturb_its_successor(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    zombie = sink.writer(sink.spec(1))
    assert zombie.open(0, 0)
    sink.send(zombie, "old")
    sink.take_over(sink.spec(2), 0, repeated=True)
    successor = sink.writer(sink.spec(2))
    assert successor.open(0, 0)
    with pytest.raises(Py4JJavaError, match=r"ProducerFenced|InvalidProducerEpoch"):
        zombie.close(None)
    with pytest.raises(Py4JJavaError, match="CHECKPOINT_TAKEN_OVER"):
        zombie.open(0, 0)
    sink.send(successor, "new")
    successor.close(None)
    assert sink.keys() == ["new"]


@pytest.mark.parametrize("deletes_first", [True, False])
def test_fenced_writer_says_so_at_once(sink: Sink, deletes_first: bool) -> None:
    """The client learns that it is fenced while the ledger's entry waits behind the records."""
    spec = sink.spec(1, deletesFirst=deletes_first)
    sink.take_over(spec, 0)
    zombie = sink.writer(spec)
    assert zombie.open(0, 0)
    sink.take_over(sink.spec(2), 0, repeated=True)
    sink.send(zombie, "old")
    began = time.monotonic()
    with pytest.raises(Py4JJavaError, match=r"ProducerFenced|InvalidProducerEpoch"):
        zombie.close(None)
    assert time.monotonic() - began < 20.0
    assert sink.keys() == []


def test_lost_ledger_of_a_half_done_epoch_needs_a_word(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    assert sink.write(sink.writer(sink.spec(1)), 0, "a")
    sink.lose_ledger()
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_MISSING"):
        sink.take_over(sink.spec(2), 0, repeated=True)
    assert sink.take_over(sink.spec(3), 0, repeated=True, word="yes") == 1
    assert not sink.write(sink.writer(sink.spec(3)), 0, "a")
    assert sink.keys() == ["a"]


def test_idle_writer_keeps_its_ledger_alive(sink: Sink) -> None:
    """The broker forgets it, as it does with old ones; the next heartbeat brings it back."""
    spec = sink.spec(1, heartbeatMs=0)
    sink.take_over(spec, 0)
    assert sink.write(sink.writer(spec), 0, "a")
    sink.lose_ledger()
    assert sink.ledger() is None
    deadline = time.monotonic() + _WAIT_S
    while sink.ledger() is None:
        assert time.monotonic() < deadline, "no heartbeat"
        time.sleep(0.5)
    assert sink.ledger() == 1


def test_records_of_a_key_stay_in_their_partition_when_the_topic_grows(sink: Sink) -> None:
    spec = sink.spec(1, partitions=2)
    keys = [str(n) for n in range(40)]
    sink.take_over(spec, 0)
    assert sink.write(sink.writer(spec), 0, *keys)
    before = sink.committed()
    assert {partition for partition, _ in before} == {0, 1}
    sink.admin.create_partitions([NewPartitions(sink.topic, 5)])[sink.topic].result(_WAIT_S)
    spec = sink.spec(2, partitions=2)
    sink.take_over(spec, 1)
    assert sink.write(sink.writer(spec), 1, *keys)
    assert sink.committed() == sorted(before * 2)


def test_records_without_a_key_go_where_their_join_key_says(sink: Sink) -> None:
    spec = sink.spec(1, partitions=2)
    sink.take_over(spec, 0)
    writer = sink.writer(spec)
    assert writer.open(0, 0)
    for join_key in (4, 5, 4, 5, -3):
        sink.send(writer, None, f"join key {join_key}", join_key)
    writer.close(None)
    assert sink.committed() == sorted((n % 2, f"join key {n}") for n in (4, 5, 4, 5, -3))


def test_at_least_once_writes_an_epoch_again(sink: Sink) -> None:
    """Without transactions, and without a ledger."""
    for generation in (1, 2):
        writer = sink.writer(sink.spec(generation, guarantee="at-least-once"))
        assert sink.write(writer, 0, "a")
    assert sink.keys() == ["a", "a"]
    assert sink.ledger() is None


def test_writers_in_real_time_mode_share_a_producer(sink: Sink) -> None:
    """The failure of a writer takes it from no other; who comes later gets a new one."""
    spec = sink.spec(1, guarantee="at-least-once", realTime=True)
    failing, going_on, repeating = (sink.writer(spec) for _ in range(3))
    assert failing.open(0, 0)
    assert going_on.open(1, 0)
    assert sink.producers() == 1
    sink.send(failing, "a")
    failing.close(jvm().java.lang.RuntimeException("a task has failed"))
    sink.send(going_on, "b")
    assert repeating.open(0, 0)
    assert sink.producers() == 2
    sink.send(repeating, "a")
    for writer in (going_on, repeating):
        writer.close(None)
    assert sink.keys() == ["a", "a", "b"]
    assert going_on.open(1, 1)
    going_on.close(jvm().java.lang.RuntimeException("the last of the first producer"))
    wait_until(lambda: sink.producers() == 1)


def test_results_of_rows_that_were_taken_together_leave_together(sink: Sink) -> None:
    """In a hundred at most; what the epoch has left leaves with its end."""
    # its state belongs to a thread of the JVM, and py4j has one there for each of ours
    taken: Any = jvm().org.apache.spark.sql.rejoin.run.RowsTaken
    writer = sink.writer(sink.spec(1, guarantee="at-least-once", realTime=True))
    assert writer.open(0, 0)
    taken.begin()
    sink.send(writer, "a")
    sink.send(writer, "b")
    assert sink.keys() == []
    taken.end()
    wait_until(lambda: sink.keys() == ["a", "b"])
    sink.send(writer, "c")  # of no such rows
    wait_until(lambda: sink.keys() == ["a", "b", "c"])
    taken.begin()
    for _ in range(101):
        sink.send(writer, "d")
    wait_until(lambda: sink.keys().count("d") == 100)
    writer.close(None)
    assert sink.keys().count("d") == 101
    taken.end()
    assert sink.keys().count("d") == 101


@pytest.mark.parametrize("dense", [True, False])
def test_heartbeat_does_not_bring_back_a_fenced_producer(sink: Sink, dense: bool) -> None:
    """A task that finds the pool empty makes a producer; the heartbeat ends after it."""
    spec = sink.spec(1, dense=dense)
    sink.take_over(spec, 0)
    package: Any = jvm().org.apache.spark.sql.rejoin.sink
    pool = package.SinkProducers.ofThisJvm()
    beating = pool.take(package.SinkSpec.read(spec), 0, 0)
    assert sink.write(sink.writer(spec), 0, "a")
    pool.giveBack(beating)
    assert sink.write(sink.writer(spec), 1, "b")
    assert sink.keys() == ["a", "b"]


class Executor:
    """A JVM among several, with a pool of its own; its tasks end with their epoch."""

    def __init__(self, spec: str) -> None:
        self._package: Any = jvm().org.apache.spark.sql.rejoin
        brokers = getattr(getattr(self._package.sink, "KafkaBrokers$"), "MODULE$")
        self._pool = self._package.sink.SinkProducers(brokers, False, 1)
        self._spec = self._package.sink.SinkSpec.read(spec)

    def write(self, sink: Sink, epoch: int, *keys: str, retry: bool = False) -> bool:
        """Whether the epoch was to be written; raises what a task fails with."""
        counters = self._package.run.Counters()
        memory = jvm().rejoin.core.results.Overflow.inMemory()
        writer = self._package.sink.EpochWriter(self._spec, counters, self._pool, retry, memory)
        return sink.write(writer, epoch, *keys)


@pytest.mark.parametrize("dense", [True, False])
def test_writer_that_moves_between_executors_never_uses_a_fenced_producer(
    sink: Sink, dense: bool
) -> None:
    """From A to B and back to A, whose pool has the producer and the ledger of its last visit."""
    spec = sink.spec(1, dense=dense)
    sink.take_over(spec, 0)
    a, b = Executor(spec), Executor(spec)
    for epoch, executor in enumerate([a, b, a, b, b, a]):
        assert executor.write(sink, epoch, f"{epoch}")
    assert sink.keys() == [f"{epoch}" for epoch in range(6)]
    assert sink.ledger() == 6


def test_writer_without_a_task_in_some_epochs_moves_between_executors(sink: Sink) -> None:
    spec = sink.spec(1, dense=False)
    sink.take_over(spec, 0)
    a, b = Executor(spec), Executor(spec)
    for epoch, executor in [(0, a), (3, b), (7, a), (8, a), (12, b)]:
        assert executor.write(sink, epoch, f"{epoch:02}")
    assert sink.keys() == ["00", "03", "07", "08", "12"]


def test_task_that_is_tried_again_elsewhere_trusts_no_pool(sink: Sink) -> None:
    """B has begun epoch 1 and failed, so that A's producer of epoch 0 is fenced."""
    spec = sink.spec(1)
    sink.take_over(spec, 0)
    a, b = Executor(spec), Executor(spec)
    assert a.write(sink, 0, "a")
    with pytest.raises(Py4JJavaError):
        b.write(sink, 1, "b" * 2_000_000)
    assert a.write(sink, 1, "c", retry=True)
    assert not b.write(sink, 1, "d", retry=True)
    assert a.write(sink, 2, "e", retry=True)
    assert sink.keys() == ["a", "c", "e"]


def test_latencies_are_counted_at_the_commit(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    package: Any = jvm().org.apache.spark.sql.rejoin
    counters = package.run.Counters()
    writer = package.sink.TransactionalWriter(package.sink.SinkSpec.read(sink.spec(1)), counters)
    ages_ms = [0, 7, 123, 4_321, 3_000_000, 86_400_000]
    begun = time.time()
    assert writer.open(0, 0)
    for age_ms in ages_ms:
        sink.send(writer, "k", record_ms=int(begun * 1000) - age_ms)
    sink.send(writer, "k")  # of a record without a timestamp
    assert "latency" not in json.loads(counters.value()).get("q", {})
    writer.close(None)
    took_ms = (time.time() - begun) * 1000 + 1
    counted = json.loads(counters.value())["q"]
    assert sum(counted["latency"].values()) == len(ages_ms)
    assert counted["latency"]["+Inf"] == 1
    least = sum(ages_ms) * 31 / 32
    assert least <= counted["latency_ms"] <= sum(ages_ms) * 33 / 32 + len(ages_ms) * took_ms


def test_an_epoch_that_is_in_kafka_already_has_no_latency(sink: Sink) -> None:
    sink.take_over(sink.spec(1), 0)
    assert sink.write(sink.writer(sink.spec(1)), 0, "a")
    package: Any = jvm().org.apache.spark.sql.rejoin
    counters = package.run.Counters()
    repeated = package.sink.TransactionalWriter(package.sink.SinkSpec.read(sink.spec(1)), counters)
    assert not repeated.open(0, 0)
    repeated.close(None)
    assert json.loads(counters.value()) == {}


def test_each_step_of_an_epoch_is_committed_and_none_twice(sink: Sink, tmp_path: Path) -> None:
    """A driver dies amid the second step, and the next one repeats the epoch from its start on."""
    notes = jvm().org.apache.spark.sql.rejoin.ingest.BarrierLog.of(str(tmp_path), 0).open("t@0", 1)
    steps = jvm().org.apache.spark.sql.rejoin.run.TaskSteps

    def write(writer: Any, step: int, key: str, *, commit: bool = True) -> None:
        steps.begin(step)
        sink.send(writer, key)
        if commit:
            notes.add(step, "")
            steps.commit(step)

    first = sink.spec(1, realTime=True, folder=str(tmp_path))
    sink.take_over(first, 0)
    writer = sink.writer(first)
    assert writer.open(0, 0)
    write(writer, 0, "a")
    assert sink.keys() == ["a"]
    write(writer, 1, "b", commit=False)
    second = sink.spec(2, realTime=True, folder=str(tmp_path))
    for epoch_is_over in (False, True):
        sink.take_over(second, 0, repeated=True)
        again = sink.writer(second)
        assert again.open(0, 0)
        write(again, 0, "a")
        write(again, 1, "b")
        write(again, 2, "c", commit=False)
        again.close(None)
        assert sink.keys() == ["a", "b", "c"], epoch_is_over
        assert sink.ledger() == 1
    following = sink.writer(second)
    assert following.open(0, 1)
    write(following, 0, "d")
    following.close(None)
    assert sink.keys() == ["a", "b", "c", "d"]

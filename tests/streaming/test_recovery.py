"""What a query does after its surroundings have failed it: in one session, with a real broker."""

import contextlib
import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import OpenQuery, open_query
from spark_jobs.driver.queries import sinks_of
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import RejoinError, StateError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind

Word: TypeAlias = Literal["yes", "no"]
_WAIT_S = 120.0
_JOB = """\
CREATE TABLE source (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-in',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE sink (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-out',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json');
INSERT INTO sink {select};
"""


class Copies:
    """A query that copies one topic to another, and the drivers that run it one after the other."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self.prefix = f"copy-{uuid.uuid4().hex[:8]}"
        self.servers = servers
        self.checkpoint = folder / "checkpoint"
        self.job = self.prefix
        self.select = "SELECT id FROM source"
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._spark = spark
        self._launch: OpenQuery | None = None
        self._life: QueryLife | None = None
        self.create("in", "out")

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def create(self, *names: str) -> None:
        made = self.admin.create_topics([NewTopic(self.topic(name), 1, 1) for name in names])
        for future in made.values():
            future.result(_WAIT_S)

    def send(self, start: int, end: int) -> None:
        producer = Producer({"enable.idempotence": True, "bootstrap.servers": self.servers})
        for number in range(start, end):
            producer.produce(self.topic("in"), json.dumps({"id": number}).encode())
        assert producer.flush(_WAIT_S) == 0

    def driver(self, epoch_written: Word | None = None, **settings: str) -> QueryLife:
        """The next one; the one before it has ended."""
        text = _JOB.format(prefix=self.prefix, servers=self.servers, select=self.select)
        job = bind(text, "copy.sql")
        ((name, sink),) = sinks_of(plan(job)).items()
        given = {"rejoin.parallelism": "2", "rejoin.checkpoint": str(self.checkpoint)}
        given |= {f"rejoin.{k.replace('_', '-')}": v for k, v in settings.items()}
        declared = job_settings(declared_settings(given), self.job, Overrides(), read_environment())
        self._launch = open_query(self._spark, name, sink, declared, epoch_written)
        self._life = self._launch.life()
        return self._life

    @property
    def launch(self) -> OpenQuery:
        assert self._launch is not None
        return self._launch

    def refusal(self, epoch_written: Word | None = None, **settings: str) -> RejoinError:
        """What the next driver stops with."""
        try:
            self.driver(epoch_written, **settings)
            self.until(lambda: False)
        except RejoinError as error:
            self.end()
            return error
        raise AssertionError("it went on")

    def until_read(self, end: int) -> None:
        """Until the source's first `end` offsets are in committed epochs."""

        def done() -> bool:
            read = [o for o in self.launch.folder.committed_offsets() if o is not None]
            return bool(read) and read[0][self.topic("in")].get(0, 0) >= end

        self.until(done)

    def until(self, done: Callable[[], bool]) -> None:
        assert self._life is not None
        deadline = time.monotonic() + _WAIT_S
        while not done():
            self._life.poll()
            assert time.monotonic() < deadline, f"not in time; {self._life.failure}"
            time.sleep(0.1)

    def end(self) -> None:
        if self._life is not None and self._life.query is not None:
            with contextlib.suppress(Exception):
                self._life.query.stop()
        if self._launch is not None:
            self._launch.folder.unlock()

    def copied(self) -> Counter[int]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topic("out"), 0, 0)])
        found: Counter[int] = Counter()
        while (message := consumer.poll(_WAIT_S)) is not None and message.error() is None:
            found[json.loads(message.value() or b"")["id"]] += 1
        consumer.close()
        return found

    def forget_loaded_state(self) -> None:
        """As in a new JVM: the next epoch reads the state from its files."""
        jvm: Any = self._spark._jvm
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()

    def lost(self) -> int:
        return sum(Kernel.of(self._spark).counters(self._spark).of("sink").get("lost", {}).values())


@pytest.fixture
def copies(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Copies]:
    made = Copies(spark, broker.bootstrap_servers, tmp_path)
    yield made
    made.end()


def test_fenced_writer_comes_back_by_itself(copies: Copies) -> None:
    copies.send(0, 10)
    life = copies.driver()
    copies.until_read(10)
    rogue = Producer(
        {"bootstrap.servers": copies.servers, "transactional.id": f"{copies.prefix}-sink-0"}
    )
    rogue.init_transactions(_WAIT_S)
    copies.send(10, 20)
    copies.until_read(20)
    assert life.restarts.total == 1
    assert life.failure is not None
    assert life.failure.code == "SINK_FENCED"
    assert copies.copied() == Counter(range(20))


def test_driver_that_was_replaced_ends(copies: Copies) -> None:
    copies.send(0, 10)
    life = copies.driver()
    copies.until_read(10)
    owner = copies.checkpoint / "sink" / "rejoin" / "driver.json"
    text = json.loads(owner.read_text()) | {"generation": 9, "driver": "another"}
    copies.launch.folder.write("rejoin/driver.json", json.dumps(text))
    assert life.query is not None
    life.query.stop()
    life.query = None
    with pytest.raises(StateError, match="CHECKPOINT_TAKEN_OVER"):
        life.poll()


def test_deleted_records_stop_the_job_or_are_counted(copies: Copies) -> None:
    copies.send(0, 10)
    copies.driver()
    copies.until_read(10)
    copies.end()
    copies.send(10, 30)
    cut = TopicPartition(copies.topic("in"), 0, 25)
    for future in copies.admin.delete_records([cut]).values():
        future.result(_WAIT_S)
    error = copies.refusal()
    assert error.code == "SOURCE_DATA_LOST"
    assert "15 records" in error.message
    assert f"{copies.topic('in')}[0]: offsets 10 to 24" in error.message
    before = copies.lost()
    copies.driver(on_data_loss="continue")
    copies.until_read(30)
    assert copies.lost() - before >= 15
    assert copies.copied() == Counter([*range(10), *range(25, 30)])


def test_recreated_topic_stops_the_job_or_is_read_from_its_beginning(copies: Copies) -> None:
    copies.send(0, 10)
    copies.driver()
    copies.until_read(10)
    copies.end()
    copies.admin.delete_topics([copies.topic("in")])[copies.topic("in")].result(_WAIT_S)
    deadline = time.monotonic() + _WAIT_S
    while copies.topic("in") in copies.admin.list_topics(timeout=_WAIT_S).topics:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    copies.create("in")
    copies.send(100, 130)  # beyond the offsets of the old one: Spark would read on at 10
    assert copies.refusal().code == "TOPIC_RECREATED"
    copies.driver(on_data_loss="continue")
    copies.until_read(30)
    assert copies.copied() == Counter([*range(10), *range(100, 130)])


@pytest.mark.parametrize("name", ["offsets/0", "commits/0"])
def test_damaged_file_is_named(copies: Copies, name: str) -> None:
    copies.send(0, 10)
    copies.driver()
    copies.until_read(10)
    copies.end()
    path = copies.checkpoint / "sink" / name
    kept = path.read_bytes()
    path.write_bytes(kept[: len(kept) // 3])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    error = copies.refusal()
    assert error.code == "CHECKPOINT_DAMAGED"
    assert name in error.message
    path.write_bytes(kept)
    copies.send(10, 20)
    copies.driver()
    copies.until_read(20)
    assert copies.copied() == Counter(range(20))


def test_lost_ledger_between_epochs_needs_nobody(copies: Copies) -> None:
    copies.send(0, 10)
    copies.driver()
    copies.until_read(10)
    copies.end()
    group = f"{copies.prefix}-sink-0"
    copies.admin.delete_consumer_groups([group])[group].result(_WAIT_S)
    copies.send(10, 20)
    copies.driver()
    copies.until_read(20)
    assert copies.copied() == Counter(range(20))
    copies.end()
    assert copies.refusal("yes").code == "EPOCH_KNOWN"


def test_renamed_job_keeps_its_ledgers(copies: Copies) -> None:
    copies.send(0, 10)
    copies.driver()
    copies.until_read(10)
    copies.end()
    copies.job = f"{copies.prefix}-renamed"
    copies.send(10, 20)
    copies.driver()
    copies.until_read(20)
    assert copies.copied() == Counter(range(20))
    listed = copies.admin.list_consumer_groups().result(_WAIT_S).valid
    groups = {g.group_id for g in listed if g.group_id.startswith(copies.prefix)}
    assert groups == {f"{copies.prefix}-sink-0"}


def test_damaged_state_is_named(copies: Copies) -> None:
    copies.select = "SELECT DISTINCT id FROM source"
    copies.send(0, 10)
    copies.driver()
    copies.until_read(10)
    copies.end()
    copies.forget_loaded_state()
    files = {
        path: path.read_bytes()
        for path in (copies.checkpoint / "sink" / "state").rglob("*")
        if path.suffix in (".changelog", ".zip") and not path.name.startswith(".")
    }
    assert files
    for path, kept in files.items():
        path.write_bytes(kept[: len(kept) // 3])
    copies.send(10, 20)
    error = copies.refusal()
    assert error.code == "CHECKPOINT_DAMAGED"
    assert re.search(r"state/0/[01]|opId=0, ?partId=[01]", error.message), error.message
    for path, kept in files.items():
        path.write_bytes(kept)
    copies.forget_loaded_state()
    copies.driver()
    copies.until_read(20)
    assert copies.copied() == Counter(range(20))

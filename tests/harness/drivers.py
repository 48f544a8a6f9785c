"""The drivers of one query, one after the other, in a Spark session that outlives them all."""

import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import OpenQuery, open_query
from spark_jobs.driver.queries import sinks_of
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.errors import RejoinError
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind

Word: TypeAlias = Literal["yes", "no"]
WAIT_S = 120.0


class Drivers:
    """A job of one query over topics of its own, and the drivers that run it.

    `sql` has `{prefix}` before each topic's name and `{servers}` for the broker.
    """

    def __init__(self, spark: SparkSession, servers: str, folder: Path, sql: str) -> None:
        self.prefix = f"job-{uuid.uuid4().hex[:8]}"
        self.servers = servers
        self.checkpoint = folder / "checkpoint"
        self.job = self.prefix
        self.sql = sql
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._spark = spark
        self._launch: OpenQuery | None = None
        self._life: QueryLife | None = None

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def create(self, *names: str) -> None:
        made = self.admin.create_topics([NewTopic(self.topic(name), 1, 1) for name in names])
        for future in made.values():
            future.result(WAIT_S)

    def send(
        self, name: str, rows: Iterable[Mapping[str, object] | bytes], partition: int = 0
    ) -> None:
        producer = Producer({"enable.idempotence": True, "bootstrap.servers": self.servers})
        for row in rows:
            value = row if isinstance(row, bytes) else json.dumps(row).encode()
            producer.produce(self.topic(name), value, partition=partition)
        assert producer.flush(WAIT_S) == 0

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        cut = TopicPartition(self.topic(name), partition, before)
        for future in self.admin.delete_records([cut]).values():
            future.result(WAIT_S)

    def driver(self, epoch_written: Word | None = None, **settings: str) -> QueryLife:
        """The next one, with `rejoin.` settings; the one before it has ended."""
        named = {f"rejoin.{k.replace('_', '-')}": v for k, v in settings.items()}
        return self.driver_with(named, epoch_written)

    def driver_with(
        self, settings: Mapping[str, str], epoch_written: Word | None = None
    ) -> QueryLife:
        """The next one, with settings by their whole names."""
        given = {"rejoin.parallelism": "2", "rejoin.checkpoint": str(self.checkpoint), **settings}
        job = bind(self.sql.format(prefix=self.prefix, servers=self.servers), "job.sql")
        ((name, sink),) = sinks_of(plan(job)).items()
        declared = job_settings(declared_settings(given), self.job, Overrides(), read_environment())
        self._launch = open_query(self._spark, name, sink, declared, epoch_written)
        self._life = self._launch.life()
        return self._life

    @property
    def launch(self) -> OpenQuery:
        assert self._launch is not None
        return self._launch

    @property
    def is_active(self) -> bool:
        """Whether the query runs, so that its ledgers are this driver's."""
        return self._life is not None and self._life.is_active

    def refusal(self, epoch_written: Word | None = None, **settings: str) -> RejoinError:
        """What the next driver stops with."""
        try:
            self.driver(epoch_written, **settings)
            self.until(lambda: False)
        except RejoinError as error:
            self.end()
            return error
        raise AssertionError("it went on")

    def until_read(self, name: str, end: int, partition: int = 0) -> None:
        """Until the first `end` offsets of a source are in committed epochs."""

        def done() -> bool:
            topic = self.topic(name)
            read = [o for o in self.launch.folder.committed_offsets() if o and topic in o]
            return bool(read) and all(o[topic].get(partition, 0) >= end for o in read)

        self.until(done)

    def until(self, done: Callable[[], bool]) -> None:
        assert self._life is not None
        deadline = time.monotonic() + WAIT_S
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

    def fence(self, query: str, writer: int) -> None:
        """Another producer takes the transactional id of a writer, whose next commit fails."""
        rogue = Producer(
            {
                "bootstrap.servers": self.servers,
                "transactional.id": f"{self.prefix}-{query}-{writer}",
            }
        )
        rogue.init_transactions(WAIT_S)

    def ledger(self, query: str, writer: int, stable: bool = True) -> int | None:
        """The number of the next epoch that a writer's ledger has.

        `stable`: waits for a commit that is on its way; a transaction that a cut-off task has left
        open is on its way until the next driver.
        """
        group = f"{self.prefix}-{query}-{writer}"
        asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(self.topic("out"), 0)])]
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = self.admin.list_consumer_group_offsets(asked, require_stable=stable)
            place = answer[group].result(WAIT_S).topic_partitions[0]
            if place.error is None:  # else a commit is on its way
                return None if place.offset < 0 else int(place.offset)
            assert time.monotonic() < deadline, place.error
            time.sleep(0.1)

    def lose_ledger(self, query: str, writer: int) -> None:
        group = f"{self.prefix}-{query}-{writer}"
        self.admin.delete_consumer_groups([group])[group].result(WAIT_S)

    def results(self) -> Counter[str]:
        """The committed values of the topic `out`, and how often each is there."""
        return Counter(self.records())

    def records(self) -> list[str]:
        """The committed values of the topic `out`, in order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topic("out"), 0, 0)])
        found: list[str] = []
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            found.append((message.value() or b"").decode())
        consumer.close()
        return found

"""Bounded queries through a broker: topics, records in, each query to its end, records out."""

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import open_query
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.scenario.records import Record
from spark_jobs.settings import Overrides, job_settings, read_environment

AT_ONCE = 4  # queries that run beside each other
KEY_GROUPS = 8  # for which the queries have to be planned
READ_S = 20.0
ANY_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Query:
    """A query under a name of its own, and settings that its job has besides."""

    name: str
    sink: KafkaSink
    parallelism: int = 1
    max_offsets: int | None = None  # records of one epoch, at most


def create_topics(servers: str, names: Iterable[str], partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, partitions) for name in names]
    for made in admin.create_topics(topics).values():
        made.result(60)


def produce(
    servers: str, records: Iterable[tuple[str, Record]], keeps_partitions: bool = False
) -> None:
    """Write records to topics, in this order.

    `keeps_partitions`: into the partitions that the records name, not where their keys belong.
    """
    producer = Producer({"enable.idempotence": True, "bootstrap.servers": servers})
    for topic, record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=record.partition if keeps_partitions else ANY_PARTITION,
            timestamp=record.timestamp_ms,
        )
    assert producer.flush(60) == 0


def run_to_end(
    spark: SparkSession,
    queries: Sequence[Query],
    folder: Path,
    timeout_s: float,
    at_once: int = AT_ONCE,
) -> None:
    """Run all queries to their end in one session, some at a time; raises what one fails with."""
    waiting = list(queries)
    deadline = time.monotonic() + timeout_s
    with _running() as lives:
        while waiting or lives:
            assert time.monotonic() < deadline, f"still runs: {[life.name for life in lives]}"
            while waiting and len(lives) < at_once:
                lives.append(_launch(spark, waiting.pop(0), folder))
            for life in lives:
                life.poll()
            lives[:] = [life for life in lives if life.phase != "finished"]
            time.sleep(0.05)


@contextmanager
def _running() -> Iterator[list[QueryLife]]:
    lives: list[QueryLife] = []
    try:
        yield lives
    finally:
        for life in lives:
            if life.query is not None:
                life.query.stop()


def _launch(spark: SparkSession, query: Query, folder: Path) -> QueryLife:
    given = {
        "rejoin.parallelism": str(query.parallelism),
        "rejoin.checkpoint": str(folder / "checkpoint"),
        "rejoin.key-groups": str(KEY_GROUPS),
    }
    if query.max_offsets is not None:
        given["rejoin.max-offsets-per-trigger"] = str(query.max_offsets)
    settings = job_settings(declared_settings(given), query.name, Overrides(), read_environment())
    return open_query(spark, query.name, query.sink, settings).life()


def read_committed(servers: str, topic: str, partitions: int = 1) -> Iterator[Record]:
    """What a `read_committed` consumer sees up to the ends that the topic has now."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": str(uuid.uuid4()),
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    deadline = time.monotonic() + READ_S
    ended = 0
    try:
        while ended < partitions:
            assert time.monotonic() < deadline, f"{topic}: no end within {READ_S} s"
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:  # the end of a partition
                ended += 1
                continue
            yield Record(message.key(), message.value())
    finally:
        consumer.close()

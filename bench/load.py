"""Loads a benchmark's input into Kafka, as fast as one Python thread can."""

import time
from collections.abc import Iterable
from itertools import islice

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.avro import register
from bench.workloads.records import PARTITIONS, BenchData, Record
from spark_jobs.errors import KafkaError

_CHUNK = 20_000
_QUEUE_LIMIT = 400_000
_ADMIN_TIMEOUT_S = 30.0
_FLUSH_TIMEOUT_S = 120.0


def create_topics(bootstrap_servers: str, names: Iterable[str]) -> None:
    """Create topics with `PARTITIONS` partitions; they must not exist yet."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    made = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
    for future in made.values():
        future.result(_ADMIN_TIMEOUT_S)


def load(data: BenchData, bootstrap_servers: str, registry_url: str) -> float:
    """Create the input topics, register schemas and load; returns the seconds for loading."""
    create_topics(bootstrap_servers, [topic.name for topic in data.topics])
    loader = Loader(bootstrap_servers)
    started = time.monotonic()
    for topic in data.topics:
        ids = {
            subject: register(registry_url, subject, schema)
            for subject, schema in topic.schemas().items()
        }
        key_id, value_id = ids.get(f"{topic.name}-key", 0), ids[f"{topic.name}-value"]
        loader.send(topic.name, data.records(topic, key_id, value_id))
    loader.finish()
    return time.monotonic() - started


class Loader:
    """Sends records of topics that exist; `finish` has to follow."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._failure: ClientError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "log_level": 3,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "batch.num.messages": 100_000,
                "queue.buffering.max.messages": 2 * _QUEUE_LIMIT,
                "delivery.report.only.error": True,
                "on_delivery": self._on_delivery,
            }
        )

    def send(self, topic: str, records: Iterable[Record]) -> None:
        rest = iter(records)
        while chunk := list(islice(rest, _CHUNK)):
            for partition in range(PARTITIONS):
                messages = [{"key": k, "value": v} for p, k, v in chunk if p == partition]
                accepted = self._producer.produce_batch(topic, messages, partition=partition)
                if accepted != len(messages):
                    raise KafkaError("BENCH_LOAD_FAILED", f"the client refused records of {topic}")
            while len(self._producer) > _QUEUE_LIMIT:
                self._producer.poll(0.02)
            self._producer.poll(0)
            self._check()

    def finish(self) -> None:
        """Wait until the broker has all records, then close the producer.

        One that stays open goes on asking for the broker, also when that has stopped.
        """
        left = self._producer.flush(_FLUSH_TIMEOUT_S)
        self._producer.close()
        self._check()
        if left:
            raise KafkaError("BENCH_LOAD_FAILED", f"{left} records did not reach the broker")

    def _on_delivery(self, error: ClientError | None, _message: Message) -> None:
        self._failure = self._failure or error

    def _check(self) -> None:
        if self._failure is not None:
            raise KafkaError("BENCH_LOAD_FAILED", f"the broker refused a record: {self._failure}")

"""Topics as any consumer with `isolation.level=read_committed` sees them, once nobody writes."""

import time
import uuid
from collections.abc import Iterator, Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_TIMEOUT_S = 60.0


def create_topics(servers: str, partitions: dict[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    new = [NewTopic(name, count, 1) for name, count in partitions.items()]
    for future in admin.create_topics(new).values():
        future.result(_TIMEOUT_S)


def ends_of(servers: str, topics: Sequence[str]) -> dict[tuple[str, int], int]:
    """The offset behind the last record of every partition."""
    consumer = _consumer(servers)
    try:
        return {
            (p.topic, p.partition): consumer.get_watermark_offsets(p, _TIMEOUT_S, cached=False)[1]
            for p in _partitions(consumer, topics)
        }
    finally:
        consumer.close()


def read_all(servers: str, topics: Sequence[str]) -> Iterator[Message]:
    """Every committed record up to the present end of the topics."""
    consumer = _consumer(servers)
    try:
        places = _partitions(consumer, topics)
        consumer.assign(places)
        open_ends = {(p.topic, p.partition) for p in places}
        deadline = time.monotonic() + _TIMEOUT_S
        while open_ends:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no end of {sorted(open_ends)} within {_TIMEOUT_S:.0f} s")
            for message in consumer.consume(1_000, timeout=0.5):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ends.discard((message.topic(), message.partition()))
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()


def _consumer(servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"e2e-{uuid.uuid4().hex[:8]}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )


def _partitions(consumer: Consumer, topics: Sequence[str]) -> list[TopicPartition]:
    known = consumer.list_topics(timeout=_TIMEOUT_S).topics
    return [TopicPartition(t, p, OFFSET_BEGINNING) for t in topics for p in known[t].partitions]

"""Reads the demo's results as any consumer with `isolation.level=read_committed` does."""

import time
import uuid
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from spark_jobs.demo.verify import ReceivedDeadLetter
from spark_jobs.errors import KafkaError

_BATCH = 500
_TIMEOUT_S = 15.0
_CONNECT = "__connect.errors."


class Subscriber:
    """Reads all partitions of the topics, from their ends at construction."""

    def __init__(self, servers: str, topics: Sequence[str]) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"rejoin-demo-{uuid.uuid4().hex[:8]}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "log_level": 2,
            }
        )
        try:
            self._next = {position: self._end(*position) for position in self._partitions(topics)}
        except KafkaException as cause:
            raise KafkaError("KAFKA_UNREACHABLE", f"{servers} did not answer: {cause}") from cause
        self._assign()

    def close(self) -> None:
        self._consumer.close()

    def poll(self, timeout_s: float) -> list[Message]:
        """The records that arrive within that time, at most one batch."""
        return [m for m in self._consume(timeout_s) if m.error() is None]

    def rest(self, timeout_s: float) -> Iterator[Message]:
        """Every record up to the present end of all partitions; raises KafkaError if that takes
        longer than `timeout_s`."""
        self._assign()  # assigning again makes the client report the end of each partition again
        open_ends = set(self._next)
        deadline = time.monotonic() + timeout_s
        while open_ends:
            if time.monotonic() > deadline:
                raise KafkaError(
                    "KAFKA_UNREACHABLE", f"did not reach the end of {sorted(open_ends)}"
                )
            for message in self._consume(0.1):
                if message.error() is None:
                    yield message
                else:
                    open_ends.discard((str(message.topic()), _partition(message)))

    def _consume(self, timeout_s: float) -> list[Message]:
        """Records and end-of-partition events; raises KafkaError on any other error."""
        messages = self._consumer.consume(_BATCH, timeout=timeout_s)
        for message in messages:
            error = message.error()
            if error is not None and error.code() != ClientError._PARTITION_EOF:
                raise KafkaError("KAFKA_FAILED", f"reading the results failed: {error}")
            offset = message.offset()
            if error is None and offset is not None:
                self._next[(str(message.topic()), _partition(message))] = offset + 1
        return messages

    def _assign(self) -> None:
        self._consumer.assign([TopicPartition(t, p, at) for (t, p), at in self._next.items()])

    def _partitions(self, topics: Sequence[str]) -> list[tuple[str, int]]:
        known = self._consumer.list_topics(timeout=_TIMEOUT_S).topics
        return [(topic, p) for topic in topics for p in known[topic].partitions]

    def _end(self, topic: str, partition: int) -> int:
        """The end offset; retries, because a new topic has no leader for a moment."""
        position = TopicPartition(topic, partition)
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                ends = self._consumer.get_watermark_offsets(position, timeout=1.0, cached=False)
                if ends is not None:
                    return int(ends[1])
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise KafkaError("KAFKA_UNREACHABLE", f"end of {topic}[{partition}] is unknown")
            time.sleep(0.05)


def read_dead_letter(message: Message) -> ReceivedDeadLetter:
    """Raises ValueError if the headers do not name the source record."""
    headers = {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        for name, value in dict(message.headers() or ()).items()
    }
    try:
        position = (
            headers[_CONNECT + "topic"],
            int(headers[_CONNECT + "partition"]),
            int(headers[_CONNECT + "offset"]),
        )
    except KeyError as missing:
        raise ValueError(f"a dead letter has no header {missing}") from missing
    message_text = headers.get(_CONNECT + "exception.message", "")
    reason = ": ".join(part for part in (headers.get("rejoin.reason", ""), message_text) if part)
    return ReceivedDeadLetter(position, reason, _bytes(message.key()), _bytes(message.value()))


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None


def _partition(message: Message) -> int:
    partition = message.partition()
    return -1 if partition is None else partition

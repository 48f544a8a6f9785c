"""Reads topics from given offsets to their present end, with isolation level read_committed."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from spark_jobs.errors import KafkaError

_TIMEOUT_S = 15.0
_SETTLE_S = 60.0
_BATCH = 1000


@contextmanager
def kafka_errors(servers: str) -> Iterator[None]:
    """Raise the client's exceptions as KafkaError."""
    try:
        yield
    except KafkaException as cause:
        error = cause.args[0]
        unreachable = (
            ClientError._TRANSPORT,
            ClientError._ALL_BROKERS_DOWN,
            ClientError._TIMED_OUT,
        )
        if error.code() in unreachable:
            raise KafkaError(
                "KAFKA_UNREACHABLE",
                f"{servers} did not answer: {error.str()}",
                hint="is the broker running, and is that its address?",
            ) from cause
        raise KafkaError("KAFKA_FAILED", f"{servers}: {error.str()}") from cause


class TopicReader:
    """Reads one topic after the other over one connection."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._servers = config["bootstrap.servers"]
        self._config = {
            **config,
            "group.id": f"rejoin-dlq-{uuid.uuid4().hex[:8]}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,  # the client reports the end of a partition after this time
            # if retention has deleted the first records by now, begin with the oldest one left
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
        self._consumer = Consumer({**self._config, "isolation.level": "read_committed"})

    def __enter__(self) -> "TopicReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def partitions(self, topic: str) -> int:
        """Number of partitions; 0 if the topic does not exist."""
        with kafka_errors(self._servers):
            known = self._consumer.list_topics(timeout=_TIMEOUT_S).topics
        return len(known[topic].partitions) if topic in known else 0

    def read(
        self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int] | None = None
    ) -> Iterator[Message]:
        """Records from `starts` to the last one committed now. With `ends`, every record before
        those offsets; waits for a transaction that is still open there."""
        at = [TopicPartition(topic, p, offset) for p, offset in starts.items()]
        waiting = set(starts)
        deadline = time.monotonic() + _SETTLE_S
        with kafka_errors(self._servers):
            self._consumer.assign(at)
            while waiting:
                messages = self._consumer.consume(_BATCH, timeout=0.1)
                if messages and any(m.error() is None for m in messages):
                    deadline = time.monotonic() + _SETTLE_S
                elif time.monotonic() > deadline:
                    raise self._timeout_error(topic, ends is not None)
                for message in messages:
                    if message.error() is None:
                        yield message
                    elif self._is_end(message, ends):
                        waiting.discard(message.partition() or 0)

    def ends(self, topic: str) -> dict[int, int]:
        """Per partition the offset after the last record, committed or not."""
        consumer = Consumer({**self._config, "isolation.level": "read_uncommitted"})
        try:
            with kafka_errors(self._servers):
                found = {
                    p: consumer.get_watermark_offsets(
                        TopicPartition(topic, p), timeout=_TIMEOUT_S, cached=False
                    )
                    for p in range(self.partitions(topic))
                }
        finally:
            consumer.close()
        if missing := [p for p, ends in found.items() if ends is None]:
            raise KafkaError("KAFKA_UNREACHABLE", f"no answer for the end of {topic}{missing}")
        return {p: ends[1] for p, ends in found.items() if ends is not None}

    def record(self, topic: str, partition: int, offset: int) -> Message | None:
        """The record at this offset; None if it has been deleted."""
        for message in self.read(topic, {partition: offset}):
            return message if message.offset() == offset else None
        return None

    def _is_end(self, message: Message, ends: Mapping[int, int] | None) -> bool:
        error = message.error()
        if error is not None and error.code() != ClientError._PARTITION_EOF:
            raise KafkaException(error)
        at = message.offset() or 0
        return ends is None or at >= ends.get(message.partition() or 0, 0)

    def _timeout_error(self, topic: str, settling: bool) -> KafkaError:
        if not settling:
            return KafkaError("KAFKA_UNREACHABLE", f"{self._servers}: nothing of {topic} arrived")
        return KafkaError(
            "DLQ_BUSY",
            f"a transaction in {topic} has been open for {_SETTLE_S:.0f} s; until it ends, rejoin "
            "cannot know which dead-letter records are handled",
            hint="a killed job leaves one open until the job starts again or "
            "'transaction.timeout.ms' has passed: try again then",
        )

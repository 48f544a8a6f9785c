"""Replay and drop: records and their marks are written in one transaction.

Each dead-letter topic has one transactional id. Starting its producer fences every other replay of
the topic and ends the transaction that a crashed one left open. The marks are read after that, so
a dead-letter record is never replayed twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, KafkaException, Producer
from confluent_kafka import KafkaError as ClientError

from spark_jobs.dlq.dead_letter import (
    REPLAYED,
    REPLAYS,
    Contents,
    DeadLetter,
    HandledMark,
    Headers,
    SourceRecord,
    mark_of,
    read_message,
)
from spark_jobs.dlq.reading import TopicReader, kafka_errors
from spark_jobs.dlq.topics import DeadLetterTopic
from spark_jobs.errors import KafkaError, RejoinError

BATCH = 100  # dead-letter records per transaction
_TRANSACTION_MS = 60_000  # how long a killed replay can block readers of the source topics
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Replay:
    """A record to write back to its topic, and all open dead-letter records that this handles."""

    source: SourceRecord
    key: bytes | None
    value: bytes | None
    headers: Headers
    dead_letters: tuple[DeadLetter, ...]


def read_contents(reader: TopicReader, topic: DeadLetterTopic, *, settled: bool) -> Contents:
    """Read a dead-letter topic; `settled` first waits for open transactions in it to end."""
    count = reader.partitions(topic.name)
    if count == 0:
        raise KafkaError(
            "TOPIC_MISSING", f"no dead-letter topic {topic.name} at {_servers(topic.config)}"
        )
    ends = reader.ends(topic.name) if settled else None
    starts = dict.fromkeys(range(count), OFFSET_BEGINNING)
    return Contents(read_message(m) for m in reader.read(topic.name, starts, ends))


def as_replay(dead_letter: DeadLetter, value: bytes | None, all_of: Sequence[DeadLetter]) -> Replay:
    """The original record with `value` and headers that name its first dead-letter record.

    `all_of` are all open dead-letter records of the same source record.
    """
    if dead_letter.source is None:
        raise ValueError(f"dead-letter record {dead_letter.position} has no source record")
    before = dict(dead_letter.headers)
    first = before.get(REPLAYED) or dead_letter.at.encode()
    count = before.get(REPLAYS) or b""
    times = int(count) + 1 if count.isdigit() and len(count) < 10 else 1
    own = tuple((n, v) for n, v in dead_letter.headers if n not in (REPLAYED, REPLAYS))
    marked = (*own, (REPLAYED, first), (REPLAYS, str(times).encode()))
    return Replay(dead_letter.source, dead_letter.key, value, marked, tuple(all_of))


class Handler:
    """Writes marks and replayed records of one dead-letter topic.

    A topic has one handler at a time: once another one starts, even in another process, the next
    write of this one raises DLQ_FENCED.
    """

    def __init__(self, topic: DeadLetterTopic) -> None:
        self._topic = topic
        self._failed: list[str] = []
        self._producer = Producer(
            {
                **topic.config,
                "transactional.id": f"rejoin-dlq-{topic.name}",
                "transaction.timeout.ms": _TRANSACTION_MS,
                "message.max.bytes": 1_000_000_000,  # no limit here: the topic has its own
                "compression.type": "lz4",
                "log_level": 2,
            }
        )

    def __enter__(self) -> Self:
        with kafka_errors(_servers(self._topic.config)):
            self._producer.init_transactions(_WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()

    def replay(self, replays: Sequence[Replay]) -> None:
        """Write the records and the mark of their dead-letter records in one transaction."""
        handled = [dead_letter for replay in replays for dead_letter in replay.dead_letters]
        self._commit(replays, mark_of("replayed", handled, "all"), handled[0].position.partition)

    def drop(self, dead_letters: Sequence[DeadLetter]) -> None:
        """Write the mark of these dead-letter records in one transaction."""
        partition = dead_letters[0].position.partition
        self._commit((), mark_of("dropped", dead_letters, "own"), partition)

    def _commit(self, replays: Sequence[Replay], mark: HandledMark, partition: int) -> None:
        self._failed.clear()
        try:
            self._producer.begin_transaction()
            for replay in replays:
                self._send(replay)
            self._producer.produce(
                self._topic.name, mark.value(), mark.key(), partition, headers=mark.headers()
            )
            self._producer.commit_transaction(_WAIT_S)
        except KafkaException as cause:
            raise self._failure(cause.args[0]) from cause

    def _send(self, replay: Replay) -> None:
        source = replay.source

        def delivered(error: ClientError | None, _: object) -> None:
            if error is not None:
                self._failed.append(f"{source}: {error.str()}")

        self._producer.produce(
            source.topic,
            replay.value,
            replay.key,
            source.partition,
            on_delivery=delivered,
            timestamp=max(source.timestamp_ms, 0),
            headers=list(replay.headers),
        )

    def _failure(self, error: ClientError) -> RejoinError:
        if error.fatal() or error.code() in (ClientError._FENCED, ClientError.PRODUCER_FENCED):
            return KafkaError(
                "DLQ_FENCED",
                f"another replay or drop of {self._topic.name} has started: {error.str()}",
                hint="nothing is lost or replayed twice; see 'rejoin dlq ls', then run it again",
            )
        try:
            self._producer.abort_transaction(_WAIT_S)
        except KafkaException:
            self._failed.append("the transaction could not be aborted; it will time out")
        causes = "; ".join([error.str(), *self._failed[:3]])
        return KafkaError(
            "DLQ_REPLAY_FAILED",
            f"{self._topic.name}: a transaction was not committed: {causes}",
            hint="its dead-letter records are still open; select others with '--offsets' to leave "
            "out those that cannot be written",
        )


def _servers(config: Mapping[str, str]) -> str:
    return config["bootstrap.servers"]

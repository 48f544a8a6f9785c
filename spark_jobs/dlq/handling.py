"""Replay and drop: records and the marks of their letters in one transaction.

One transactional id per dead-letter topic. Its start fences whoever else is at it and settles what
a crashed one left behind, and only then are the marks read: a letter is replayed once, or not yet.
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
    Headers,
    Letter,
    Mark,
    Source,
    mark_of,
    read_message,
)
from spark_jobs.dlq.reading import TopicReader, reporting
from spark_jobs.dlq.topics import LetterTopic
from spark_jobs.errors import KafkaError, RejoinError

BATCH = 100  # letters of one transaction
_TRANSACTION_MS = 60_000  # how long a killed replay may hold up the readers of the source topics
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Replay:
    """A record on its way back to its topic, and all open letters that it settles."""

    source: Source
    key: bytes | None
    value: bytes | None
    headers: Headers
    letters: tuple[Letter, ...]


def read_contents(reader: TopicReader, topic: LetterTopic, *, settled: bool) -> Contents:
    """The letters of a topic; `settled`: up to its end even while a transaction is open there."""
    count = reader.partitions(topic.name)
    if count == 0:
        raise KafkaError(
            "TOPIC_MISSING", f"no dead-letter topic {topic.name} at {_servers(topic.config)}"
        )
    ends = reader.ends(topic.name) if settled else None
    starts = dict.fromkeys(range(count), OFFSET_BEGINNING)
    return Contents(read_message(m) for m in reader.read(topic.name, starts, ends))


def as_replay(letter: Letter, value: bytes | None, letters: Sequence[Letter]) -> Replay:
    """The record as it was, but for `value` and the headers that lead back to its first letter."""
    if letter.source is None:
        raise ValueError(f"letter {letter.place} has no source record")
    before = dict(letter.headers)
    first = before.get(REPLAYED) or letter.at.encode()
    count = before.get(REPLAYS) or b""
    times = int(count) + 1 if count.isdigit() and len(count) < 10 else 1
    own = tuple((n, v) for n, v in letter.headers if n not in (REPLAYED, REPLAYS))
    marked = (*own, (REPLAYED, first), (REPLAYS, str(times).encode()))
    return Replay(letter.source, letter.key, value, marked, tuple(letters))


class Handler:
    """The only one at a dead-letter topic while it is open; raises DLQ_FENCED once it is not."""

    def __init__(self, topic: LetterTopic) -> None:
        self._topic = topic
        self._failed: list[str] = []
        self._producer = Producer(
            {
                **topic.config,
                "transactional.id": f"rejoin-dlq-{topic.name}",
                "transaction.timeout.ms": _TRANSACTION_MS,
                "message.max.bytes": 1_000_000_000,  # the topic decides
                "compression.type": "lz4",
                "log_level": 2,
            }
        )

    def __enter__(self) -> Self:
        with reporting(_servers(self._topic.config)):
            self._producer.init_transactions(_WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()

    def replay(self, replays: Sequence[Replay]) -> None:
        """One transaction: the records, and the mark of their letters."""
        letters = [letter for replay in replays for letter in replay.letters]
        self._commit(replays, mark_of("replayed", letters, "all"), letters[0].place.partition)

    def drop(self, letters: Sequence[Letter]) -> None:
        """One transaction: the mark of the letters."""
        self._commit((), mark_of("dropped", letters, "own"), letters[0].place.partition)

    def _commit(self, replays: Sequence[Replay], mark: Mark, partition: int) -> None:
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
                f"another replay or drop has begun at {self._topic.name}: {error.str()}",
                hint="what was committed before that is marked; see 'rejoin dlq ls', then go on",
            )
        try:
            self._producer.abort_transaction(_WAIT_S)
        except KafkaException:
            self._failed.append("the transaction could not be aborted, it will time out")
        told = "; ".join([error.str(), *self._failed[:3]])
        return KafkaError(
            "DLQ_REPLAY_FAILED",
            f"{self._topic.name}: a transaction was not committed: {told}",
            hint="its letters are still open; '--offsets' leaves out those that cannot be written",
        )


def _servers(config: Mapping[str, str]) -> str:
    return config["bootstrap.servers"]

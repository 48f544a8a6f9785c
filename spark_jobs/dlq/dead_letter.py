"""Dead-letter records, and the marks that say which of them have been handled.

The record's own headers come before the last `__connect.errors.topic`; the headers from there on
are rejoin's (the kernel's BadRecord.scala and SinkAdmission.scala write them). A mark is a record
of the same topic with the header `rejoin.handled`. Its value names dead-letter records by position
and by source record: another query, or a job started from a new checkpoint, writes its own
dead-letter record for the same source record, and the mark covers that one too.
"""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from confluent_kafka import Message
from pydantic import BaseModel, ValidationError

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Action: TypeAlias = Literal["replayed", "dropped"]

CONNECT = "__connect.errors."
HANDLED = "rejoin.handled"
REPLAYED = "rejoin.replayed"
REPLAYS = "rejoin.replays"
REASON = "rejoin.reason"
_FIRST = CONNECT + "topic"
_MARK_VERSION = 1
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


class Position(NamedTuple):
    """Partition and offset of a record in the dead-letter topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


class SourceRecord(NamedTuple):
    """The record that was rejected. Offsets repeat in a re-created topic; the timestamp differs."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A source record that could not become a row, or a result that could not be written.

    `headers` are the record's own, `details` the headers that rejoin added, by name. `source` is
    None for late rows and for results that are too large: they are no records of a source topic.
    """

    topic: str
    position: Position
    key: bytes | None
    value: bytes | None
    headers: Headers
    details: Mapping[str, str]
    source: SourceRecord | None
    timestamp_ms: int

    @property
    def at(self) -> str:
        return f"{self.topic}[{self.position.partition}]@{self.position.offset}"

    @property
    def reason(self) -> str:
        return self.details.get(REASON, "unknown")

    @property
    def table(self) -> str:
        return self.details.get("rejoin.table", "")

    @property
    def query(self) -> str:
        return self.details.get("rejoin.query", "")

    @property
    def message(self) -> str:
        return self.details.get(CONNECT + "exception.message", "")

    @property
    def is_whole(self) -> bool:
        """False where parts of a large record were omitted."""
        parts = ("value", "key", "headers")
        return not any(f"rejoin.{part}.omitted" in self.details for part in parts)

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for all dead-letter records of one source record and table, whatever the query."""
        return (self.position,) if self.source is None else (self.source, self.table)


@dataclass(frozen=True, slots=True)
class HandledMark:
    """Says that dead-letter records are handled.

    The table beside a source record is None if the mark holds for all tables that read the record.
    """

    action: Action
    positions: tuple[Position, ...]
    records: tuple[tuple[SourceRecord, str | None], ...]

    def key(self) -> bytes:
        """A unique key, so that compaction keeps every mark."""
        return f"{HANDLED}/{uuid.uuid4()}".encode()

    def value(self) -> bytes:
        records = [[*source, table] for source, table in self.records]
        body = {"version": _MARK_VERSION, "letters": self.positions, "records": records}
        return json.dumps(body, separators=(",", ":")).encode()

    def headers(self) -> list[tuple[str, str | bytes | None]]:
        return [(HANDLED, self.action.encode())]


class _MarkBody(BaseModel):
    """A mark's value: positions of dead-letter records, and source records with their table."""

    letters: tuple[Position, ...] = ()
    records: tuple[tuple[str, int, int, int, str | None], ...] = ()


def read_message(message: Message) -> DeadLetter | HandledMark:
    """Read any record of a dead-letter topic, whoever wrote it.

    A record with a `rejoin.reason` is a dead letter, even if it has a mark's header too: the
    rejected record may have been a mark in the source topic.
    """
    headers = _headers(message)
    names = {name for name, _ in headers}
    if HANDLED in names and REASON not in names:
        mark = _mark(dict(headers)[HANDLED], _bytes(message.value()))
        if mark is not None:
            return mark
    first = max((i for i, (name, _) in enumerate(headers) if name == _FIRST), default=0)
    details = {n: (value or b"").decode("utf-8", "replace") for n, value in headers[first:]}
    timestamp_ms = _integer(details.get("rejoin.timestamp"))
    if timestamp_ms is None:
        timestamp_ms = message.timestamp()[1]
    return DeadLetter(
        topic=str(message.topic()),
        position=Position(_number(message.partition()), _number(message.offset())),
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple(headers[:first]),
        details=details,
        source=_source(details, timestamp_ms),
        timestamp_ms=timestamp_ms,
    )


def with_whole_record(dead_letter: DeadLetter, message: Message) -> DeadLetter | None:
    """Fill in the omitted parts from the source record; None if `message` is another record."""
    if dead_letter.source is None or message.timestamp()[1] != dead_letter.source.timestamp_ms:
        return None
    key, value = _bytes(message.key()), _bytes(message.value())
    return replace(dead_letter, key=key, value=value, headers=tuple(_headers(message)))


def _source(details: Mapping[str, str], timestamp_ms: int) -> SourceRecord | None:
    topic = details.get(CONNECT + "topic")
    partition, offset = (_integer(details.get(CONNECT + n)) for n in ("partition", "offset"))
    if topic is None or partition is None or offset is None:
        return None
    return SourceRecord(topic, partition, offset, timestamp_ms)


def _integer(text: str | None) -> int | None:
    """None unless the header is a number: anybody can write to the topic."""
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None


def _mark(action: bytes | None, value: bytes | None) -> HandledMark | None:
    """None if the value is not a mark's."""
    try:
        body = _MarkBody.model_validate_json(value or b"{}")
    except ValidationError:
        return None
    records = tuple((SourceRecord(*record[:4]), record[4]) for record in body.records)
    return HandledMark("replayed" if action == b"replayed" else "dropped", body.letters, records)


class Contents:
    """All dead-letter records of a topic, in order, and which of them are handled."""

    def __init__(self, found: Iterable[DeadLetter | HandledMark]) -> None:
        self.dead_letters: list[DeadLetter] = []
        self._positions: dict[Position, Action] = {}
        self._records: dict[tuple[SourceRecord, str | None], Action] = {}
        for item in found:
            if isinstance(item, DeadLetter):
                self.dead_letters.append(item)
            else:
                self._positions |= dict.fromkeys(item.positions, item.action)
                self._records |= dict.fromkeys(item.records, item.action)
        self.dead_letters.sort(key=lambda item: item.position)

    def handled(self, dead_letter: DeadLetter) -> Action | None:
        if dead_letter.source is None:
            return self._positions.get(dead_letter.position)
        return (
            self._positions.get(dead_letter.position)
            or self._records.get((dead_letter.source, None))
            or self._records.get((dead_letter.source, dead_letter.table))
        )

    def open(self) -> Iterator[DeadLetter]:
        return (item for item in self.dead_letters if self.handled(item) is None)


def first_of_each(dead_letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """One dead-letter record per source record and table; each query that reads it wrote one."""
    found: dict[tuple[object, ...], DeadLetter] = {}
    for dead_letter in dead_letters:
        found.setdefault(dead_letter.identity, dead_letter)
    return list(found.values())


def mark_of(
    action: Action, dead_letters: Sequence[DeadLetter], tables: Literal["all", "own"]
) -> HandledMark:
    """Mark dead-letter records as handled: for all tables that read their source records, or for
    the tables that rejected them only."""
    records = {
        (item.source, None if tables == "all" else item.table): None
        for item in dead_letters
        if item.source is not None
    }
    return HandledMark(action, tuple(item.position for item in dead_letters), tuple(records))


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return [(name, v.encode() if isinstance(v, str) else v) for name, v in pairs]


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None


def _number(value: int | None) -> int:
    return -1 if value is None else value

"""A dead letter as it lies in its topic, and the marks of those that have been handled.

The record's own headers stand before the last `__connect.errors.topic`; from there on they are
ours (spark_jobs/kernel/BadRecord.scala, SinkAdmission.scala). A mark is a record of the same topic
with the header `rejoin.handled`; its value names letters by their place in the topic, and their
source records, so that the letter of a second query, or of a job that begins anew, counts too.
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


class Place(NamedTuple):
    """Where a letter lies in its topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


class Source(NamedTuple):
    """The record that a letter is of; the time tells it from one of a topic that was made anew."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A record that could not become a row, or a result that could not be written.

    `headers` are the record's own; `told` is what rejoin says of it, by header name. `source` is
    None for what is no record of a source topic: late rows, results that are too large.
    """

    topic: str
    place: Place
    key: bytes | None
    value: bytes | None
    headers: Headers
    told: Mapping[str, str]
    source: Source | None
    timestamp_ms: int

    @property
    def at(self) -> str:
        return f"{self.topic}[{self.place.partition}]@{self.place.offset}"

    @property
    def reason(self) -> str:
        return self.told.get(REASON, "unknown")

    @property
    def table(self) -> str:
        return self.told.get("rejoin.table", "")

    @property
    def query(self) -> str:
        return self.told.get("rejoin.query", "")

    @property
    def message(self) -> str:
        return self.told.get(CONNECT + "exception.message", "")

    @property
    def is_whole(self) -> bool:
        """Whether it holds all of the record, which a large one does not."""
        parts = ("value", "key", "headers")
        return not any(f"rejoin.{part}.omitted" in self.told for part in parts)

    @property
    def identity(self) -> tuple[object, ...]:
        """What letters of one record and table have in common, whichever query wrote them."""
        return (self.place,) if self.source is None else (self.source, self.table)


@dataclass(frozen=True, slots=True)
class Mark:
    """Letters that are done with. `tables` says for whom their records are: None for everybody."""

    action: Action
    places: tuple[Place, ...]
    records: tuple[tuple[Source, str | None], ...]

    def key(self) -> bytes:
        """Unlike any other, so that compaction keeps it."""
        return f"{HANDLED}/{uuid.uuid4()}".encode()

    def value(self) -> bytes:
        records = [[*source, table] for source, table in self.records]
        told = {"version": _MARK_VERSION, "letters": self.places, "records": records}
        return json.dumps(told, separators=(",", ":")).encode()

    def headers(self) -> list[tuple[str, str | bytes | None]]:
        return [(HANDLED, self.action.encode())]


class _MarkBody(BaseModel):
    """A mark's value: letters by place, and their records with the table they count for."""

    letters: tuple[Place, ...] = ()
    records: tuple[tuple[str, int, int, int, str | None], ...] = ()


def read_message(message: Message) -> Letter | Mark:
    """Either of the two that lie in a dead-letter topic, whatever else was written there.

    A letter says its reason. Its record may have been a mark of another topic, or look like one.
    """
    headers = _headers(message)
    names = {name for name, _ in headers}
    if HANDLED in names and REASON not in names:
        mark = _mark(dict(headers)[HANDLED], _bytes(message.value()))
        if mark is not None:
            return mark
    first = max((i for i, (name, _) in enumerate(headers) if name == _FIRST), default=0)
    told = {name: (value or b"").decode("utf-8", "replace") for name, value in headers[first:]}
    timestamp_ms = _integer(told.get("rejoin.timestamp"))
    if timestamp_ms is None:
        timestamp_ms = message.timestamp()[1]
    return Letter(
        topic=str(message.topic()),
        place=Place(_number(message.partition()), _number(message.offset())),
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple(headers[:first]),
        told=told,
        source=_source(told, timestamp_ms),
        timestamp_ms=timestamp_ms,
    )


def whole_record(letter: Letter, message: Message) -> Letter | None:
    """A letter that lacks a part, with all of its record; None if this is another record."""
    if letter.source is None or message.timestamp()[1] != letter.source.timestamp_ms:
        return None
    key, value = _bytes(message.key()), _bytes(message.value())
    return replace(letter, key=key, value=value, headers=tuple(_headers(message)))


def _source(told: Mapping[str, str], timestamp_ms: int) -> Source | None:
    topic = told.get(CONNECT + "topic")
    partition, offset = (_integer(told.get(CONNECT + n)) for n in ("partition", "offset"))
    if topic is None or partition is None or offset is None:
        return None
    return Source(topic, partition, offset, timestamp_ms)


def _integer(text: str | None) -> int | None:
    """Of a header that anybody may have written."""
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None


def _mark(action: bytes | None, value: bytes | None) -> Mark | None:
    """None for what is none of ours."""
    try:
        told = _MarkBody.model_validate_json(value or b"{}")
    except ValidationError:
        return None
    records = tuple((Source(*record[:4]), record[4]) for record in told.records)
    return Mark("replayed" if action == b"replayed" else "dropped", told.letters, records)


class Contents:
    """All letters of a topic, in order, and which of them are done with."""

    def __init__(self, found: Iterable[Letter | Mark]) -> None:
        self.letters: list[Letter] = []
        self._places: dict[Place, Action] = {}
        self._records: dict[tuple[Source, str | None], Action] = {}
        for item in found:
            if isinstance(item, Letter):
                self.letters.append(item)
            else:
                self._places |= dict.fromkeys(item.places, item.action)
                self._records |= dict.fromkeys(item.records, item.action)
        self.letters.sort(key=lambda letter: letter.place)

    def handled(self, letter: Letter) -> Action | None:
        if letter.source is None:
            return self._places.get(letter.place)
        return (
            self._places.get(letter.place)
            or self._records.get((letter.source, None))
            or self._records.get((letter.source, letter.table))
        )

    def open(self) -> Iterator[Letter]:
        return (letter for letter in self.letters if self.handled(letter) is None)


def once(letters: Iterable[Letter]) -> list[Letter]:
    """The first letter of each record and table: every query that reads it has written one."""
    found: dict[tuple[object, ...], Letter] = {}
    for letter in letters:
        found.setdefault(letter.identity, letter)
    return list(found.values())


def mark_of(action: Action, letters: Sequence[Letter], tables: Literal["all", "own"]) -> Mark:
    """The mark of letters that are done with, for every table that reads their records or for the
    letters' own tables only."""
    records = {
        (letter.source, None if tables == "all" else letter.table): None
        for letter in letters
        if letter.source is not None
    }
    return Mark(action, tuple(letter.place for letter in letters), tuple(records))


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return [(name, v.encode() if isinstance(v, str) else v) for name, v in pairs]


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None


def _number(value: int | None) -> int:
    return -1 if value is None else value

"""Reads an engine's sink topic as a read_committed consumer does, and verifies the result."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from typing import Any, TypeAlias, cast

import fastavro
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from bench.avro import schema_by_id
from bench.measure import BenchError
from bench.workloads.records import PARTITIONS, Expected, Key, Row
from bench.workloads.workload import SinkKind, Workload
from spark_jobs.errors import FormatError, KafkaError

_POLL_S = 0.2
_STALL_S = 30.0
_BATCH = 10_000
_FRAME_BYTES = 5
_SHOWN = 3
Change: TypeAlias = tuple[Row | None, Row | None]  # the row before, the row after
_MICROS_PER_UNIT = {
    "timestamp-millis": 1000,
    "local-timestamp-millis": 1000,
    "timestamp-micros": 1,
    "local-timestamp-micros": 1,
}


@dataclass(frozen=True, slots=True)
class Folded:
    """The final rows by key, the number of records, and keys with more than one row.

    `repeated` is empty for an upsert sink, where a repeated key is an update.
    """

    rows: dict[Key, Row]
    records: int
    repeated: tuple[Key, ...]


def fold(workload: Workload, bootstrap_servers: str, registry_url: str, topic: str) -> Folded:
    """Read the topic of a sink with updates to its end and fold it into rows by key."""
    read = Decoder(registry_url, workload)
    messages = committed(bootstrap_servers, topic)
    if workload.sink == "upsert":
        return _fold_upserts(read, messages, topic)
    changes = _signed(read, messages) if workload.sink == "signed" else _debezium(read, messages)
    return _fold_changes(read, changes)


class Verifier:
    """Compares result topics of a workload with the rows that are expected.

    Appended rows are decoded once: a topic with the bytes of one that was right is right as well.
    """

    def __init__(
        self, workload: Workload, expected: Expected, bootstrap_servers: str, registry_url: str
    ) -> None:
        self._workload = workload
        self._expected = expected
        self._kafka = (bootstrap_servers, registry_url)
        self._right: list[set[bytes]] = []

    def verified(self, sink: SinkKind, topic: str) -> Folded:
        """The folded result; raises BenchError unless it has exactly the expected rows."""
        if sink == "append":
            return self._appended(topic)
        return self._checked(fold(replace(self._workload, sink=sink), *self._kafka, topic), topic)

    def _appended(self, topic: str) -> Folded:
        servers, registry_url = self._kafka
        values = list(_values(committed(servers, topic)))
        unique = set(values)
        if len(unique) < len(values) or unique not in self._right:
            self._checked(fold_appends(Decoder(registry_url, self._workload), values), topic)
            self._right.append(unique)
        return Folded(self._expected, len(values), ())

    def _checked(self, found: Folded, topic: str) -> Folded:
        if found.repeated:
            keys = ", ".join(str(key) for key in found.repeated[:5])
            count = len(found.repeated)
            raise BenchError("BENCH_DOUBLED", f"{topic}: {count} rows were written twice: {keys}")
        if lines := differences(found.rows, self._expected, (topic, "the expected result")):
            raise BenchError("BENCH_WRONG_RESULT", "\n".join(lines))
        return found


def _values(messages: Iterable[Message]) -> Iterator[bytes]:
    return (cast(bytes, message.value()) for message in messages)


def fold_appends(read: "Decoder", values: Iterable[bytes]) -> Folded:
    """The rows of a sink without updates by key, and the keys that it has more than once."""
    rows: dict[Key, Row] = {}
    repeated: list[Key] = []
    records = 0
    for value in values:
        records += 1
        key, row = read(value)
        if key in rows:
            repeated.append(key)
        rows[key] = row
    return Folded(rows, records, tuple(repeated))


def _debezium(read: "Decoder", messages: Iterable[Message]) -> Iterator[Change]:
    for value in _values(messages):
        yield read.change(value)


def _signed(read: "Decoder", messages: Iterable[Message]) -> Iterator[Change]:
    for message in messages:
        _, row = read(cast(bytes, message.value()))
        signs = dict(message.headers() or ())
        yield (row, None) if signs["pathway_diff"] == b"-1" else (None, row)


def _fold_changes(read: "Decoder", changes: Iterable[Change]) -> Folded:
    """Add and take back rows; which is first does not matter, so partitions need no order."""
    counts: Counter[Row] = Counter()
    records = 0
    for before, after in changes:
        records += 1
        if before is not None:
            counts[before] -= 1
        if after is not None:
            counts[after] += 1
    if below := [row for row, count in counts.items() if count < 0]:
        raise BenchError(
            "BENCH_WRONG_RESULT", f"{len(below)} rows were taken back once too often: {below[0]}"
        )
    left = [row for row, count in counts.items() for _ in range(count)]
    rows = {read.key(row): row for row in left}
    keys = Counter(read.key(row) for row in left)
    return Folded(rows, records, tuple(key for key, count in keys.items() if count > 1))


def _fold_upserts(read: "Decoder", messages: Iterable[Message], topic: str) -> Folded:
    """Fold by key, decoding only the last value of each.

    Keys are compared as bytes, which is correct within one schema id. The check below finds a key
    that was written with two ids.
    """
    last: list[dict[bytes, bytes | None]] = [{} for _ in range(PARTITIONS)]
    records = 0
    for message in messages:
        records += 1
        last[cast(int, message.partition())][cast(bytes, message.key())] = message.value()
    rows: dict[Key, Row] = {}
    for partition in last:
        for value in partition.values():
            if value is None:
                continue
            key, row = read(value)
            if key in rows:
                raise FormatError(
                    "BENCH_KEY_SPLIT", f"{topic}: key {key} is in two partitions or encodings"
                )
            rows[key] = row
    return Folded(rows, records, ())


class Decoder:
    """Decodes Confluent-framed Avro to rows; times of any unit become microseconds."""

    def __init__(self, registry_url: str, workload: Workload) -> None:
        self._registry_url = registry_url
        self._columns = workload.columns
        self._readers: dict[int, Callable[[bytes], Any]] = {}
        self.key = workload.key

    def __call__(self, framed: bytes) -> tuple[Key, Row]:
        """The key and the row."""
        row = cast(Row, self._reader(framed)(framed))
        return self.key(row), row

    def change(self, framed: bytes) -> Change:
        """A change in Debezium's envelope."""
        return cast(Change, self._reader(framed)(framed))

    def _reader(self, framed: bytes) -> Callable[[bytes], Any]:
        schema_id = int.from_bytes(framed[1:_FRAME_BYTES])
        reader = self._readers.get(schema_id)
        if reader is None:
            reader = self._readers[schema_id] = self._new_reader(schema_id)
        return reader

    def _new_reader(self, schema_id: int) -> Callable[[bytes], Any]:
        schema = json.loads(schema_by_id(self._registry_url, schema_id))
        fields = _record(schema)["fields"]
        types = {field["name"]: field["type"] for field in fields}
        parsed = fastavro.parse_schema(_without_logical_types(schema))
        envelope = "before" in types and "after" in types
        row = self._row_of(_record(types["before"] if envelope else schema), schema_id)

        def read(framed: bytes) -> Any:
            data = BytesIO(framed)
            data.seek(_FRAME_BYTES)
            record = cast(dict[str, Any], fastavro.schemaless_reader(data, parsed, None))
            if not envelope:
                return row(record)
            before, after = record["before"], record["after"]
            return before and row(before), after and row(after)

        return read

    def _row_of(self, schema: dict[str, Any], schema_id: int) -> Callable[[dict[str, Any]], Row]:
        scales = {field["name"]: _time_scale(field["type"]) for field in schema["fields"]}
        if missing := [name for name in self._columns if name not in scales]:
            raise FormatError("BENCH_COLUMNS_MISSING", f"schema {schema_id} lacks {missing}")
        plan = tuple((name, scales[name]) for name in self._columns)
        return lambda record: tuple(
            record[name] if scale is None or record[name] is None else record[name] * scale
            for name, scale in plan
        )


def _record(kind: Any) -> dict[str, Any]:
    """The record in a type that may be null."""
    members = kind if isinstance(kind, list) else [kind]
    return cast("dict[str, Any]", next(m for m in members if isinstance(m, dict)))


def _time_scale(kind: Any) -> int | None:
    """Microseconds per unit of this type; None if it is no time."""
    match kind:
        case list():
            return next((scale for member in kind if (scale := _time_scale(member))), None)
        case {"logicalType": logical}:
            return _MICROS_PER_UNIT.get(logical)
        case _:
            return None


def _without_logical_types(schema: Any) -> Any:
    """Remove logical types, because creating datetimes would take half of the reading time."""
    match schema:
        case dict():
            kept = {name: part for name, part in schema.items() if name != "logicalType"}
            return {name: _without_logical_types(part) for name, part in kept.items()}
        case list():
            return [_without_logical_types(part) for part in schema]
        case _:
            return schema


def committed(bootstrap_servers: str, topic: str) -> Iterator[Message]:
    """All committed records that are in the topic now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "log_level": 3,
            "group.id": "rejoin-bench-reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            # a full queue is filled again soon; by default only a second later, so that no more
            # than 100,000 records of a partition are read in a second
            "fetch.queue.backoff.ms": 10,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        at_end: set[int] = set()
        deadline = time.monotonic() + _STALL_S
        while len(at_end) < PARTITIONS:
            batch = consumer.consume(_BATCH, _POLL_S)  # only the last batch waits this long
            if batch:
                deadline = time.monotonic() + _STALL_S
            elif time.monotonic() > deadline:
                raise KafkaError("BENCH_READ_STALLED", f"{topic}: no record for {_STALL_S:.0f} s")
            for message in batch:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == ClientError._PARTITION_EOF:
                    at_end.add(cast(int, message.partition()))
                else:
                    raise KafkaError("BENCH_READ_FAILED", f"{topic}: {error}")
    finally:
        consumer.close()


def differences(found: dict[Key, Row], wanted: dict[Key, Row], names: tuple[str, str]) -> list[str]:
    """Some of the differences as text; empty if the rows are equal."""
    if found == wanted:
        return []
    one, other = names
    missing = (f"only {other} has {row}" for key, row in wanted.items() if key not in found)
    extra = (f"only {one} has {row}" for key, row in found.items() if key not in wanted)
    unequal = (
        f"{one} has {row}, {other} has {wanted[key]}"
        for key, row in found.items()
        if key in wanted and wanted[key] != row
    )
    return [line for kind in (missing, extra, unequal) for line in islice(kind, _SHOWN)]


def verify_ids(bootstrap_servers: str, topic: str, expected: tuple[int, int]) -> int:
    """The number of committed records of CSV, whose first field is an id.

    `expected` are this number and the sum of the ids. Raises BenchError if the topic has others.
    """
    count = total = 0
    for message in committed(bootstrap_servers, topic):
        count += 1
        total += int((message.value() or b"").partition(b",")[0])
    if (count, total) != expected:
        raise BenchError(
            "BENCH_WRONG_RESULT", f"found {count} records and a sum of {total}, not {expected}"
        )
    return count

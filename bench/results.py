"""Reads an engine's sink topic as a read_committed consumer does, and verifies the result."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, cast

import fastavro
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from bench.avro import schema_by_id
from bench.data import PARTITIONS, Expected, Row
from bench.jobs import BenchJob
from bench.measure import BenchError
from spark_jobs.errors import FormatError, KafkaError

_POLL_S = 0.2
_STALL_S = 30.0
_BATCH = 10_000
_FRAME_BYTES = 5
_SHOWN = 3
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

    rows: dict[int, Row]
    records: int
    repeated: tuple[int, ...]


def fold(job: BenchJob, bootstrap_servers: str, registry_url: str, topic: str) -> Folded:
    """Read the sink topic to its end and fold it into rows by key."""
    read = Decoder(registry_url, job.sink_columns)
    messages = committed(bootstrap_servers, topic)
    return _fold_appends(read, messages) if job.appends else _fold_upserts(read, messages, topic)


def verified(
    job: BenchJob, expected: Expected, bootstrap_servers: str, registry_url: str, topic: str
) -> Folded:
    """The folded result; raises BenchError unless it has exactly the expected rows."""
    found = fold(job, bootstrap_servers, registry_url, topic)
    if found.repeated:
        keys = ", ".join(str(key) for key in found.repeated[:5])
        count = len(found.repeated)
        raise BenchError("BENCH_DOUBLED", f"{topic}: {count} rows were written twice: {keys}")
    if lines := differences(found.rows, expected, (topic, "the expected result")):
        raise BenchError("BENCH_WRONG_RESULT", "\n".join(lines))
    return found


def _fold_appends(read: "Decoder", messages: Iterable[Message]) -> Folded:
    rows: dict[int, Row] = {}
    repeated: list[int] = []
    records = 0
    for message in messages:
        records += 1
        key, row = read(cast(bytes, message.value()))
        if key in rows:
            repeated.append(key)
        rows[key] = row
    return Folded(rows, records, tuple(repeated))


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
    rows: dict[int, Row] = {}
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

    def __init__(self, registry_url: str, columns: tuple[str, ...]) -> None:
        self._registry_url = registry_url
        self._columns = columns
        self._readers: dict[int, Callable[[bytes], Row]] = {}

    def __call__(self, framed: bytes) -> tuple[int, Row]:
        """The key, which is the first column, and the row."""
        schema_id = int.from_bytes(framed[1:_FRAME_BYTES])
        reader = self._readers.get(schema_id)
        if reader is None:
            reader = self._readers[schema_id] = self._reader(schema_id)
        row = reader(framed)
        return cast(int, row[0]), row

    def _reader(self, schema_id: int) -> Callable[[bytes], Row]:
        schema = json.loads(schema_by_id(self._registry_url, schema_id))
        scales = {field["name"]: _time_scale(field["type"]) for field in schema["fields"]}
        if missing := [name for name in self._columns if name not in scales]:
            raise FormatError("BENCH_COLUMNS_MISSING", f"schema {schema_id} lacks {missing}")
        parsed = fastavro.parse_schema(_without_logical_types(schema))
        plan = tuple((name, scales[name]) for name in self._columns)

        def read(framed: bytes) -> Row:
            data = BytesIO(framed)
            data.seek(_FRAME_BYTES)
            record = cast(dict[str, Any], fastavro.schemaless_reader(data, parsed, None))
            return tuple(
                record[name] if scale is None or record[name] is None else record[name] * scale
                for name, scale in plan
            )

        return read


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


def in_micros(expected: Expected, columns: tuple[str, ...]) -> Expected:
    """The expected rows with times in microseconds, as in folded rows."""
    at = next(n for n, column in enumerate(columns) if column in ("placed_at", "order_time"))
    return {
        key: (*row[:at], cast(int, row[at]) * 1000, *row[at + 1 :]) for key, row in expected.items()
    }


def differences(found: dict[int, Row], wanted: dict[int, Row], names: tuple[str, str]) -> list[str]:
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

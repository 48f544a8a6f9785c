"""What an engine left in its sink topic, as a downstream read_committed consumer folds it."""

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
    """The final rows by key, the records they took, and the keys that came more often than once.

    `repeated` is empty for an upsert sink, where repetition is an update.
    """

    rows: dict[int, Row]
    records: int
    repeated: tuple[int, ...]


def fold(job: BenchJob, bootstrap_servers: str, registry_url: str, topic: str) -> Folded:
    """Read the sink topic to its end; fold it by key (upsert) or count each row (append)."""
    read = Decoder(registry_url, job.sink_columns)
    messages = committed(bootstrap_servers, topic)
    return _fold_appends(read, messages) if job.appends else _fold_upserts(read, messages, topic)


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
    """Only the last value of a key is decoded.

    Keys are compared as bytes: equal keys are equal bytes within one schema id, and the check
    below finds a key that came under two.
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
                    "BENCH_KEY_SPLIT", f"{topic}: key {key} came in two partitions or encodings"
                )
            rows[key] = row
    return Folded(rows, records, ())


class Decoder:
    """Confluent-framed Avro to the sink's row; times become microseconds, whatever their unit."""

    def __init__(self, registry_url: str, columns: tuple[str, ...]) -> None:
        self._registry_url = registry_url
        self._columns = columns
        self._readers: dict[int, Callable[[bytes], Row]] = {}

    def __call__(self, framed: bytes) -> tuple[int, Row]:
        """The value of the first column, which is the key, and the row."""
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
    """Microseconds in a unit of this type; None if it is no time."""
    match kind:
        case list():
            return next((scale for member in kind if (scale := _time_scale(member))), None)
        case {"logicalType": logical}:
            return _MICROS_PER_UNIT.get(logical)
        case _:
            return None


def _without_logical_types(schema: Any) -> Any:
    """So that times stay numbers: datetimes would take half of the reading."""
    match schema:
        case dict():
            kept = {name: part for name, part in schema.items() if name != "logicalType"}
            return {name: _without_logical_types(part) for name, part in kept.items()}
        case list():
            return [_without_logical_types(part) for part in schema]
        case _:
            return schema


def committed(bootstrap_servers: str, topic: str) -> Iterator[Message]:
    """Every committed record that the topic holds now."""
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
            batch = consumer.consume(_BATCH, _POLL_S)  # waits this long for the last, short batch
            if batch:
                deadline = time.monotonic() + _STALL_S
            elif time.monotonic() > deadline:
                raise KafkaError("BENCH_READ_STALLED", f"{topic}: nothing for {_STALL_S:.0f} s")
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
    """The generator's rows with their times in microseconds, as folded rows have them."""
    at = next(n for n, column in enumerate(columns) if column in ("placed_at", "order_time"))
    return {
        key: (*row[:at], cast(int, row[at]) * 1000, *row[at + 1 :]) for key, row in expected.items()
    }


def differences(found: dict[int, Row], wanted: dict[int, Row], names: tuple[str, str]) -> list[str]:
    """A few of the rows in which the two differ, in words; empty when they are equal."""
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

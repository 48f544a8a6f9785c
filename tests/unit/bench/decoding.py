"""Reads the records of a generator with fastavro, which shares no code with their encoders."""

import io
import json
from functools import cache
from typing import Any, TypeAlias

import fastavro

from bench.avro import frame
from bench.workloads.records import BenchData, InputTopic

Change: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None]  # key, value


def written(schema: str, value: object) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(json.loads(schema)), value)
    return data.getvalue()


@cache
def parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema.replace('"logicalType"', '"ignored"')))


def decode(schema: str, data: bytes | None, schema_id: int) -> dict[str, Any] | None:
    if data is None:
        return None
    assert data.startswith(frame(schema_id))
    rest = io.BytesIO(data[5:])
    record = fastavro.schemaless_reader(rest, parsed(schema), None)
    assert not rest.read()
    assert isinstance(record, dict)
    return record


def changes(data: BenchData, topic: InputTopic) -> list[Change]:
    """The decoded records of a topic; a key that has two partitions fails."""
    schemas = topic.schemas()
    value_schema = schemas[f"{topic.name}-value"]
    key_schema = schemas.get(f"{topic.name}-key", "")
    found: list[Change] = []
    homes: dict[str, int] = {}
    for partition, key, value in data.records(topic, 11, 12):
        decoded = decode(key_schema, key, 11)
        found.append((decoded, decode(value_schema, value, 12)))
        home = homes.setdefault(str(decoded), partition)
        assert decoded is None or home == partition, "a key has one partition"
    return found


def table(data: BenchData, topic: InputTopic) -> dict[int, dict[str, Any]]:
    """The rows of an upsert topic by key once all is read."""
    rows: dict[int, dict[str, Any]] = {}
    for key, value in changes(data, topic):
        assert key is not None
        (number,) = key.values()
        if value is None:
            del rows[number]  # only what exists is deleted
        else:
            assert number == next(iter(value.values()))
            rows[number] = value
    return rows


def appended(data: BenchData, topic: InputTopic) -> list[dict[str, Any]]:
    """The rows of an append topic."""
    rows = []
    for key, value in changes(data, topic):
        assert key is None
        assert value is not None
        rows.append(value)
    return rows

"""What the keys of sampled records are, and which columns they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spark_jobs.errors import FormatError
from spark_jobs.sql.types.data_types import STRING
from spark_jobs.table.columns import Column
from spark_jobs.table.json_columns import json_columns
from spark_jobs.table.registered import Schemas, is_framed
from spark_jobs.table.sampling import SampledRecord, TopicSample
from spark_jobs.table.schema_columns import avro_columns, connect_columns
from spark_jobs.table.texts import parse_json
from spark_jobs.table.values import SampledValue

KeyFormat: TypeAlias = Literal["json", "json-registry", "avro-confluent", "raw"]

RAW_KEY = "record_key"


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The columns that every record key has.

    `connect`: JSON keys carry Kafka Connect's schema, which only change events may have.
    """

    format: KeyFormat
    columns: tuple[Column, ...]
    connect: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def read_key(
    sample: TopicSample, values: Sequence[SampledValue], schemas: Schemas | None
) -> tuple[RecordKey | None, str | None]:
    """The key of a topic's records, or why there is none. Raises KafkaError, FormatError."""
    whole_table = {id(value.record) for value in values if value.op == "t"}  # a TRUNCATE has no key
    keys = [record.key for record in sample.records if id(record) not in whole_table]
    if not keys:
        return _registered(sample.topic, schemas), None
    if missing := keys.count(None):
        some = f"{missing} of {len(keys)} sampled records have no key"
        return None, "no record has a key" if missing == len(keys) else some
    known = [key for key in keys if key is not None]
    if all(map(is_framed, known)):
        return _framed(sample.topic, known, schemas)
    parsed = [_json(key) for key in known]
    objects = [key for key in parsed if isinstance(key, dict)]
    if len(objects) == len(known):
        return _objects(objects), None
    if objects:
        return None, "some keys are JSON objects and others are not"
    if not all(_is_text(key) for key in known):
        return None, "keys are bytes of an unknown kind"
    return RecordKey("raw", (_text_column(sample.records, values),)), None


def _registered(topic: str, schemas: Schemas | None) -> RecordKey | None:
    schema = None if schemas is None else schemas.newest(topic, "key")
    return None if schema is None or schema.kind != "AVRO" else _of_schema(schema.schema)


def _framed(
    topic: str, keys: Sequence[bytes], schemas: Schemas | None
) -> tuple[RecordKey | None, str | None]:
    if schemas is None:
        return None, "keys are framed with a schema id, and no registry is given"
    try:
        written = schemas.of(keys[-1])
    except FormatError as unread:
        return None, f"the keys cannot be read: {unread.message}"
    if written.kind == "JSON":
        return _json_of_registry(keys, schemas)
    newest = schemas.newest(topic, "key")
    key = _of_schema((newest if newest is not None and newest.kind == "AVRO" else written).schema)
    return key, None if key else "the schema of keys is no record"


def _json_of_registry(
    keys: Sequence[bytes], schemas: Schemas
) -> tuple[RecordKey | None, str | None]:
    try:
        objects = [key for key in map(schemas.read, keys) if isinstance(key, dict)]
    except ValueError:
        objects = []
    if len(objects) < len(keys):
        return None, "some keys are no JSON objects"
    return RecordKey("json-registry", json_columns(objects).columns), None


def _of_schema(schema: Any) -> RecordKey | None:
    try:
        return RecordKey("avro-confluent", avro_columns(schema))
    except ValueError:
        return None


def _objects(keys: Sequence[dict[str, Any]]) -> RecordKey:
    if all(key.keys() == {"schema", "payload"} for key in keys) and keys[-1]["schema"]:
        return RecordKey("json", connect_columns(keys[-1]["schema"]), connect=True)
    return RecordKey("json", json_columns(keys).columns)


def _text_column(records: Sequence[SampledRecord], values: Sequence[SampledValue]) -> Column:
    """The text column whose value is the key in every record, or one of its own."""
    rows = [(value.record.key, value.row) for value in values if value.row is not None]
    for name in rows[0][1] if rows else ():
        if all(key is not None and _same_text(row.get(name), key) for key, row in rows):
            return Column(name, STRING)
    return Column(RAW_KEY, STRING, "the text of the record key, which no field repeats")


def _same_text(value: object, key: bytes) -> bool:
    return isinstance(value, str) and value.encode() == key


def _json(key: bytes) -> object:
    try:
        return parse_json(key)
    except ValueError:
        return None


def _is_text(key: bytes) -> bool:
    try:
        return key.decode().isprintable()
    except UnicodeDecodeError:
        return False


def in_value(key: RecordKey, columns: Mapping[str, Column]) -> bool:
    """Whether the value repeats every column of the key."""
    return all(name in columns for name in key.names)

"""Schemas of a registry: the newest of a topic's subjects, and those that records name.

Avro's schemas are read. JSON Schema is only recognised: the format json-registry reads no schema,
so that columns come from the records. Protobuf is refused, as its format needs a descriptor file.
"""

import io
import json
import struct
from typing import Any, Literal, NamedTuple, TypeAlias

import fastavro

from spark_jobs.errors import FormatError
from spark_jobs.formats.registry import RegisteredSchema, RegistryClient
from spark_jobs.table.texts import parse_json

Part: TypeAlias = Literal["key", "value"]
SchemaKind: TypeAlias = Literal["AVRO", "JSON"]

_PREFIX = struct.Struct(">bi")
_BY_HAND = "write the CREATE TABLE by hand: docs/formats.md has the types"
_BY_DESCRIPTOR = (
    "write the CREATE TABLE by hand with 'format' = 'proto-registry', and with protoc's descriptor "
    "file as 'proto-registry.descriptor-file': docs/formats.md#protobuf"
)


class TopicSchema(NamedTuple):
    """A schema as parsed JSON, and what it is written in."""

    kind: SchemaKind
    schema: Any


def is_framed(data: bytes) -> bool:
    """Whether bytes begin as Confluent's serializers write them: a zero byte and a schema id."""
    return len(data) >= _PREFIX.size and data[0] == 0


class Schemas:
    """The schemas of one registry; each id is fetched once.

    Methods raise KafkaError, and FormatError for a schema that is neither Avro nor JSON Schema.
    """

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._known: dict[int, TopicSchema] = {}
        self._readers: dict[int, Any] = {}

    def newest(self, topic: str, part: Part) -> TopicSchema | None:
        """The newest schema of the subject `<topic>-<part>`; None without one."""
        latest = self._client.latest(f"{topic}-{part}")
        return None if latest is None else self._schema(latest.id)

    def of(self, data: bytes) -> TopicSchema:
        """The schema that framed bytes name."""
        return self._schema(_PREFIX.unpack_from(data)[1])

    def read(self, data: bytes) -> Any:
        """The value of framed bytes; logical types of Avro stay numbers, bytes and texts.

        Raises ValueError if the bytes are not of the schema that they name, or are no JSON.
        """
        body = data[_PREFIX.size :]
        return parse_json(body) if self.of(data).kind == "JSON" else self._avro(data, body)

    def _avro(self, data: bytes, encoded: bytes) -> Any:
        schema_id = _PREFIX.unpack_from(data)[1]
        if schema_id not in self._readers:
            plain = _without_logical_types(self._schema(schema_id).schema)
            self._readers[schema_id] = fastavro.parse_schema(plain)
        body = io.BytesIO(encoded)
        try:
            value = fastavro.schemaless_reader(body, self._readers[schema_id], None)
        except (EOFError, IndexError, KeyError, UnicodeDecodeError, struct.error) as cause:
            raise ValueError(f"not of schema {schema_id}") from cause
        if body.read(1):
            raise ValueError(f"bytes are left over after schema {schema_id}")
        return value

    def _schema(self, schema_id: int) -> TopicSchema:
        if schema_id not in self._known:
            self._known[schema_id] = _known(schema_id, self._client.schema(schema_id))
        return self._known[schema_id]


def _known(schema_id: int, found: RegisteredSchema) -> TopicSchema:
    what = f"schema {schema_id} of the registry"
    match found.kind:
        case "JSON":
            return TopicSchema("JSON", json.loads(found.text))
        case "AVRO" if found.has_references:
            problem, hint = "refers to other schemas, which are not read here", _BY_HAND
        case "AVRO":
            return TopicSchema("AVRO", json.loads(found.text))
        case "PROTOBUF":
            problem, hint = "is Protobuf, whose fields are not read from a registry", _BY_DESCRIPTOR
        case other:
            problem, hint = f"is {other}, which no format reads", _BY_HAND
    raise FormatError("SCHEMA_UNREAD", f"{what} {problem}", hint)


def columns_problem(topic: str, cause: Exception) -> FormatError:
    return FormatError(
        "SCHEMA_UNREAD",
        f"the schema of {topic} cannot become columns: {cause}",
        hint=_BY_HAND,
    )


def _without_logical_types(schema: Any) -> Any:
    match schema:
        case dict():
            return {k: _without_logical_types(v) for k, v in schema.items() if k != "logicalType"}
        case list():
            return [_without_logical_types(part) for part in schema]
        case _:
            return schema

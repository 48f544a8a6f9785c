"""Schemas of a registry: the newest of a topic's subjects, and those that records name."""

import io
import json
import struct
from typing import Any, Literal, TypeAlias

import fastavro

from spark_jobs.errors import FormatError
from spark_jobs.formats.registry import RegistryClient

Part: TypeAlias = Literal["key", "value"]

_PREFIX = struct.Struct(">bi")
_PATIENCE_S = 5.0


def is_framed(data: bytes) -> bool:
    """Whether bytes begin as Confluent's serializers write them: a zero byte and a schema id."""
    return len(data) >= _PREFIX.size and data[0] == 0


class Schemas:
    """The schemas of one registry; each id is fetched once. Raises KafkaError and FormatError."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._texts: dict[int, str] = {}
        self._readers: dict[int, Any] = {}

    def newest(self, topic: str, part: Part) -> Any:
        """The newest schema of the subject `<topic>-<part>` as parsed JSON; None without one."""
        latest = self._client.latest(f"{topic}-{part}")
        return None if latest is None else json.loads(self._text(latest.id))

    def of(self, data: bytes) -> Any:
        """The schema that framed bytes name, as parsed JSON."""
        return json.loads(self._text(_PREFIX.unpack_from(data)[1]))

    def read(self, data: bytes) -> Any:
        """The value of framed bytes; logical types stay numbers, bytes and texts.

        Raises ValueError if the bytes are not of the schema that they name.
        """
        schema_id = _PREFIX.unpack_from(data)[1]
        if schema_id not in self._readers:
            plain = _without_logical_types(json.loads(self._text(schema_id)))
            self._readers[schema_id] = fastavro.parse_schema(plain)
        body = io.BytesIO(data[_PREFIX.size :])
        try:
            value = fastavro.schemaless_reader(body, self._readers[schema_id], None)
        except (EOFError, IndexError, KeyError, UnicodeDecodeError, struct.error) as cause:
            raise ValueError(f"not of schema {schema_id}") from cause
        if body.read(1):
            raise ValueError(f"bytes are left over after schema {schema_id}")
        return value

    def _text(self, schema_id: int) -> str:
        if schema_id not in self._texts:
            self._texts[schema_id] = self._client.schema(schema_id)
        return self._texts[schema_id]


def columns_problem(topic: str, cause: Exception) -> FormatError:
    return FormatError(
        "SCHEMA_UNREAD",
        f"the schema of {topic} cannot become columns: {cause}",
        hint="write the CREATE TABLE by hand: docs/formats.md has the types",
    )


def _without_logical_types(schema: Any) -> Any:
    match schema:
        case dict():
            return {k: _without_logical_types(v) for k, v in schema.items() if k != "logicalType"}
        case list():
            return [_without_logical_types(part) for part in schema]
        case _:
            return schema

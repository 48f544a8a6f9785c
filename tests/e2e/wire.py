"""JSON or Avro: the connector's converter, the job's table options, and bytes back to values."""

import io
import json
import struct
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import fastavro
import httpx

from tests.e2e.apicurio import Apicurio
from tests.e2e.debezium import avro_converter, json_converter

DEAD_LETTERS = "dead_letters"
Fields: TypeAlias = dict[str, Any]

_TIMES = ("placed_at", "updated_at")  # of the result tables


class Wire(Protocol):
    """What the two encodings differ in."""

    name: str
    # the converter writes a column's default for its NULLs
    defaults_replace_null: bool

    def converter(self) -> dict[str, str]: ...
    def source_options(self) -> dict[str, str]: ...
    def sink_options(self) -> dict[str, str]: ...
    def event(self, data: bytes) -> Fields: ...
    def row(self, data: bytes) -> Fields: ...


class JsonWire:
    """JSON without a schema."""

    name = "json"
    defaults_replace_null = False

    def converter(self) -> dict[str, str]:
        return json_converter()

    def source_options(self) -> dict[str, str]:
        return {
            "value.format": "debezium-json",
            "value.debezium-json.timestamp-format.standard": "ISO-8601",
        }

    def sink_options(self) -> dict[str, str]:
        return {"key.format": "json", "value.format": "json"}

    def event(self, data: bytes) -> Fields:
        fields: Fields = json.loads(data)
        return fields

    def row(self, data: bytes) -> Fields:
        fields: Fields = json.loads(data, parse_float=Decimal)
        for name in _TIMES:
            if fields.get(name) is not None:
                fields[name] = datetime.fromisoformat(fields[name])
        return fields


class AvroWire:
    """Avro with the schemas in Apicurio."""

    name = "avro"
    defaults_replace_null = True

    def __init__(self, registry: Apicurio) -> None:
        self._registry = registry
        self._schemas: dict[int, Any] = {}

    def converter(self) -> dict[str, str]:
        return avro_converter(self._registry.own_url)

    def source_options(self) -> dict[str, str]:
        name = "debezium-avro-confluent"
        return {"value.format": name, f"value.{name}.url": self._registry.url}

    def sink_options(self) -> dict[str, str]:
        options = {}
        for side in ("key", "value"):
            options[f"{side}.format"] = "avro-confluent"
            options[f"{side}.avro-confluent.url"] = self._registry.url
        return options

    def event(self, data: bytes) -> Fields:
        return self._decode(data)

    def row(self, data: bytes) -> Fields:
        return self._decode(data)

    def _decode(self, data: bytes) -> Fields:
        magic, schema_id = struct.unpack_from(">bI", data)
        body = io.BytesIO(data[5:])
        fields = fastavro.schemaless_reader(body, self._schema(schema_id), None)
        if magic != 0 or body.read(1) or not isinstance(fields, dict):
            raise ValueError(f"not a record of schema {schema_id}: {data[:40]!r}")
        return fields

    def _schema(self, schema_id: int) -> Any:
        if schema_id not in self._schemas:
            answer = httpx.get(f"{self._registry.url}/schemas/ids/{schema_id}").raise_for_status()
            text = answer.json()["schema"]
            self._schemas[schema_id] = fastavro.parse_schema(json.loads(text))
        return self._schemas[schema_id]

"""Avro records for tests of the kernel: made by fastavro, or recorded with their schemas."""

import io
import json
import struct as binary
from typing import Any

import fastavro

from tests.debezium.recording import schemas
from tests.kernel.conftest import SchemaIds
from tests.kernel.tables import Record, TableScan

APICURIO = "/apis/registry/v2/ids"


def record_schema(*fields: tuple[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def encoded(schema: Any, value: Any) -> bytes:
    """The bare Avro data."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return body.getvalue()


def framed(schema_ids: SchemaIds, schema: Any, *values: Any) -> list[Record]:
    """Records in Confluent's framing, of a schema that the registry gets."""
    prefix = b"\x00" + binary.pack(">I", schema_ids.add(schema))
    return [Record(prefix + encoded(schema, value)) for value in values]


def avro(schema_ids: SchemaIds, columns: Any, **options: Any) -> TableScan:
    given = {"url": schema_ids.url} | options.pop("options", {})
    return TableScan(columns, "avro-confluent", given, **options)


def debezium(schema_ids: SchemaIds, columns: Any, *key: str, **options: Any) -> TableScan:
    """With a primary key upserts, else retractions."""
    given = {"url": schema_ids.url} | options.pop("options", {})
    changelog = "upsert" if key else "retract"
    return TableScan(
        columns, "debezium-avro-confluent", given, changelog, primary_key=key, **options
    )


def use_recorded_schemas(schema_ids: SchemaIds) -> dict[int, Any]:
    """The registry then knows all recorded schemas, those of Apicurio by globalId."""
    by_id = schemas("avro")
    schema_ids.schemas.update(by_id)
    for folder in ("avro_apicurio_8byte", "avro_apicurio_headers"):
        for global_id, schema in schemas(folder).items():
            schema_ids.bodies[f"{APICURIO}/globalIds/{global_id}"] = schema
    return {i: json.loads(text) for i, text in by_id.items()}

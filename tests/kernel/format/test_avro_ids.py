"""Where a record says which schema it is written with: before the data, in headers, by GUID."""

import json
import uuid
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.kernel.conftest import SchemaIds
from tests.kernel.format.avro_records import (
    APICURIO,
    avro,
    encoded,
    framed,
    record_schema,
    use_recorded_schemas,
)
from tests.kernel.tables import Outcome, Record, TableScan, recorded

SCHEMA = record_schema(("c", "int"))
COLUMNS = {"c": "integer"}


def read(jvm: Any, schema_ids: SchemaIds, mode: str, *records: Record) -> Outcome:
    return avro(schema_ids, COLUMNS, options={"rejoin.schema-id": mode}).read(jvm, *records)


def test_ids_of_eight_bytes_are_refused_as_four(jvm: Any, schema_ids: SchemaIds) -> None:
    records = recorded("avro_apicurio_8byte/shopgid8.public.orders.jsonl")
    got = avro(schema_ids, {"c": "string"}).read(jvm, *records)
    assert got.rejects == ["avro-bad-framing"] * 9


def test_ids_of_four_bytes_are_refused_as_eight(jvm: Any, schema_ids: SchemaIds) -> None:
    records = framed(schema_ids, record_schema(("c", "string")), {"c": "long enough"})
    got = read(jvm, schema_ids, "apicurio-8-byte", *records, Record(b"\x00\x00\x01"))
    assert got.rejects == ["avro-bad-framing"] * 2


@pytest.mark.parametrize(
    ("folder", "mode"),
    [
        ("avro_apicurio_8byte/shopgid8", "apicurio-8-byte"),
        ("avro_apicurio_headers/shophdr", "apicurio-headers"),
    ],
)
def test_recorded_keys(jvm: Any, schema_ids: SchemaIds, folder: str, mode: str) -> None:
    """Keys have ids of their own."""
    use_recorded_schemas(schema_ids)
    records = recorded(f"{folder}.public.orders.jsonl")
    options = {"url": schema_ids.url, "rejoin.schema-id": mode}
    scan = TableScan(
        {"order_id": "string"}, "raw", {}, "upsert", key=["order_id"], primary_key=["order_id"],
        key_format="avro-confluent", key_options=options,
    )  # fmt: skip
    got = scan.read(jvm, *records)
    assert got.rejects == []
    assert {row[1] for row in got.rows} >= {"o-1", "x-1"}


def test_content_ids(jvm: Any, schema_ids: SchemaIds) -> None:
    schema_ids.bodies[f"{APICURIO}/contentIds/91"] = json.dumps(SCHEMA)
    header = ("apicurio.value.contentId", (91).to_bytes(8, "big"))
    record = Record(encoded(SCHEMA, {"c": 7}), headers=(header,))
    assert read(jvm, schema_ids, "apicurio-headers", record).rows == [["+I", 7]]
    assert read(jvm, schema_ids, "apicurio-headers", Record(record.value)).rejects == [
        "avro-bad-framing"
    ]


def test_references_of_apicurio(jvm: Any, schema_ids: SchemaIds) -> None:
    """Its own interface gives schemas as they are, and what they refer to apart."""
    inner = record_schema(("c", "int"), name="Inner")
    outer = record_schema(("deep", "Inner"), name="Outer")
    schema_ids.bodies[f"{APICURIO}/globalIds/92"] = json.dumps(outer)
    reference = {"groupId": "g", "artifactId": "a 1", "version": "3", "name": "Inner"}
    schema_ids.bodies[f"{APICURIO}/globalIds/92/references"] = json.dumps([reference])
    artifact = "/apis/registry/v2/groups/g/artifacts/a%201/versions/3"
    schema_ids.bodies[artifact] = json.dumps(inner)
    schema_ids.bodies[f"{artifact}/references"] = "[]"
    body = encoded(record_schema(("deep", inner), name="Outer"), {"deep": {"c": 5}})
    record = Record(b"\x00" + (92).to_bytes(8, "big") + body)
    row = {"type": "struct", "fields": [
        {"name": "c", "type": "integer", "nullable": True, "metadata": {}},
    ]}  # fmt: skip
    options = {"rejoin.schema-id": "apicurio-8-byte"}
    assert avro(schema_ids, {"deep": row}, options=options).read(jvm, record).rows == [["+I", [5]]]


def test_url_of_the_other_interface(jvm: Any, schema_ids: SchemaIds) -> None:
    """Apicurio's own interface stands beside the one for Confluent's clients."""
    schema_ids.bodies[f"{APICURIO}/globalIds/93"] = json.dumps(SCHEMA)
    record = Record(b"\x00" + (93).to_bytes(8, "big") + encoded(SCHEMA, {"c": 1}))
    for path in ("/apis/ccompat/v7", "/apis/registry/v2"):
        options = {"url": schema_ids.url + path, "rejoin.schema-id": "apicurio-8-byte"}
        assert avro(schema_ids, COLUMNS, options=options).read(jvm, record).rows == [["+I", 1]]


def test_confluent_headers(jvm: Any, schema_ids: SchemaIds) -> None:
    """A GUID or a number in a header; without the header, as before the data."""
    guid = uuid.UUID("7f1d4c2e-0b5a-4d7e-9c11-5a5b6c7d8e9f")
    schema_ids.bodies[f"/schemas/guids/{guid}"] = json.dumps({"schema": json.dumps(SCHEMA)})
    body = encoded(SCHEMA, {"c": 3})
    by_guid = Record(body, headers=(("__value_schema_id", b"\x01" + guid.bytes),))
    number = schema_ids.add(SCHEMA).to_bytes(4, "big")
    by_number = Record(body, headers=(("__value_schema_id", b"\x00" + number),))
    [prefixed] = framed(schema_ids, SCHEMA, {"c": 4})
    wrong = Record(body, headers=(("__value_schema_id", b"\x01\x02"),))
    got = read(jvm, schema_ids, "confluent-headers", by_guid, by_number, prefixed, by_guid, wrong)
    assert got.rows == [["+I", 3], ["+I", 3], ["+I", 4], ["+I", 3]]
    assert got.rejects == ["avro-bad-framing"]


def test_registry_without_guids(jvm: Any, schema_ids: SchemaIds) -> None:
    """An interface that is not there is no bad record."""
    header = ("__value_schema_id", b"\x01" + bytes(16))
    with pytest.raises(Py4JJavaError, match=r"REGISTRY_FAILED.*there is no /schemas/guids"):
        read(jvm, schema_ids, "confluent-headers", Record(b"", headers=(header,)))

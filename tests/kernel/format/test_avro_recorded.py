"""Recorded Avro records: the same changes as in JSON, metadata, values left out, other records."""

from pathlib import Path
from typing import Any

import pytest

from tests.debezium.recording import files, records, table_of
from tests.debezium.registry import recorded_registry
from tests.debezium.summary import Count, count
from tests.kernel.conftest import SchemaIds
from tests.kernel.format.avro_records import debezium, use_recorded_schemas
from tests.kernel.tables import Record, recorded

pytestmark = pytest.mark.service  # it takes long

TABLES = [f for f in files("avro") if ".public." in f.name]


@pytest.mark.parametrize("file", TABLES, ids=table_of)
def test_the_same_rows_as_from_json(jvm: Any, file: Path) -> None:
    """Record n of both is the same change (tests/debezium has the values of each)."""
    json_file = file.parents[1] / "json_schema" / file.name.replace("shopavro", "shopschema")
    with recorded_registry() as registry:
        of_avro = count(jvm, registry, file)
    of_json = count(jvm, "", json_file)
    assert of_avro.unexplained == []
    assert kinds(of_avro) == kinds(of_json)
    assert of_avro.records > 0


def kinds(found: Count) -> Any:
    return found.records, found.tombstones, found.rows, found.rejects


def test_metadata(jvm: Any, schema_ids: SchemaIds) -> None:
    use_recorded_schemas(schema_ids)
    metadata = {
        "at": "value.source.timestamp", "handled": "value.ingestion-timestamp",
        "database": "value.source.database", "schema": "value.source.schema",
        "table": "value.source.table", "properties": "value.source.properties",
    }  # fmt: skip
    texts = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    columns = {
        "order_id": "string", "at": "long", "handled": "long", "database": "string",
        "schema": "string", "table": "string", "properties": texts,
    }  # fmt: skip
    file = next(f for f in TABLES if table_of(f) == "orders")
    scan = debezium(schema_ids, columns, "order_id", metadata=metadata)
    first = records(file)[3]
    [row] = scan.read(jvm, Record(first.value)).rows
    source = first.event["source"]
    assert row[:7] == [
        "+U", "o-4", source["ts_ms"], first.event["ts_ms"], "shop", "public", "orders",
    ]  # fmt: skip
    assert row[7] == {n: None if v is None else str(v) for n, v in source.items()}
    one = debezium(schema_ids, {"order_id": "string", "at": "long"}, "order_id", metadata=metadata)
    assert one.read(jvm, Record(first.value)).rows == [["+U", "o-4", source["ts_ms"]]]


TOASTED = ("big_text", "big_nn_text", "big_bytes", "big_arr", "big_jsonb")
BIG_TYPES = {
    "big_bytes": "binary",
    "big_arr": {"type": "array", "elementType": "string", "containsNull": True},
}


@pytest.mark.parametrize("column", TOASTED)
def test_value_that_the_database_did_not_send(jvm: Any, schema_ids: SchemaIds, column: str) -> None:
    """It matters only to a query that reads the column; some were sent in record 4."""
    use_recorded_schemas(schema_ids)
    given = recorded("avro/shopavro.public.wide.jsonl")
    columns = {"id": "long", column: BIG_TYPES.get(column, "string")}
    got = debezium(schema_ids, columns, "id").read(jvm, *given)
    partial = 2 if column == "big_text" else 3
    assert got.rejects == ["debezium-unavailable-value"] * partial
    others = debezium(schema_ids, {"id": "long", "c_int4": "integer"}, "id").read(jvm, *given)
    assert (others.rejects, len(others.rows)) == ([], 9)


def test_messages_and_other_records(jvm: Any, schema_ids: SchemaIds) -> None:
    use_recorded_schemas(schema_ids)
    scan = debezium(schema_ids, {"id": "string"}, "id")
    got = scan.read(jvm, *recorded("avro/shopavro.message.jsonl"))
    assert got.rejects == ["debezium-message"] * 2
    got = scan.read(jvm, *recorded("avro/shopavro.transaction.jsonl")[:2])
    assert got.rejects == ["debezium-transaction"] * 2

"""MongoDB's changes, which are refused by name, and the rows that ExtractNewDocumentState makes.

No MongoDB has written these records: they are made by hand from the documentation and the source of
Debezium's connector.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.table.draft import draft_table
from tests.kernel.tables import Record, TableScan
from tests.unit.table.samples import bound, sampled

OID = "596e275826f08b2730779e1f"
ANNE = {"_id": {"$oid": OID}, "name": "Anne", "orders": {"$numberLong": "1004"}}
RELAXED = {"_id": {"$oid": OID}, "name": "Anne", "orders": 1004}
KEY = {"id": json.dumps({"$oid": OID})}
UPDATED = {"removedFields": None, "updatedFields": '{"name": "Bo"}', "truncatedArrays": None}
COLUMNS: dict[str, Any] = {"id": "string", "name": "string", "orders": "long"}


def event(op: str, **fields: Any) -> dict[str, Any]:
    source = {"connector": "mongodb", "name": "shop", "db": "shop", "collection": "customers"}
    whole = {"before": None, "after": None, "updateDescription": None, "source": source, "op": op}
    return {**whole, "ts_ms": 1_700_000_000_000, "transaction": None, **fields}


@pytest.mark.parametrize(
    "change",
    [
        event("r", after=json.dumps(RELAXED)),
        event("c", after=json.dumps(ANNE)),
        event("u", after=json.dumps(ANNE), updateDescription=UPDATED),
        event("u", updateDescription=UPDATED),
        event("d"),
        event("d", before=json.dumps(ANNE)),
    ],
)
@pytest.mark.parametrize("key", [(), ("id",)])
def test_changes_of_documents_are_refused_by_name(
    jvm: Any, change: dict[str, Any], key: tuple[str, ...]
) -> None:
    kind = "upsert" if key else "retract"
    scan = TableScan(COLUMNS, "debezium-json", {}, kind, primary_key=key)
    got = scan.read(jvm, Record(json.dumps(change).encode()))
    assert (got.rows, got.rejects) == ([], ["debezium-document"])
    said = dict(got.dead_letter_headers[0])["__connect.errors.exception.message"]
    assert b"ExtractNewDocumentState" in said


def optional(type_: str, field: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "optional": True, "field": field, **more}


@pytest.mark.parametrize("change", [event("c", after=json.dumps(ANNE)), event("d")])
def test_the_same_within_a_schema_of_kafka_connect(jvm: Any, change: dict[str, Any]) -> None:
    rows = [optional("string", side, name="io.debezium.data.Json") for side in ("before", "after")]
    update = optional("struct", "updateDescription", fields=[optional("string", "updatedFields")])
    source = optional("struct", "source", fields=[optional("string", "connector")])
    fields = [*rows, update, source, optional("string", "op")]
    value = {"schema": {"type": "struct", "fields": fields}, "payload": change}
    scan = TableScan(
        COLUMNS, "debezium-json", {"schema-include": "true"}, "upsert", primary_key=("id",)
    )
    got = scan.read(jvm, Record(json.dumps(value).encode()))
    assert (got.rows, got.rejects) == ([], ["debezium-document"])


def test_the_name_of_a_column_is_no_change_of_a_document(jvm: Any) -> None:
    """`updateDescription` within a row, and a text where the row before is not needed."""
    columns = {"id": "string", "updateDescription": "string"}
    scan = TableScan(columns, "debezium-json", {}, "upsert", primary_key=["id"])
    row = {"id": "1", "updateDescription": "x"}
    value = {"before": None, "after": row, "op": "c"}
    assert scan.read(jvm, Record(json.dumps(value).encode())).rows == [["+U", "1", "x"]]


UNWRAPPED = TableScan(
    COLUMNS,
    "json",
    {},
    "upsert",
    primary_key=["id"],
    key=["id"],
    key_format="json",
    debezium={"unwrapped": True},
)


def test_rows_that_the_transform_makes(jvm: Any) -> None:
    """The id stands in the key; a deletion has nothing but its mark, or is a tombstone."""
    key = json.dumps({"id": OID}).encode()
    anne = {"_id": OID, "name": "Anne", "orders": 1004, "__deleted": False}
    got = UNWRAPPED.read(
        jvm,
        Record(json.dumps(anne).encode(), key),
        Record(json.dumps(anne | {"name": "Bo", "orders": None}).encode(), key),
        Record(b'{"__deleted": true}', key),
        Record(None, key),
    )
    assert got.rejects == []
    deleted = ["-D", OID, None, None]
    assert got.rows == [["+U", OID, "Anne", 1004], ["+U", OID, "Bo", None], deleted, deleted]
    number = replace(UNWRAPPED, columns={**COLUMNS, "id": "long"})
    assert number.read(jvm, Record(b"{}", b'{"id": 7}')).rows == [["+U", 7, None, None]]


def test_table_of_rows_that_the_transform_makes() -> None:
    rows = [{"_id": OID, "name": "Anne", "orders": 1004}, None]
    draft = draft_table(sampled(rows, [{"id": OID}] * 2, compacted=None), None, {}, 0.99)
    assert (draft.connector, draft.key, draft.changes) == ("upsert-kafka", ("id",), "upsert")
    assert [column.name for column in draft.columns] == ["id", "_id", "name", "orders"]
    bound(draft)

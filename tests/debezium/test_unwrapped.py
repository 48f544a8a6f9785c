"""Rows that ExtractNewRecordState made, on the recorded bytes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.debezium.test_truths import ISO, recorded_in
from tests.kernel.tables import Record, TableScan, recorded

ORDERS = TableScan(
    {"order_id": "string", "currency": "string", "note": "string"},
    "json",
    ISO,
    "upsert",
    primary_key=["order_id"],
    debezium={"unwrapped": True},
)
KEYED = replace(ORDERS, key=["order_id"], key_format="json")


def test_deleted_rows_are_deletions_by_key(jvm: Any) -> None:
    rows = ORDERS.read(jvm, *recorded_in("json_unwrapped", "orders")).rows
    assert [r[1] for r in rows if r[0] == "-D"] == ["o-2", "o-3", "o-short"]
    assert all(r[2:] == [None, None] for r in rows if r[0] == "-D")
    assert {r[0] for r in rows} == {"+U", "-D"}


@pytest.mark.parametrize("offset", [5, 8])
def test_other_columns_of_a_deleted_row_are_not_read(jvm: Any, offset: int) -> None:
    """They are zero-filled; even one that cannot be read does not matter."""
    columns = {"id": "long", "nn_uuid": "integer", "nn_int": "integer"}
    scan = replace(ORDERS, columns=columns, primary_key=["id"])
    record = recorded_in("json_unwrapped", "wide")[offset]
    deleted = json.loads(record.value or b"")
    assert (deleted["__deleted"], deleted["nn_uuid"]) == ("true", "")
    assert scan.read(jvm, record).rows == [["-D", deleted["id"], None, None]]


def test_tombstones_delete_by_the_record_key(jvm: Any) -> None:
    got = KEYED.read(jvm, Record(None, b'{"order_id":"o-1"}'), Record(None, None))
    assert got.rows == [["-D", "o-1", None, None]]
    assert got.rejects == ["null-record-key"]
    assert ORDERS.read(jvm, Record(None, b'{"order_id":"o-1"}')).rejects == ["null-primary-key"]


def test_values_and_keys_with_a_schema(jvm: Any) -> None:
    def wrapped(**fields: Any) -> bytes:
        types = [{"type": "string", "optional": True, "field": f} for f in fields]
        schema = {"type": "struct", "fields": types}
        return json.dumps({"schema": schema, "payload": fields}).encode()

    got = KEYED.read(
        jvm,
        Record(wrapped(order_id="x", note="n", __deleted="false"), wrapped(order_id="o-1")),
        Record(wrapped(order_id="x", note="n", __deleted="true"), wrapped(order_id="o-1")),
    )
    assert got.rows == [["+U", "o-1", None, "n"], ["-D", "o-1", None, None]]


def test_marks_are_columns_too(jvm: Any) -> None:
    """`__op` and the like are read as columns and as metadata of the source."""
    columns = {
        "order_id": "string", "__deleted": "boolean", "__op": "string", "__lsn": "long",
        "at": "timestamp", "table": "string",
    }  # fmt: skip
    metadata = {"at": "value.source.timestamp", "table": "value.source.table"}
    scan = replace(ORDERS, columns=columns, metadata=metadata)
    rows = scan.read(jvm, *recorded_in("json_unwrapped", "orders")[6:8]).rows
    assert rows[0] == ["+U", "o-1", False, "u", 31743976, "2026-11-21T09:03:42.075", "orders"]
    assert rows[1] == ["-D", "o-2", None, None, None, "2026-11-21T09:03:42.679", "orders"]


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("shopflat.message", "debezium-message"),
        ("shopflat.transaction", "debezium-transaction"),
        ("__debezium-heartbeat.shopflat", "debezium-heartbeat"),
    ],
)
def test_records_that_pass_unflattened(jvm: Any, topic: str, reason: str) -> None:
    """They are told by their fields, in a table with columns of the same names too."""
    records = recorded(f"json_unwrapped/{topic}.jsonl")
    alike = replace(ORDERS, columns={"id": "string", "status": "string"}, primary_key=["id"])
    for scan in (ORDERS, alike):
        got = scan.read(jvm, *records)
        assert (got.rows, set(got.rejects)) == ([], {reason})


@pytest.mark.parametrize("heals", [False, True])
def test_large_values_that_are_left_out(jvm: Any, heals: bool) -> None:
    columns = {"id": "long", "big_text": "string", "big_bytes": "binary", "nn_int": "integer"}
    scan = replace(
        ORDERS, columns=columns, primary_key=["id"], debezium={"unwrapped": True, "heals": heals}
    )
    records = [r for r in recorded_in("json_unwrapped", "wide") if r.value]
    partial = [r for r in records if b"unavailable" in (r.value or b"")]
    got = scan.read(jvm, *partial)
    assert got.rejects == ([] if heals else ["debezium-unavailable-value"] * len(partial))
    assert len(got.rows) == (len(partial) if heals else 0)
    assert all(row[3] is None and row[4] is not None for row in got.rows)

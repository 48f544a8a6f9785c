"""The traps of the recorded run, on its bytes; docs/formats.md names these tests."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.kernel.tables import Outcome, Record, TableScan, recorded

ISO = {"timestamp-format.standard": "ISO-8601"}
SCHEMA = {"schema-include": "true"}
ORDER = {"order_id": "string", "currency": "string", "note": "string"}
BIG = {
    "big_text": "string", "big_nn_text": "string", "big_bytes": "binary", "big_jsonb": "string",
    "big_arr": {"type": "array", "elementType": "string", "containsNull": True},
}  # fmt: skip


def recorded_in(format_: str, table: str) -> list[Record]:
    prefix = {"json": "shopjson", "json_schema": "shopschema", "json_unwrapped": "shopflat"}
    return recorded(f"{format_}/{prefix.get(format_, 'shopdup')}.public.{table}.jsonl")


def read(
    jvm: Any, columns: Any, records: Sequence[Record], key: Sequence[str] = (), **debezium: Any
) -> Outcome:
    scan = TableScan(
        columns,
        "debezium-json",
        ISO,
        "upsert" if key else "retract",
        primary_key=key,
        debezium=debezium,
    )
    return scan.read(jvm, *records)


def test_snapshot_rows_are_upserts(jvm: Any) -> None:
    rows = read(jvm, ORDER, recorded_in("json", "orders")[:3], ["order_id"]).rows
    assert [r[:2] for r in rows] == [["+U", "o-1"], ["+U", "o-2"], ["+U", "o-3"]]


def test_tombstones_say_nothing(jvm: Any) -> None:
    orders, nokey = recorded_in("json", "orders"), recorded_in("json", "nokey_full")
    assert orders[8].value is None
    assert (nokey[4].key, nokey[4].value) == (None, None)
    for records in (orders[8:9], nokey[4:5]):
        got = read(jvm, ORDER, records, ["order_id"])
        assert (got.rows, got.rejects) == ([], [])


def test_a_null_payload_says_nothing(jvm: Any) -> None:
    for options in ({}, SCHEMA):
        scan = TableScan(ORDER, "debezium-json", options, "upsert", primary_key=["order_id"])
        got = scan.read(jvm, Record(b'{"schema":null,"payload":null}'))
        assert (got.rows, got.rejects) == ([], [])


def test_payloads_behind_a_known_schema(jvm: Any) -> None:
    """What a payload is counts, whether or not the schema before it has been seen."""
    whole = recorded_in("json_schema", "orders")[0].value or b""
    events = [json.loads(whole) | {"payload": p} for p in (json.loads(whole)["payload"], None, 5)]
    scan = TableScan(ORDER, "debezium-json", SCHEMA, "upsert", primary_key=["order_id"])
    got = scan.read(jvm, *[Record(json.dumps(e).encode()) for e in events])
    assert (len(got.rows), got.rejects) == (1, ["debezium-no-envelope"])


def test_before_is_not_trusted(jvm: Any) -> None:
    """Under DEFAULT a deletion's other columns are empty or zero: only its key is read."""
    columns = {"id": "long", "nn_int": "integer", "nn_uuid": "string", "c_default": "integer"}
    deleted = recorded_in("json", "wide")[5:10:4]
    befores = [json.loads(r.value or b"")["before"] for r in deleted]
    assert [(b["nn_int"], b["nn_uuid"], b["c_default"]) for b in befores] == [(0, "", 7)] * 2
    got = read(jvm, columns, deleted, ["id"])
    assert got.rows == [["-D", 3, None, None, None], ["-D", 1, None, None, None]]


def test_update_without_before(jvm: Any) -> None:
    """A table without PRIMARY KEY needs the row before, which DEFAULT does not give."""
    update = recorded_in("json", "orders")[4]
    assert json.loads(update.value or b"")["before"] is None
    assert read(jvm, ORDER, [update]).rejects == ["missing-before"]
    assert read(jvm, ORDER, [update], ["order_id"]).rows[0][:2] == ["+U", "o-1"]


def test_full_identity_gives_both_rows(jvm: Any) -> None:
    got = read(jvm, ORDER, recorded_in("json", "orders_full")[4:5], fullBefore=True)
    assert [r[:2] for r in got.rows] == [["-U", "o-1"], ["+U", "o-1"]]


@pytest.mark.parametrize("offset", [3, 7])
def test_large_values_that_are_left_out(jvm: Any, offset: int) -> None:
    """Text, jsonb, bytea and text[], in a NOT NULL column too; 7 is a primary key change."""
    record = recorded_in("json", "wide")[offset]
    for column, type_ in BIG.items():
        assert read(jvm, {"id": "long", column: type_}, [record], ["id"]).rejects == [
            "debezium-unavailable-value"
        ], column
    for format_, options in (("json", ISO), ("json_schema", SCHEMA)):
        given = recorded_in(format_, "wide")[offset]
        scan = TableScan(
            {"id": "long", **BIG}, "debezium-json", options, "upsert", primary_key=["id"],
            not_null=["big_nn_text"], debezium={"heals": True},
        )  # fmt: skip
        got = scan.read(jvm, given)
        assert got.rejects == []
        assert got.rows == [["+U", 1 if offset == 3 else 30, *[None] * 5]]


def test_columns_beside_large_values_are_read(jvm: Any) -> None:
    """What is left out does not matter to a query that does not read it; one of five changed."""
    columns = {"id": "long", "nn_text": "string", "big_text": "string"}
    got = read(jvm, columns, recorded_in("json", "wide")[4:5], ["id"])
    assert len(got.rows) + len(got.rejects) == 1
    without = read(
        jvm, {"id": "long", "nn_text": "string"}, recorded_in("json", "wide")[3:5], ["id"]
    )
    assert [r[0] for r in without.rows] == ["+U", "+U"]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("string", [95, 95, 100]),
        ({"type": "array", "elementType": "integer", "containsNull": True}, None),
        ({"type": "array", "elementType": "long", "containsNull": True}, None),
        (
            {
                "type": "map",
                "keyType": "string",
                "valueType": "string",
                "valueContainsNull": True,
            },
            {"__debezium_unavailable_value": "__debezium_unavailable_value"},
        ),
        (
            {
                "type": "struct",
                "fields": [
                    {"name": "deep", "type": "string", "nullable": True, "metadata": {}},
                    {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
                ],
            },
            {"deep": "__debezium_unavailable_value", "x": 1},
        ),
    ],
)
def test_placeholders_of_other_types(jvm: Any, type_: Any, value: Any) -> None:
    """Arrays of numbers, hstore, and inside a ROW: the whole column is missing."""
    numbers = list(b"__debezium_unavailable_value")
    if value is None or isinstance(value, list):
        value = numbers
    event = {"op": "u", "after": {"id": 1, "c": value, "after": "read"}}
    record = Record(json.dumps(event, separators=(",", ":")).encode())
    columns = {"id": "long", "c": type_, "after": "string"}
    assert read(jvm, columns, [record], ["id"]).rejects == ["debezium-unavailable-value"]
    assert read(jvm, columns, [record], ["id"], heals=True).rows == [["+U", 1, None, "read"]]


def test_placeholder_in_before_is_no_problem(jvm: Any) -> None:
    event = {"op": "d", "before": {"id": 1, "c": "__debezium_unavailable_value"}}
    got = read(jvm, {"id": "long", "c": "string"}, [Record(json.dumps(event).encode())], ["id"])
    assert got.rows == [["-D", 1, None]]


def test_primary_key_change_is_two_changes(jvm: Any) -> None:
    changed = recorded_in("json", "orders")[9:12]
    lsns = {json.loads(r.value)["source"]["lsn"] for r in changed if r.value}
    assert len(lsns) == 1
    rows = read(jvm, ORDER, changed, ["order_id"]).rows
    assert [r[:2] for r in rows] == [["-D", "o-3"], ["+U", "o-3b"]]


def test_composite_key_and_quoted_column(jvm: Any) -> None:
    columns = {"order_id": "string", "line_no": "integer", "SkuCode": "string", "qty": "integer"}
    got = read(jvm, columns, recorded_in("json", "order_items")[:4], ["order_id", "line_no"])
    assert got.rows[0][3] is not None
    assert got.rows[3][0] == "-D"
    assert got.rows[3][3:] == [None, None]


def test_update_without_a_change(jvm: Any) -> None:
    rows = read(jvm, ORDER, recorded_in("json", "orders_full")[6:7]).rows
    assert [r[0] for r in rows] == ["-U", "+U"]
    assert rows[0][1:] == rows[1][1:]


def test_null_that_became_the_default(jvm: Any) -> None:
    """The converter wrote 7 for NULL unless `replace.null.with.default` is off: nobody can tell."""
    columns = {"id": "long", "c_default": "integer"}
    for format_, expected in (("json", 7), ("json_schema", None)):
        got = read(jvm, columns, recorded_in(format_, "wide")[1:2], ["id"])
        assert got.rows == [["+U", 2, expected]]


def test_truncate(jvm: Any) -> None:
    truncated = recorded_in("json", "product_changelog_full")[3]
    assert truncated.key is None
    columns = {"product_id": "string"}
    assert read(jvm, columns, [truncated], ["product_id"]).rejects == ["debezium-truncate"]


@pytest.mark.parametrize("format_", ["json", "json_schema"])
@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("shop{}.message", "debezium-message"),
        ("shop{}.transaction", "debezium-transaction"),
        ("__debezium-heartbeat.shop{}", "debezium-heartbeat"),
    ],
)
def test_records_that_are_no_rows(jvm: Any, format_: str, topic: str, reason: str) -> None:
    name = topic.format("json" if format_ == "json" else "schema")
    records = recorded(f"{format_}/{name}.jsonl")
    options = SCHEMA if format_ == "json_schema" else {}
    scan = TableScan(ORDER, "debezium-json", options, "upsert", primary_key=["order_id"])
    got = scan.read(jvm, *records)
    assert (got.rows, set(got.rejects)) == ([], {reason})
    assert len(got.rejects) == len(records)


def test_schema_change_is_no_row(jvm: Any) -> None:
    event = {
        "source": {},
        "ts_ms": 1,
        "databaseName": "shop",
        "ddl": "ALTER ...",
        "tableChanges": [],
    }
    got = read(jvm, ORDER, [Record(json.dumps(event).encode())], ["order_id"])
    assert got.rejects == ["debezium-schema-change"]


def test_replayed_changes_give_the_same_rows(jvm: Any) -> None:
    records = recorded_in("json_replayed", "product_changelog")
    columns = {"product_id": "string", "product_name": "string"}
    first = read(jvm, columns, records[3:8], ["product_id"]).rows
    again = read(jvm, columns, records[8:13], ["product_id"]).rows
    assert first == again
    assert len(first) > 3


def test_schema_of_each_record_counts(jvm: Any) -> None:
    """Columns come and go within a topic: S18 adds `channel`, S22 drops `note`."""
    columns = {"order_id": "string", "note": "string", "channel": "string"}
    scan = TableScan(columns, "debezium-json", SCHEMA, "upsert", primary_key=["order_id"])
    rows = scan.read(jvm, *recorded_in("json_schema", "orders")).rows
    assert {r[3] for r in rows[:10]} == {None}
    assert any(r[3] is not None for r in rows)
    assert rows[-1][2] is None


def test_schema_that_is_not_there(jvm: Any) -> None:
    scan = TableScan(ORDER, "debezium-json", SCHEMA, "upsert", primary_key=["order_id"])
    bare = recorded_in("json", "orders")[0]
    wrapped = recorded_in("json_schema", "orders")[0]
    got = scan.read(jvm, bare, Record(b'{"payload":{"op":"c"}}'), Record(b"{}"), wrapped)
    assert got.rejects == ["debezium-no-envelope", "connect-bad-schema", "debezium-no-envelope"]
    assert [r[:2] for r in got.rows] == [["+U", "o-1"]]


def test_schema_is_passed_over_without_the_option(jvm: Any) -> None:
    wrapped = recorded_in("json_schema", "orders")
    bare = recorded_in("json", "orders")
    got = read(jvm, ORDER, wrapped, ["order_id"])
    assert got == read(jvm, ORDER, bare[: len(wrapped)], ["order_id"])


def test_schemas_in_turn(jvm: Any) -> None:
    """Tables of one topic alternate; a payload may stand before its schema, or be indented."""
    records = recorded_in("json_schema", "orders")[:1] + recorded_in("json_schema", "special")[2:3]
    scan = TableScan({"order_id": "string", "what": "string"}, "debezium-json", SCHEMA, "retract")
    expected = [["+I", "o-1", None], ["+I", None, "NaN"]]
    assert scan.read(jvm, *records * 3).rows == expected * 3
    whole = json.loads(records[0].value or b"")
    turned = {"payload": whole["payload"], "schema": whole["schema"]}
    longer = whole | {"extra": 1}
    odd = [Record(json.dumps(v, indent=1).encode()) for v in (turned, whole, longer, whole)]
    assert scan.read(jvm, *odd).rows == expected[:1] * 4


@pytest.mark.parametrize("format_", ["json", "json_schema"])
def test_keys_with_and_without_schema(jvm: Any, format_: str) -> None:
    """A key's schema is taken off, whatever the value's option says."""
    scan = TableScan(
        ORDER, "debezium-json", {}, "upsert", key=["order_id"], key_format="json",
        primary_key=["order_id"],
    )  # fmt: skip
    rows = scan.read(jvm, *recorded_in(format_, "orders")[:8]).rows
    assert [r[1] for r in rows] == ["o-1", "o-2", "o-3", "o-4", "o-1", "o-1", "o-1", "o-2"]

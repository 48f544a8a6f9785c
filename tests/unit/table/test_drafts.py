"""The tables that recorded and made-up topics suggest; each statement can be planned as it is."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from spark_jobs.errors import FormatError
from spark_jobs.table.draft import TableDraft, draft_table
from spark_jobs.table.sampling import TopicSample
from tests.debezium.recording import files
from tests.unit.table.samples import bound, recorded, recorded_schemas, registered, sampled

SECOND = 1_000
NOON = 1_704_110_400_000


def drafted(sample: TopicSample, quantile: float = 0.99) -> TableDraft:
    return draft_table(sample, None, {}, quantile)


def types(draft: TableDraft) -> dict[str, str]:
    return {column.name: column.type.sql() for column in draft.columns}


@pytest.mark.parametrize("format_", ["json", "json_schema", "json_unwrapped", "avro"])
def test_every_recorded_topic_becomes_a_table_that_can_be_planned(format_: str) -> None:
    with recorded_schemas(format_) as (schemas, options):
        for file in files(format_):
            bound(draft_table(recorded(file), schemas, options, 0.99))


@pytest.mark.parametrize(
    ("format_", "table", "key", "price"),
    [
        ("json", "orders", ("order_id",), "STRING"),
        ("json_schema", "orders", ("order_id",), "DECIMAL(32, 2)"),
        ("json_unwrapped", "orders", ("order_id",), "STRING"),
        ("avro", "orders", ("order_id",), "DECIMAL(32, 2)"),
        ("avro", "orders_full", ("order_id",), "DECIMAL(32, 2)"),
    ],
)
def test_debezium(format_: str, table: str, key: tuple[str, ...], price: str) -> None:
    file = next(f for f in files(format_) if f.stem.endswith(f".{table}"))
    with recorded_schemas(format_) as (schemas, options):
        draft = draft_table(recorded(file), schemas, options, 0.99)
    assert (draft.key, draft.changes, draft.connector) == (key, "upsert", "kafka")
    found = types(draft)
    assert (found["price"], found["order_time"]) == (price, "TIMESTAMP_LTZ(6)")
    assert draft.time is not None
    assert draft.time.declaration is not None
    assert "value.source.timestamp" in draft.time.declaration


def test_debezium_without_a_key_retracts_whole_rows() -> None:
    file = next(f for f in files("json_schema") if f.stem.endswith(".nokey_full"))
    draft = drafted(recorded(file))
    assert (draft.key, draft.changes) == ((), "retract")
    assert draft.options["rejoin.debezium.replica-identity"] == "full"


def test_key_of_two_columns_one_of_them_quoted() -> None:
    file = next(f for f in files("json") if f.stem.endswith(".order_items"))
    assert drafted(recorded(file)).key == ("order_id", "line_no")


def test_types_of_plain_json() -> None:
    rows = [
        {"id": 1, "price": 7.25, "at": "2024-01-01 12:00:00", "ok": True, "tags": ["a"]},
        {"id": 2, "price": 8, "at": "2024-01-01 12:00:01.5", "ok": None, "tags": []},
        {"id": 2**70, "price": 8, "at": "2024-01-01 12:00:02", "inner": {"a b": 1}},
    ]
    draft = drafted(sampled(rows))
    assert types(draft) == {
        "id": "DECIMAL(38, 0)",
        "price": "DOUBLE",
        "at": "TIMESTAMP(3)",
        "ok": "BOOLEAN",
        "tags": "ARRAY<STRING>",
        "inner": "ROW<`a b` BIGINT>",
    }
    assert "DECIMAL(p, 2)" in bound(draft)


def test_one_text_form_of_timestamps_per_table() -> None:
    rows = [{"a": "2024-01-01T12:00:00Z", "b": "2024-01-01T12:00:00.123456", "c": "2024-01-01 1"}]
    draft = drafted(sampled(rows))
    assert types(draft) == {"a": "TIMESTAMP_LTZ(3)", "b": "TIMESTAMP(6)", "c": "STRING"}
    assert draft.options["json.timestamp-format.standard"] == "ISO-8601"


def test_watermark_is_as_late_as_the_sample_was_out_of_order() -> None:
    seconds = [0, 1, 2, 3, 0, 5, 6, 7, 8, 9]
    rows = [{"ts": NOON + s * SECOND, "id": i} for i, s in enumerate(seconds)]
    draft = drafted(sampled(rows), quantile=1.0)
    text = bound(draft)
    assert "WATERMARK FOR ts_instant AS ts_instant - INTERVAL '5' SECOND" in text
    assert "100 % of 10 sampled records are at most 3 s behind" in " ".join(text.split())
    assert "INTERVAL '1' SECOND" in bound(drafted(sampled(rows), quantile=0.9))


def test_a_time_that_is_sometimes_null_is_no_event_time() -> None:
    rows: list[dict[str, Any]] = [{"at": "2024-01-01 12:00:00"}, {"at": None}]
    draft = drafted(sampled(rows))
    assert draft.time is not None
    assert draft.time.name == "record_time"


@pytest.mark.parametrize(
    ("keys", "compacted", "columns", "key_format"),
    [
        ([{"id": 1}, {"id": 1}], True, ["id", "v"], "json"),
        ([b"k1", b"k2"], True, ["record_key", "id", "v"], "raw"),
        ([{"k": "a"}, {"k": "a"}], True, ["k", "id", "v"], "json"),
    ],
)
def test_upserts(keys: Sequence[Any], compacted: bool, columns: list[str], key_format: str) -> None:
    draft = drafted(sampled([{"id": 1, "v": "x"}, {"id": 1, "v": "y"}], keys, compacted=compacted))
    assert draft.connector == "upsert-kafka"
    assert list(types(draft)) == columns
    assert draft.options["key.format"] == key_format
    assert ("value.fields-include" in draft.options) == (columns[0] != "id")
    bound(draft)


def test_tombstones_make_an_upsert_table() -> None:
    draft = drafted(sampled([{"id": 1}, None], [{"id": 1}, {"id": 1}], compacted=None))
    assert (draft.changes, draft.key) == ("upsert", ("id",))


def test_changes_with_op_and_data() -> None:
    values = [{"op": "+I", "data": {"id": 1}}, {"op": "-D", "data": {"id": 1}}]
    draft = drafted(sampled(values))
    assert (draft.options["format"], draft.changes) == ("changelog-json", "retract")
    bound(draft)


def test_lines_of_csv() -> None:
    lines = [b'1;7.25;"a;b";2024-01-01 12:00:00;true;007', b"2;;c;;false;010\n"]
    draft = drafted(sampled(lines))
    assert list(types(draft).values()) == [
        *("BIGINT", "DOUBLE", "STRING", "TIMESTAMP(3)", "BOOLEAN", "STRING"),
    ]
    assert draft.options == {
        "format": "csv",
        "csv.field-delimiter": ";",
        "csv.null-literal": "",
    }
    bound(draft)


def test_csv_with_tabs_under_a_text_key() -> None:
    draft = drafted(sampled([b"k1\tx", b"k2\ty"], [b"k1", b"k2"], compacted=True))
    assert draft.options["value.csv.field-delimiter"] == "\\t"
    assert (draft.key, draft.changes, list(types(draft))) == (("c1",), "upsert", ["c1", "c2"])
    bound(draft)


def canal(table: str, op: str = "INSERT", **row: str) -> dict[str, Any]:
    """A record as Canal writes it: all values are texts."""
    return {
        "data": [row, row],
        "database": "shop",
        "isDdl": False,
        "mysqlType": {"id": "bigint(20) unsigned", "price": "decimal(10,2)", "at": "datetime(6)"},
        "old": None,
        "pkNames": ["id"],
        "table": table,
        "ts": NOON,
        "type": op,
    }


def maxwell(table: str, **row: Any) -> dict[str, Any]:
    return {"database": "shop", "table": table, "type": "insert", "ts": NOON // 1000, "data": row}


def test_changes_of_canal() -> None:
    found = [canal("orders", id="1", price="7.25", at="2024-01-01 12:00:00.5") for _ in range(3)]
    draft = drafted(sampled([*found, canal("Kunden-1", id="1")]))
    assert types(draft) == {"id": "DECIMAL(20, 0)", "price": "DECIMAL(10, 2)", "at": "TIMESTAMP(6)"}
    assert (draft.key, draft.changes, draft.time) == (("id",), "retract", None)
    assert draft.options["canal-json.table.include"] == "orders"
    assert any("1 x shop.Kunden-1" in note for note in draft.notes)
    bound(draft)


def test_changes_of_canal_without_types() -> None:
    record = canal("orders", id="1", note="x") | {"mysqlType": None, "pkNames": None}
    draft = drafted(sampled([record]))
    assert (types(draft), draft.key) == ({"id": "BIGINT", "note": "STRING"}, ())
    bound(draft)


def test_changes_of_maxwell() -> None:
    draft = drafted(sampled([maxwell("t", id=1, name="a") | {"primary_key_columns": ["id"]}]))
    assert (draft.options, draft.key) == ({"format": "maxwell-json"}, ("id",))
    assert types(draft) == {"id": "BIGINT", "name": "STRING"}
    bound(draft)


OF_REGISTRY = {
    "/schemas/ids/1": {"schemaType": "JSON", "schema": '{"type": "object"}'},
    "/schemas/ids/2": {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3";'},
    "/schemas/ids/3": {"schema": '"string"', "references": [{"name": "a"}]},
    "/schemas/ids/4": {"schemaType": "THRIFT", "schema": "struct"},
    "/subjects/orders-value/versions/latest": {"id": 1, "version": 1},
    "/subjects/messages-value/versions/latest": {"id": 2, "version": 1},
}


def framed(schema_id: int, value: object) -> bytes:
    """JSON as Confluent's serializer frames it."""
    return b"\0" + schema_id.to_bytes(4, "big") + json.dumps(value).encode()


@pytest.mark.parametrize("compacted", [False, True])
def test_json_behind_a_schema_id(compacted: bool) -> None:
    """The registry says what the bytes are; columns come from the records, as no schema is read."""
    rows = [framed(1, {"id": n, "at": "2024-01-01T12:00:00Z"}) for n in range(3)]
    keys = [framed(1, {"id": n}) for n in range(3)]
    with registered(OF_REGISTRY) as (schemas, options):
        draft = draft_table(sampled(rows, keys, compacted=compacted), schemas, options, 0.99)
    assert types(draft) == {"id": "BIGINT", "at": "TIMESTAMP_LTZ(3)"}
    value = "value." if compacted else ""
    key = {"key.format": "json-registry", "key.json-registry.url": options["url"]}
    assert draft.options == {
        **(key if compacted else {}),
        f"{value}format": "json-registry",
        f"{value}json-registry.timestamp-format.standard": "ISO-8601",
        f"{value}json-registry.url": options["url"],
    }
    assert draft.key == (("id",) if compacted else ())
    bound(draft)


@pytest.mark.parametrize(
    ("topic", "value", "code", "says", "hint"),
    [
        ("t", framed(2, {}), "SCHEMA_UNREAD", "schema 2 .* is Protobuf", "proto-registry"),
        ("messages", None, "SCHEMA_UNREAD", "schema 2 .* is Protobuf", "proto-registry"),
        ("t", framed(3, {}), "SCHEMA_UNREAD", "refers to other schemas", "by hand"),
        ("t", framed(4, {}), "SCHEMA_UNREAD", "is THRIFT, which no format reads", "by hand"),
        ("t", framed(1, {})[:-1], "SAMPLE_UNREADABLE", "not of the schema that it names", "raw"),
        ("orders", None, "SAMPLE_EMPTY", "no registry has an Avro schema of it", "--registry"),
        (
            "t",
            framed(1, {"op": "c", "after": {"id": 1}}),
            "SAMPLE_UNREADABLE",
            "JSON behind a schema id: Debezium's change events, which no format reads",
            "as Avro with a registry, or as JSON without one",
        ),
    ],
)
def test_values_of_a_registry_that_become_no_table(
    topic: str, value: bytes | None, code: str, says: str, hint: str
) -> None:
    with (
        registered(OF_REGISTRY) as (schemas, options),
        pytest.raises(FormatError, match=says) as refused,
    ):
        draft_table(sampled([value], topic=topic), schemas, options, 0.99)
    assert refused.value.code == code
    assert hint in (refused.value.hint or "")


def test_keys_of_protobuf_are_no_key() -> None:
    with registered(OF_REGISTRY) as (schemas, options):
        draft = draft_table(sampled([{"id": 1}], [framed(2, {})]), schemas, options, 0.99)
    assert (draft.key, draft.changes) == ((), "append")


@pytest.mark.parametrize(
    "event",
    [
        {"op": "c", "before": None, "after": '{"_id": {"$oid": "596e275826f08b2730779e1f"}}'},
        {"op": "d", "before": None, "after": None, "updateDescription": None},
    ],
)
def test_changes_of_documents_are_refused_with_the_transform_that_makes_rows(
    event: dict[str, Any],
) -> None:
    with pytest.raises(FormatError, match="change events of MongoDB") as refused:
        drafted(sampled([event], [{"id": '{"$oid": "596e275826f08b2730779e1f"}'}]))
    assert refused.value.code == "SAMPLE_UNREADABLE"
    assert "ExtractNewDocumentState" in (refused.value.hint or "")


def test_few_other_records_are_named() -> None:
    draft = drafted(sampled([*[{"id": n} for n in range(30)], b"oops"]))
    assert any("1 x neither JSON nor framed Avro (partition 0 offset 30)" in n for n in draft.notes)
    bound(draft)


@pytest.mark.parametrize(
    ("values", "code", "says"),
    [
        ([], "SAMPLE_EMPTY", "no records"),
        ([None, None], "SAMPLE_EMPTY", "only tombstones"),
        ([{"id": 1}, b"a,b", b"c,d"], "SAMPLE_UNREADABLE", "neither JSON nor framed Avro"),
        ([b"a,b", b"c,d,e", b"f"], "SAMPLE_UNREADABLE", "neither JSON nor framed Avro"),
        ([b"alpha", b"beta"], "SAMPLE_UNREADABLE", "neither JSON nor framed Avro"),
        ([maxwell("t", id=1), maxwell("u", id=1)], "SAMPLE_MIXED", "several tables"),
        ([{"id": 1}, {"op": "c", "after": {"id": 1}}], "SAMPLE_MIXED", "change events"),
        ([b"\x00\x00\x00\x00\x01abc"], "SAMPLE_UNREADABLE", "schema id"),
        ([b"[1]"], "SAMPLE_UNREADABLE", "no object"),
    ],
)
def test_topics_that_become_no_table(values: list[Any], code: str, says: str) -> None:
    with pytest.raises(FormatError, match=says) as refused:
        drafted(sampled(values, [b"k"] * len(values)))
    assert refused.value.code == code
    assert refused.value.hint


def test_comments_and_names_of_a_topic_stay_inside_the_statement() -> None:
    rows = [{"a`b": 1, "select": "it's", "x\ny": {"c": None}}]
    bound(drafted(sampled(rows, topic="it's.2024-a")))

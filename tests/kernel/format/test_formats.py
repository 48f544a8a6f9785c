"""JSON formats, raw, upsert tables and the policies for bad records, through the kernel."""

import json
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.kernel.tables import Record, TableScan, recorded

ORDER = {"order_id": "string", "price": "string", "order_time": "timestamp", "note": "string"}
ISO = {"timestamp-format.standard": "ISO-8601"}


def as_json(value: object) -> Record:
    return Record(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("boolean", "true", True),
        ("boolean", '"TRUE"', True),
        ("byte", "-128", -128),
        ("short", '"7"', 7),
        ("integer", "2147483647", 2147483647),
        ("integer", '" 12 "', 12),
        ("integer", "3.9", 3),
        ("long", "9223372036854775807", 9223372036854775807),
        ("double", "1e3", 1000.0),
        ("double", '"0.5"', 0.5),
        ("decimal(10,2)", "1.005", "1.01"),
        ("decimal(10,2)", '"-2.5"', "-2.50"),
        ("decimal(4,2)", "123.4", None),
        ("string", '"a\\u00e4\\n☃"', "aä\n☃"),
        ("string", "1.50", "1.50"),
        ("string", '{"a": [1, 2.50]}', '{"a":[1,2.5]}'),
        ("binary", '"AP8Q"', "AP8Q"),
        ("date", '"2020-02-29"', "2020-02-29"),
        ("TIME", '"10:00:00.5"', 36_000_500),
        ("TIMESTAMP(3)", '"2020-08-15 10:00:00"', "2020-08-15T10:00:00.000"),
        ("TIMESTAMP(6)", '"1969-12-31 23:59:59.123456789"', "1969-12-31T23:59:59.123456"),
        ("timestamp", '"2020-08-15 10:00:00.25Z"', "2020-08-15T10:00:00.250"),
        ({"type": "array", "elementType": "integer", "containsNull": True}, "[1,null]", [1, None]),
        (
            {
                "type": "map",
                "keyType": "string",
                "valueType": "long",
                "valueContainsNull": True,
            },
            '{"a": 1, "b": null}',
            {"a": 1, "b": None},
        ),
        (
            {
                "type": "struct",
                "fields": [
                    {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
                    {"name": "y", "type": "string", "nullable": True, "metadata": {}},
                ],
            },
            '{"z": {"deep": []}, "y": "q", "x": 1}',
            [1, "q"],
        ),
        ("integer", "null", None),
    ],
)
def test_json_value(jvm: Any, type_: Any, text: str, expected: object) -> None:
    got = TableScan({"id": "integer", "c": type_}).read(jvm, Record(b'{"c":%s}' % text.encode()))
    assert got.rows == [["+I", None, expected]]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("integer", '"x"'),
        ("integer", "2147483648"),
        ("byte", "128"),
        ("integer", "[1]"),
        ("date", '"2020-02-30"'),
        ("TIMESTAMP(3)", '"2020-08-15T10:00:00"'),
        ("TIMESTAMP(3)", '"2020-08-15 24:00:00"'),
        ("timestamp", '"2020-08-15 10:00:00"'),
        ("decimal(10,2)", '"abc"'),
        ("binary", '"*"'),
        ({"type": "array", "elementType": "integer", "containsNull": True}, '{"a": 1}'),
    ],
)
def test_json_value_that_does_not_fit(jvm: Any, type_: Any, text: str) -> None:
    record = Record(b'{"c":%s,"id":1}' % text.encode())
    columns = {"id": "integer", "c": type_}
    assert TableScan(columns).read(jvm, record).rejects == ["json-field-malformed"]
    lenient = TableScan(columns, options={"ignore-parse-errors": "true"})
    assert lenient.read(jvm, record).rows == [["+I", 1, None]]


@pytest.mark.parametrize("text", [b"", b"nonsense", b'{"id":1', b"[1]", b'{"id":1,}', b'"x"'])
def test_broken_json(jvm: Any, text: bytes) -> None:
    scan = TableScan({"id": "integer"})
    got = scan.read(jvm, Record(text), as_json({"id": 2}))
    assert (got.rejects, got.rows) == (["json-malformed"], [["+I", 2]])
    lenient = TableScan({"id": "integer"}, options={"ignore-parse-errors": "true"})
    assert lenient.read(jvm, Record(text)) == lenient.read(jvm)


def test_missing_field(jvm: Any) -> None:
    columns = {"id": "integer", "c": "string"}
    assert TableScan(columns).read(jvm, as_json({"id": 1})).rows == [["+I", 1, None]]
    strict = TableScan(columns, options={"fail-on-missing-field": "true"})
    assert strict.read(jvm, as_json({"id": 1})).rejects == ["json-missing-field"]


def test_fields_are_found_in_any_order(jvm: Any) -> None:
    scan = TableScan({"a": "integer", "b": "integer"})
    first, second = as_json({"a": 1, "x": {"a": 9}, "b": 2}), as_json({"b": 4, "a": 3, "a2": 5})
    assert scan.read(jvm, first, second, first).rows == [["+I", 1, 2], ["+I", 3, 4], ["+I", 1, 2]]


def test_null_value_is_no_row(jvm: Any) -> None:
    assert TableScan({"a": "integer"}).read(jvm, Record(None)).rows == []


def test_debezium_upserts(jvm: Any) -> None:
    """Replica identity DEFAULT: deletions hold the key only, tombstones say nothing."""
    columns = {"order_id": "string", "note": "string", "changed": "timestamp"}
    metadata = {"changed": "value.source.timestamp"}
    scan = TableScan(
        columns, "debezium-json", changelog="upsert", primary_key=["order_id"], metadata=metadata
    )
    got = scan.read(jvm, *recorded("json/shopjson.public.orders.jsonl"))
    assert got.rejects == []
    rows = [[kind, key, note] for kind, key, note, _ in got.rows]
    assert rows[:8] == [
        ["+U", "o-1", "first"],
        ["+U", "o-2", None],
        ["+U", "o-3", 'snowman ☃, quote " and back\\slash'],
        ["+U", "o-4", "inserted"],
        ["+U", "o-1", "first"],
        ["+U", "o-1", None],
        ["+U", "o-1", None],
        ["-D", "o-2", None],
    ]
    assert rows[8:13] == [
        ["-D", "o-3", None],
        ["+U", "o-3b", "renamed"],
        ["+U", "o-5", "tx"],
        ["+U", "o-short", "a"],
        ["+U", "o-short", "b"],
    ]
    assert got.rows[0][3] == "2026-11-21T09:03:37.073"


def test_debezium_metadata(jvm: Any) -> None:
    """What the event says of its source; a local time is that of the job's time zone."""
    names = {
        "at": "value.source.timestamp", "local": "value.source.timestamp",
        "handled": "value.ingestion-timestamp", "database": "value.source.database",
        "schema": "value.source.schema", "table": "value.source.table",
        "properties": "value.source.properties",
    }  # fmt: skip
    texts = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    columns = {
        "order_id": "string", "at": "timestamp", "local": "TIMESTAMP(3)", "handled": "long",
        "database": "string", "schema": "string", "table": "string", "properties": texts,
    }  # fmt: skip
    scan = TableScan(
        columns,
        "debezium-json",
        changelog="upsert",
        primary_key=["order_id"],
        metadata=names,
        time_zone="Europe/Berlin",
    )
    [row] = scan.read(jvm, recorded("json/shopjson.public.orders.jsonl")[0]).rows
    at, local = "2026-11-21T09:03:37.073", "2026-11-21T10:03:37.073"
    assert row[:-1] == ["+U", "o-1", at, local, 1795251817301, "shop", "public", "orders"]
    assert row[-1]["lsn"] == "31721016"
    assert row[-1]["xmin"] is None


@pytest.mark.parametrize("ms", [2**63 - 1, 9_223_372_036_854_775, -9_223_372_036_854_776])
def test_debezium_metadata_beyond_a_timestamp(jvm: Any, ms: int) -> None:
    scan = TableScan(
        {"id": "integer", "at": "TIMESTAMP(3)"},
        "debezium-json",
        metadata={"at": "value.source.timestamp"},
        time_zone="Asia/Tokyo",
    )
    event = {"op": "c", "after": {"id": 1}, "source": {"ts_ms": ms}}
    assert scan.read(jvm, as_json(event)).rejects == ["value-out-of-range"]


def test_debezium_with_schema_gives_the_same_rows(jvm: Any) -> None:
    scan = TableScan(ORDER, "debezium-json", ISO, "upsert", primary_key=["order_id"])
    wrapped = recorded("json_schema/shopschema.public.orders.jsonl")
    bare = recorded("json/shopjson.public.orders.jsonl")[: len(wrapped)]
    assert scan.read(jvm, *wrapped) == scan.read(jvm, *bare)


def test_debezium_retractions(jvm: Any) -> None:
    """Replica identity FULL: an update is two rows, a truncation is refused."""
    scan = TableScan(ORDER, "debezium-json", ISO, "retract")
    got = scan.read(jvm, *recorded("json/shopjson.public.orders_full.jsonl"))
    assert got.rejects == ["debezium-truncate"]
    assert got.rows[4:6] == [
        ["-U", "o-1", "BBo=", "2026-01-01T01:00:00.000", "first"],
        ["+U", "o-1", "BJc=", "2026-01-01T01:00:00.000", "first"],
    ]
    assert [r[0] for r in got.rows].count("-D") == 2


def test_retractions_need_the_row_before(jvm: Any) -> None:
    scan = TableScan(ORDER, "debezium-json", ISO, "retract")
    got = scan.read(jvm, *recorded("json/shopjson.public.orders.jsonl")[:5])
    assert got.rejects == ["missing-before"]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"op": "x", "after": {}}, "unknown-op"),
        ({"op": "c", "after": None}, "missing-after"),
        ({"op": "d", "before": {"note": "x"}}, "null-primary-key"),
        ({"status": "BEGIN"}, "debezium-no-envelope"),
        (
            {"op": "u", "after": {"order_id": "1", "note": "__debezium_unavailable_value"}},
            "debezium-unavailable-value",
        ),
    ],
)
def test_debezium_events_that_are_no_rows(jvm: Any, event: Any, reason: str) -> None:
    columns = {"order_id": "string", "note": "string"}
    scan = TableScan(columns, "debezium-json", changelog="upsert", primary_key=["order_id"])
    assert scan.read(jvm, as_json(event)).rejects == [reason]


def test_debezium_message(jvm: Any) -> None:
    scan = TableScan({"id": "string"}, "debezium-json", changelog="upsert", primary_key=["id"])
    got = scan.read(jvm, *recorded("json/shopjson.message.jsonl"))
    assert got.rejects == ["debezium-message"] * 2


def test_changelog_json(jvm: Any) -> None:
    scan = TableScan({"a": "integer"}, "changelog-json", changelog="retract")
    kinds = ["+I", "-U", "+U", "-D"]
    got = scan.read(jvm, *(as_json({"data": {"a": i}, "op": k}) for i, k in enumerate(kinds)))
    assert got.rows == [[k, i] for i, k in enumerate(kinds)]
    assert scan.read(jvm, as_json({"op": "+X", "data": {}})).rejects == ["unknown-op"]


CSV = {"columns": '["a", "b", "c"]'}


@pytest.mark.parametrize(
    ("schema_id", "headers"),
    [
        (b"\0\0\0\0\x05", ()),
        (b"", (("__value_schema_id", b"\1" + bytes(range(16))),)),
    ],
)
def test_json_behind_a_schema_id(jvm: Any, schema_id: bytes, headers: Any) -> None:
    options = {"rejoin.schema-id": "confluent-headers" if headers else "prefix"}
    scan = TableScan({"id": "integer", "at": "TIMESTAMP(3)"}, "json-registry", options)
    got = scan.read(
        jvm, Record(schema_id + b'{"at":"2024-01-01 12:00:00","id":7}', None, headers), Record(None)
    )
    assert got.rows == [["+I", 7, "2024-01-01T12:00:00.000"]]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "json-bad-framing"),
        (b'{"id":1}', "json-bad-framing"),
        (b"\0\0\0\0", "json-bad-framing"),
        (b"\0\0\0\0\x05", "json-malformed"),
        (b"\0\0\0\0\x05[1]", "json-malformed"),
        (b'\0\0\0\0\x05{"id":1', "json-malformed"),
        (b'\0\0\0\0\x05{"id":"x"}', "json-field-malformed"),
    ],
)
def test_json_without_its_schema_id(jvm: Any, value: bytes, reason: str) -> None:
    good = Record(b'\0\0\0\0\x05{"id":2}')
    scan = TableScan({"id": "integer"}, "json-registry")
    got = scan.read(jvm, Record(value), good)
    assert (got.rows, got.rejects) == ([["+I", 2]], [reason])
    lenient = TableScan({"id": "integer"}, "json-registry", {"ignore-parse-errors": "true"})
    assert lenient.read(jvm, Record(value), good).rejects == []


def test_csv_finds_columns_by_their_places(jvm: Any) -> None:
    """The query may read some of the columns, in another order."""
    scan = TableScan({"c": "string", "a": "integer"}, "csv", CSV)
    got = scan.read(jvm, Record(b'1,"x, y",z'), Record(b'2,,"a ""b"""\n'), Record(None))
    assert got.rows == [["+I", "z", 1], ["+I", 'a "b"', 2]]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "csv-malformed"),
        (b"1,2,3,4", "csv-malformed"),
        (b'1,2,"3', "csv-malformed"),
        (b'1,2,"3"4', "csv-malformed"),
        (b"1,2,\xff", "csv-malformed"),
        (b"1,2", "csv-malformed"),
        (b"x,2,3", "csv-field-malformed"),
        (b",2,3", "csv-field-malformed"),
    ],
)
def test_csv_that_is_no_row(jvm: Any, value: bytes, reason: str) -> None:
    scan = TableScan({"a": "integer"}, "csv", CSV)
    got = scan.read(jvm, Record(value), Record(b"1,2,3"))
    assert (got.rows, got.rejects) == ([["+I", 1]], [reason])
    lenient = TableScan({"a": "integer"}, "csv", CSV | {"ignore-parse-errors": "true"})
    assert lenient.read(jvm, Record(value)).rejects == []


def test_csv_as_key(jvm: Any) -> None:
    scan = TableScan(
        {"id": "long", "v": "string"},
        changelog="upsert",
        key=["id"],
        key_format="csv",
        key_options={"columns": '["other", "id"]'},
        primary_key=["id"],
    )
    got = scan.read(jvm, Record(b'{"v":"a"}', b"x,7"), Record(None, b"x,7"), Record(None, b"7"))
    assert got.rows == [["+U", 7, "a"], ["-D", 7, None]]
    assert got.rejects == ["csv-malformed"]


PRODUCT = {"id": "integer", "name": "string"}


def canal(type_: str, data: Any, old: Any = None) -> Record:
    return as_json({"data": data, "old": old, "ts": 5, "type": type_})


def test_canal_changes_several_rows_at_once(jvm: Any) -> None:
    """What a row of `old` does not name has not changed, whatever the other rows name."""
    scan = TableScan(PRODUCT, "canal-json", changelog="retract")
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    changed = [{"id": 3, "name": "a"}, {"id": 2, "name": "c"}]
    got = scan.read(
        jvm,
        canal("INSERT", rows),
        canal("UPDATE", changed, [{"id": 1}, {"name": "b"}]),
        canal("DELETE", changed[:1]),
        canal("CREATE", None),
        Record(None),
    )
    assert got.rows == [
        ["+I", 1, "a"], ["+I", 2, "b"],
        ["-U", 1, "a"], ["+U", 3, "a"], ["-U", 2, "b"], ["+U", 2, "c"],
        ["-D", 3, "a"],
    ]  # fmt: skip


def test_a_row_that_one_record_changes_twice(jvm: Any) -> None:
    """Rows of one place in Kafka are ordered by their kind: a row in between never shows."""
    scan = TableScan(PRODUCT, "canal-json", changelog="retract")
    rows, old = [{"id": 1, "name": n} for n in "bcd"], [{"name": n} for n in "abc"]
    assert scan.read(jvm, canal("UPDATE", rows, old)).rows == [["-U", 1, "a"], ["+U", 1, "d"]]


def test_a_record_of_canal_is_rejected_as_a_whole(jvm: Any) -> None:
    scan = TableScan(PRODUCT, "canal-json", changelog="retract", not_null=["id"])
    got = scan.read(jvm, canal("INSERT", [{"id": 1}, {"id": None}]), canal("INSERT", [{"id": 2}]))
    assert (got.rows, got.rejects) == ([["+I", 2, None]], ["not-null-violation"])


def test_binlog_rows_as_upserts(jvm: Any) -> None:
    """In front of a normaliser a -U says nothing, as in Flink."""
    scan = TableScan(PRODUCT, "maxwell-json", changelog="upsert", primary_key=["id"])
    rows = [{"id": 1, "name": name} for name in "ab"]
    updates = [as_json({"data": row, "old": {"name": "z"}, "type": "update"}) for row in rows]
    got = scan.read(jvm, *updates, as_json({"data": {"id": 1}, "type": "delete"}))
    assert got.rows == [["+U", 1, "a"], ["+U", 1, "b"], ["-D", 1, None]]


@pytest.mark.parametrize(
    ("type_", "data", "old", "reason"),
    [
        ("ALTER", None, None, "unknown-op"),
        ("INSERT", None, None, "missing-after"),
        ("INSERT", {"id": 1}, None, "json-field-malformed"),
        ("INSERT", [1], None, "json-field-malformed"),
        ("UPDATE", [{"id": 1}], None, "missing-before"),
        ("UPDATE", [{"id": 1}, {"id": 2}], [{"id": 3}], "missing-before"),
    ],
)
def test_canal_records_that_are_no_rows(
    jvm: Any, type_: str, data: Any, old: Any, reason: str
) -> None:
    scan = TableScan(PRODUCT, "canal-json", changelog="retract")
    assert scan.read(jvm, canal(type_, data, old)).rejects == [reason]


def test_metadata_of_canal_in_other_types(jvm: Any) -> None:
    columns = {"id": "integer", "ms": "long", "local": "TIMESTAMP(3)", "again": "long"}
    names = dict.fromkeys(("ms", "local", "again"), "value.ingestion-timestamp")
    scan = TableScan(
        columns, "canal-json", changelog="retract", metadata=names, time_zone="Asia/Tokyo"
    )
    beyond = as_json({"ts": 2**63 - 1, "data": [{}], "type": "DELETE"})
    got = scan.read(jvm, canal("INSERT", [{"id": 1}]), beyond)
    assert got.rows == [["+I", 1, 5, "1970-01-01T09:00:00.005", 5]]
    assert got.rejects == ["value-out-of-range"]


def test_upsert_table(jvm: Any) -> None:
    scan = TableScan(
        {"id": "long", "v": "string"},
        changelog="upsert",
        key=["id"],
        key_format="json",
        primary_key=["id"],
        not_null=["id"],
        filter="`v` <> 'hidden'",
    )
    got = scan.read(
        jvm,
        Record(b'{"v":"a"}', b'{"id":1}'),
        Record(None, b'{"id":1}'),
        Record(b'{"v":"hidden"}', b'{"id":2}'),
        Record(b'{"v":"a"}', None),
        Record(b'{"v":"a"}', b"{}"),
        Record(b'{"v":"a"}', b"?"),
    )
    assert [r[:2] for r in got.rows] == [["+U", 1], ["-D", 1], ["-D", 2]]
    assert got.rejects == ["null-record-key", "null-primary-key", "json-malformed"]


def test_not_null_column(jvm: Any) -> None:
    scan = TableScan({"id": "long", "v": "string"}, not_null=["v"])
    assert scan.read(jvm, as_json({"id": 1})).rejects == ["not-null-violation"]


def test_metadata_of_records(jvm: Any) -> None:
    names = {"topic": "string", "partition": "integer", "offset": "long", "timestamp": "timestamp"}
    scan = TableScan({"a": "integer", **names}, metadata={n: n for n in names})
    got = scan.read(jvm, as_json({"a": 1}), as_json({"a": 2}))
    assert got.rows[1] == ["+I", 2, "topic", 0, 1, "2020-09-13T12:26:40.001"]


@pytest.mark.parametrize(
    ("type_", "options", "value", "expected"),
    [
        ("string", {}, "ä".encode(), "ä"),
        ("binary", {}, b"\x00\xff", "AP8="),
        ("integer", {}, b"\x00\x00\x01\x00", 256),
        ("long", {"endianness": "little-endian"}, b"\x01" + b"\x00" * 7, 1),
        ("string", {}, None, None),
    ],
)
def test_raw(jvm: Any, type_: str, options: Any, value: bytes | None, expected: object) -> None:
    got = TableScan({"v": type_}, "raw", options).read(jvm, Record(value))
    assert got.rows == [["+I", expected]]


def test_raw_of_wrong_length(jvm: Any) -> None:
    assert TableScan({"v": "integer"}, "raw").read(jvm, Record(b"\x00")).rejects == [
        "raw-bad-length"
    ]


def test_fail_names_the_record(jvm: Any) -> None:
    scan = TableScan({"id": "integer"}, on_error="fail")
    with pytest.raises(Py4JJavaError) as failure:
        scan.read(jvm, as_json({"id": 1}), Record(b"?"))
    assert "table t: topic[0]@1: json-malformed: not JSON" in str(failure.value.java_exception)


def test_dead_letters_keep_key_and_value(jvm: Any) -> None:
    got = TableScan({"id": "integer"}).read(jvm, Record(b"?", b"k"), Record(b"", None))
    assert got.dead_letters == [("dead", b"k", b"?"), ("dead", None, b"")]


def test_skip_goes_on(jvm: Any) -> None:
    got = TableScan({"id": "integer"}, on_error="skip").read(jvm, Record(b"?"), as_json({"id": 1}))
    assert (got.rows, got.rejects) == ([["+I", 1]], [])

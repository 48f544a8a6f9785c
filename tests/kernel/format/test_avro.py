"""Avro in: schema resolution, logical types, framing; fastavro is the oracle."""

import datetime
import decimal
import io
import struct as binary
from typing import Any

import fastavro
import pytest

from tests.kernel.conftest import SchemaIds
from tests.kernel.format.avro_records import avro, framed, record_schema, use_recorded_schemas
from tests.kernel.tables import Record, recorded, struct

MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
INTEGERS = {"type": "array", "elementType": "integer", "containsNull": True}
LONGS_BY_NAME = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}


@pytest.mark.parametrize(
    ("written", "value", "type_", "expected"),
    [
        ("int", -7, "integer", -7),
        ("int", 2**31 - 1, "long", 2**31 - 1),
        ("int", 3, "double", 3.0),
        ("long", -(2**63), "long", -(2**63)),
        ("long", 5, "float", 5.0),
        ("float", 1.5, "double", 1.5),
        ("double", -0.1, "double", -0.1),
        ("boolean", True, "boolean", True),
        ("int", -128, "byte", -128),
        ("string", "ä☃", "string", "ä☃"),
        ("bytes", b"ab", "string", "ab"),
        ("string", "ab", "binary", "YWI="),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "string", "B"),
        ({"type": "fixed", "name": "f", "size": 2}, b"\x00\x01", "binary", "AAE="),
        (["null", "string"], None, "string", None),
        (["null", "string"], "x", "string", "x"),
        (["string", "null"], "x", "string", "x"),
        (["int", "null", "long"], 2**40, "long", 2**40),
        ({"type": "int", "logicalType": "date"}, datetime.date(2020, 2, 29), "date", "2020-02-29"),
        (
            MILLIS,
            datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
            "TIMESTAMP(3)",
            "2020-01-01T00:00:00.000",
        ),
        (
            MICROS,
            datetime.datetime(1969, 12, 31, 23, 59, 59, 123456, datetime.UTC),
            "timestamp",
            "1969-12-31T23:59:59.123456",
        ),
        ("long", 1000, "TIMESTAMP(3)", "1970-01-01T00:00:01.000"),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, 1_000_000,
         "TIMESTAMP(6)", "1970-01-01T00:00:01.000"),
        ({"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"},
         "2020-01-01T01:00:00+01:00", "timestamp", "2020-01-01T00:00:00.000"),
        ({"type": "int", "logicalType": "time-millis"}, datetime.time(10), "TIME", 36_000_000),
        ({"type": "long", "logicalType": "time-micros"}, datetime.time(10), "TIME", 36_000_000),
        (DECIMAL, decimal.Decimal("-12.34"), "decimal(10,2)", "-12.34"),
        (DECIMAL, decimal.Decimal("12.34"), "decimal(10,4)", "12.3400"),
        (DECIMAL, decimal.Decimal("12.35"), "decimal(10,1)", "12.4"),
        ({"type": "array", "items": ["null", "int"]}, [1, None, 3], INTEGERS, [1, None, 3]),
        ({"type": "map", "values": "int"}, {"a": 1}, LONGS_BY_NAME, {"a": 1}),
        (record_schema(("y", "string"), ("x", "int"), name="n"), {"x": 1, "y": "q"},
         struct({"x": "long", "n": "string"}), [1, None]),
    ],
)  # fmt: skip
def test_value(jvm: Any, schema_ids: SchemaIds, written: Any, value: Any, type_: Any,
               expected: Any) -> None:  # fmt: skip
    fields = ("c", written), ("after", "string")
    records = framed(schema_ids, record_schema(*fields), {"c": value, "after": "end"})
    got = avro(schema_ids, {"c": type_, "after": "string"}).read(jvm, *records)
    assert got.rows == [["+I", expected, "end"]]


@pytest.mark.parametrize(
    ("written", "value", "type_", "reason"),
    [
        ("long", 1, "integer", "avro-schema-mismatch"),
        ("string", "1", "integer", "avro-schema-mismatch"),
        (["null", "string"], None, "long", "avro-schema-mismatch"),
        ("bytes", b"1", "decimal(10,2)", "avro-schema-mismatch"),
        (["int", "string"], "x", "integer", "avro-schema-mismatch"),
        ("int", 128, "byte", "value-out-of-range"),
        (DECIMAL, decimal.Decimal("12345678.00"), "decimal(9,2)", "value-out-of-range"),
    ],
)
def test_value_that_does_not_fit(
    jvm: Any, schema_ids: SchemaIds, written: Any, value: Any, type_: Any, reason: str
) -> None:
    records = framed(schema_ids, record_schema(("c", written)), {"c": value})
    assert avro(schema_ids, {"c": type_}).read(jvm, *records).rejects == [reason]


def test_fields_that_are_not_read(jvm: Any, schema_ids: SchemaIds) -> None:
    numbers = {"type": "array", "items": "int"}
    nested = record_schema(("deep", ["null", "string"]), ("n", numbers), name="inner")
    schema = record_schema(
        ("b", "boolean"),
        ("f", "float"),
        ("d", "double"),
        ("s", ["null", "string"]),
        ("m", {"type": "map", "values": nested}),
        ("e", {"type": "enum", "name": "e", "symbols": ["A"]}),
        ("x", {"type": "fixed", "name": "x", "size": 3}),
        ("wanted", "int"),
        ("l", "long"),
    )
    value = {
        "b": True, "f": 1.0, "d": 2.0, "s": "text", "e": "A", "x": b"abc", "wanted": 42, "l": 1,
        "m": {"k": {"deep": "v", "n": [1, 2]}, "k2": {"deep": None, "n": []}},
    }  # fmt: skip
    records = framed(schema_ids, schema, value)
    assert avro(schema_ids, {"wanted": "integer"}).read(jvm, *records).rows == [["+I", 42]]


def test_records_within_records(jvm: Any, schema_ids: SchemaIds) -> None:
    """A schema that contains itself has data of any depth: no record may overflow the stack."""
    node = record_schema(("next", ["null", "node"]), name="node")
    schema_id = schema_ids.add(record_schema(("list", ["null", node]), ("c", "int")))
    prefix = b"\x00" + binary.pack(">I", schema_id)
    short, deep = (Record(prefix + b"\x02" * depth + b"\x00\x0e") for depth in (500, 200_000))
    got = avro(schema_ids, {"c": "integer"}).read(jvm, short, deep)
    assert (got.rows, got.rejects) == ([["+I", 7]], ["avro-malformed"])


def test_blocks_with_sizes(jvm: Any, schema_ids: SchemaIds) -> None:
    """An array may be written in blocks whose count is negative and followed by a byte size."""
    schema_id = schema_ids.add(record_schema(("c", {"type": "array", "items": "int"})))
    body = bytes([3, 4, 2, 4, 1, 2, 6, 0])  # -2 items in 2 bytes: 1, 2; -1 item in 1 byte: 3; end
    record = Record(b"\x00" + binary.pack(">I", schema_id) + body)
    assert avro(schema_ids, {"c": INTEGERS}).read(jvm, record).rows == [["+I", [1, 2, 3]]]


def test_bare_key(jvm: Any, schema_ids: SchemaIds) -> None:
    records = framed(schema_ids, "string", "k1")
    assert avro(schema_ids, {"id": "string"}).read(jvm, *records).rows == [["+I", "k1"]]


@pytest.mark.parametrize("cut", [0, 3, 7, -1])
def test_cut_records(jvm: Any, schema_ids: SchemaIds, cut: int) -> None:
    [record] = framed(
        schema_ids, record_schema(("c", "string"), ("d", "long")), {"c": "x", "d": 300}
    )
    assert record.value is not None
    got = avro(schema_ids, {"c": "string"}).read(jvm, Record(record.value[:cut]))
    assert got.rejects == ["avro-bad-framing" if cut in (0, 3) else "avro-malformed"]


def test_framing(jvm: Any, schema_ids: SchemaIds) -> None:
    scan = avro(schema_ids, {"c": "string"})
    glue, text, unknown = b"\x03" * 20, b'{"c": 1}', b"\x00\x00\x00\xff\xff\x02"
    got = scan.read(jvm, *(Record(v) for v in (glue, text, unknown)))
    assert got.rejects == ["avro-bad-framing", "avro-bad-framing", "avro-unknown-schema-id"]


def decoded(record: Record, schemas: dict[int, Any]) -> Any:
    assert record.value is not None
    schema_id = int.from_bytes(record.value[1:5], "big")
    return fastavro.schemaless_reader(io.BytesIO(record.value[5:]), schemas[schema_id], None)


ORDER = struct({"order_id": "string", "price": "decimal(32,2)", "note": "string", "qty": "long"})


def test_recorded_envelopes(jvm: Any, schema_ids: SchemaIds) -> None:
    """A Debezium envelope read as a row of rows, over a change of the writer's schema."""
    schemas = use_recorded_schemas(schema_ids)
    records = recorded("avro/shopavro.public.orders_full.jsonl")
    scan = avro(schema_ids, {"op": "string", "before": ORDER, "after": ORDER})
    rows = scan.read(jvm, *records).rows
    events = [decoded(r, schemas) for r in records if r.value is not None]
    assert rows == [["+I", e["op"], order(e["before"]), order(e["after"])] for e in events]


def order(row: Any) -> Any:
    if row is None:
        return None
    return [row["order_id"], None if row["price"] is None else str(row["price"]), row["note"],
            row.get("qty")]  # fmt: skip


def test_recorded_types(jvm: Any, schema_ids: SchemaIds) -> None:
    """Debezium's own types: decimals with and without scale, local and zoned times, arrays."""
    schemas = use_recorded_schemas(schema_ids)
    columns = {
        "c_int2": "short", "c_num": "decimal(20,6)", "c_num_38_10": "decimal(38,10)",
        "c_date": "date", "c_time": "TIME", "c_time3": "TIME", "c_ts": "TIMESTAMP(6)",
        "c_ts3": "TIMESTAMP(3)", "c_tstz": "timestamp", "c_bit12": "binary", "c_float4": "double",
        "c_text_arr": {"type": "array", "elementType": "string", "containsNull": True},
    }  # fmt: skip
    record = recorded("avro/shopavro.public.wide.jsonl")[0]
    got = avro(schema_ids, {"after": struct(columns)}).read(jvm, record)
    [_, row] = got.rows[0]
    found = dict(zip(columns, row, strict=True))
    written = decoded(record, schemas)["after"]
    assert found == {
        "c_int2": -32768,
        "c_num": "12345.678900" if written["c_num"]["scale"] == 4 else None,
        "c_num_38_10": str(written["c_num_38_10"]),
        "c_date": "2026-02-03",
        "c_time": 14_706_789,
        "c_time3": 14_706_789,
        "c_ts": "2026-02-03T04:05:06.789012",
        "c_ts3": "2026-02-03T04:05:06.789",
        "c_tstz": "2026-02-03T02:05:06.789012",
        "c_bit12": "AQo=",
        "c_float4": 1.5,
        "c_text_arr": ["x", None, "y,z"],
    }

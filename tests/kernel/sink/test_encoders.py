"""Rows out: JSON as Flink writes it, Debezium's shape, tombstones, Avro; fastavro is the oracle."""

import datetime
import decimal
import io
import json
from typing import Any

import fastavro
import pytest
from py4j.protocol import Py4JJavaError

from spark_jobs.formats.avro import avro_schema
from spark_jobs.sql.types.data_types import DataType, RowField
from tests.kernel.tables import Record, TableScan, struct, through, write

JSON = {"name": "json", "options": {}}
COLUMNS = {"id": "long", "name": "string"}
UPSERT = {"mode": "upsert", "keyFormat": JSON, "valueFormat": JSON, "keyFields": ["id"]}
KEY, ROW = b'{"id":1}', b'{"id":1,"name":"a"}'


def plain(name: str) -> dict[str, Any]:
    return {"name": name, "options": {}}


def test_upsert_writes_rows_and_tombstones(jvm: Any) -> None:
    row = {"id": 1, "name": "a"}
    got = write(jvm, UPSERT, COLUMNS, *((kind, row) for kind in ("+I", "+U", "-U", "-D")))
    assert got.records == [(KEY, ROW), (KEY, ROW), (KEY, None), (KEY, None)]


def test_value_without_key_columns(jvm: Any) -> None:
    sink = UPSERT | {"valueIncludesKey": False, "keyFields": ["k_id"], "keyPrefix": "k_"}
    got = write(jvm, sink, {"name": "string", "k_id": "long"}, ("+I", {"k_id": 1, "name": "a"}))
    assert got.records == [(KEY, b'{"name":"a"}')]


def test_debezium_shape(jvm: Any) -> None:
    sink = {"mode": "retract", "valueFormat": plain("debezium-json")}
    row = {"id": 1, "name": None}
    got = write(jvm, sink, COLUMNS, *((kind, row) for kind in ("+I", "-U", "+U", "-D")))
    added = b'{"before":null,"after":{"id":1,"name":null},"op":"c"}'
    removed = b'{"before":{"id":1,"name":null},"after":null,"op":"d"}'
    assert got.records == [(None, v) for v in (added, removed, added, removed)]


def test_changelog_json_keeps_row_kinds(jvm: Any) -> None:
    sink = {"mode": "retract", "valueFormat": plain("changelog-json")}
    got = write(jvm, sink, {"id": "long"}, ("-U", {"id": 1}), ("+U", {"id": 2}))
    assert [v for _, v in got.records] == [
        b'{"op":"-U","data":{"id":1}}',
        b'{"op":"+U","data":{"id":2}}',
    ]


def test_append_refuses_retractions(jvm: Any) -> None:
    with pytest.raises(Py4JJavaError, match="takes insertions only, but got -D"):
        write(jvm, {"valueFormat": JSON}, COLUMNS, ("-D", {"id": 1}))


def test_null_in_a_not_null_column(jvm: Any) -> None:
    with pytest.raises(Py4JJavaError, match=r"NullValueException.*NULL in the NOT NULL column id"):
        write(jvm, UPSERT, COLUMNS, ("+I", {"name": "a"}))


BYTES_BY_NAME = {
    "type": "map", "keyType": "string", "valueType": "binary", "valueContainsNull": True,
}  # fmt: skip
NOON_MS = 1_704_110_400_000


@pytest.mark.parametrize(
    ("type_", "value", "zone"),
    [
        ("timestamp", "2024-01-01 12:00:00.0005Z", "UTC"),
        ("TIMESTAMP(3)", "2024-01-01 12:00:00", "UTC"),
        ("TIMESTAMP(3)", "2024-01-01 13:00:00", "Europe/Berlin"),
        ("long", NOON_MS, "UTC"),
    ],
)
def test_a_column_becomes_the_timestamp(jvm: Any, type_: str, value: Any, zone: str) -> None:
    columns = {"id": "long", "at": type_, "name": "string"}
    sink = UPSERT | {"metadata": [{"key": "timestamp", "column": "at"}]}
    rows = [{"id": 1, "at": value, "name": "a"}, {"id": 2, "at": None, "name": "b"}]
    got = write(jvm, sink, columns, ("+I", rows[0]), ("-D", rows[0]), ("+I", rows[1]), zone=zone)
    assert got.timestamps == [NOON_MS, NOON_MS, None]
    assert [value for _, value in got.records] == [ROW, None, b'{"id":2,"name":"b"}']
    assert got.headers == [None, None, None]


def test_a_column_becomes_the_headers(jvm: Any) -> None:
    columns = {"id": "long", "h": BYTES_BY_NAME, "name": "string"}
    sink = UPSERT | {"metadata": [{"key": "headers", "column": "h"}], "valueIncludesKey": False}
    found = [{"b": "AQI=", "a": "", "none": None}, {}, None]
    rows = [("+I", {"id": 1, "h": headers, "name": "a"}) for headers in found]
    got = write(jvm, sink, columns, *rows)
    assert got.headers == [[("b", b"\1\2"), ("a", b"")], [], None]
    assert got.timestamps == [None, None, None]
    assert got.records == [(KEY, b'{"name":"a"}')] * 3


def test_a_timestamp_before_1970(jvm: Any) -> None:
    sink = UPSERT | {"metadata": [{"key": "timestamp", "column": "at"}]}
    with pytest.raises(Py4JJavaError, match=r"RecordTimestampException.*sink s: at is -1 ms"):
        write(jvm, sink, {"id": "long", "at": "long"}, ("+I", {"id": 1, "at": -1}))


STRINGS = {"type": "array", "elementType": "string", "containsNull": True}
BY_NAME = {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("string", 'q" b\\ \n\t\u0001 ä☃', '"q\\" b\\\\ \\n\\t\\u0001 ä☃"'),
        ("boolean", True, "true"),
        ("byte", -5, "-5"),
        ("long", -(2**63), str(-(2**63))),
        ("double", 1e20, "1.0E20"),
        ("double", "NaN", '"NaN"'),
        ("float", 0.1, "0.1"),
        ("decimal(20,9)", "0.000000027", "2.7E-8"),
        ("decimal(10,2)", "10.50", "10.50"),
        ("date", "0044-03-15", '"0044-03-15"'),
        ("TIME", "09:08:07", '"09:08:07"'),
        ("TIMESTAMP(3)", "2020-08-15 00:00:00.120", '"2020-08-15 00:00:00.12"'),
        ("timestamp", "2020-08-15 00:00:00Z", '"2020-08-15 00:00:00Z"'),
        ("binary", "AP8Q", '"AP8Q"'),
        (STRINGS, ["a", None, '"'], '["a",null,"\\""]'),
        (BY_NAME, {"k": 1, "n": None}, '{"k":1,"n":null}'),
        (struct({"x": "integer", "y": "string"}), {"x": 1}, '{"x":1,"y":null}'),
    ],
)
def test_json_value(jvm: Any, type_: Any, value: Any, text: str) -> None:
    got = write(jvm, {"valueFormat": JSON}, {"c": type_}, ("+I", {"c": value}))
    assert got.records[0][1] == f'{{"c":{text}}}'.encode()


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b"a\xffb", "a\ufffdb"), (b"a\xc3", "a\ufffd"), ("ä☃".encode(), "ä☃")],
)
def test_json_of_bytes_that_are_no_text(jvm: Any, raw: bytes, text: str) -> None:
    scan = TableScan({"c": "string"}, "raw")
    got = through(jvm, {"valueFormat": JSON}, scan, Record(raw))
    assert got.records[0][1] == f'{{"c":"{text}"}}'.encode()


def test_json_options(jvm: Any) -> None:
    options = {
        "timestamp-format.standard": "ISO-8601",
        "encode.decimal-as-plain-number": "true",
        "encode.ignore-null-fields": "true",
    }
    columns = {"a": "string", "d": "decimal(20,9)", "t": "TIMESTAMP(3)"}
    row = {"d": "0.000000027", "t": "2020-08-15 00:00:00"}
    got = write(jvm, {"valueFormat": {"name": "json", "options": options}}, columns, ("+I", row))
    assert got.records[0][1] == b'{"d":0.000000027,"t":"2020-08-15T00:00:00"}'


def test_raw(jvm: Any) -> None:
    sink = {"valueFormat": plain("raw")}
    assert write(jvm, sink, {"v": "string"}, ("+I", {"v": "ä"})).records == [(None, "ä".encode())]
    assert write(jvm, sink, {"v": "integer"}, ("+I", {"v": 258})).records == [(None, b"\0\0\1\2")]


def test_csv(jvm: Any) -> None:
    sink = UPSERT | {"valueFormat": plain("csv"), "keyFormat": plain("csv")}
    rows = [{"id": 1, "name": 'a "b", c'}, {"id": 2, "name": None}]
    got = write(jvm, sink, COLUMNS, *(("+I", row) for row in rows), ("-D", rows[0]))
    assert got.records == [(b"1", b'1,"a ""b"", c"'), (b"2", b"2,"), (b"1", None)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("canal-json", '{"data":[{"id":1}],"type":"INSERT|DELETE"}'),
        ("maxwell-json", '{"data":{"id":1},"type":"insert|delete"}'),
    ],
)
def test_an_update_of_a_binlog_is_two_records(jvm: Any, name: str, text: str) -> None:
    sink = {"mode": "retract", "valueFormat": plain(name)}
    kinds = ("+I", "-U", "+U", "-D")
    got = write(jvm, sink, {"id": "long"}, *((kind, {"id": 1}) for kind in kinds))
    head, _, rest = text.rpartition(':"')
    operations = rest.removesuffix('"}').split("|")
    texts = [f'{head}:"{operation}"}}'.encode() for operation in operations]
    assert [value for _, value in got.records] == texts * 2


AVRO_COLUMNS = {
    "id": DataType("BIGINT", nullable=False), "s": DataType("STRING"), "i": DataType("INT"),
    "b": DataType("BOOLEAN"), "d": DataType("DOUBLE"), "f": DataType("FLOAT"),
    "amount": DataType("DECIMAL", precision=10, scale=2), "day": DataType("DATE"),
    "at": DataType("TIMESTAMP", precision=3), "fine": DataType("TIMESTAMP", precision=6),
    "time": DataType("TIME"), "raw": DataType("BYTES"),
    "list": DataType("ARRAY", element=DataType("STRING")),
    "map": DataType("MAP", key=DataType("STRING", nullable=False), element=DataType("INT")),
    "row": DataType(
        "ROW", fields=(RowField("x", DataType("INT")), RowField("y", DataType("STRING")))
    ),
}  # fmt: skip
UTC = datetime.UTC
AVRO_ROW = {
    "id": 1, "s": "ä", "i": -7, "b": True, "d": 0.5, "f": 1.5, "amount": "-12.34",
    "day": "2020-02-29", "at": "2020-01-01 00:00:00.123", "fine": "2020-01-01 00:00:00.123456",
    "time": "10:00:00.5", "raw": "AP8=", "list": ["a", None], "map": {"k": 1, "n": None},
    "row": {"x": 1, "y": None},
}  # fmt: skip
AVRO_VALUE = AVRO_ROW | {
    "amount": decimal.Decimal("-12.34"),
    "day": datetime.date(2020, 2, 29),
    "at": datetime.datetime(2020, 1, 1, 0, 0, 0, 123000, UTC),
    "fine": datetime.datetime(2020, 1, 1, 0, 0, 0, 123456, UTC),
    "time": datetime.time(10, 0, 0, 500000),
    "raw": b"\x00\xff",
}


def avro_format(schema_id: int, columns: dict[str, DataType]) -> dict[str, Any]:
    schema = avro_schema(RowField(n, t) for n, t in columns.items())
    return {"name": "avro-confluent", "options": {"schema": schema, "schema-id": str(schema_id)}}


def read_avro(data: bytes | None, format_: dict[str, Any]) -> Any:
    assert data is not None
    assert data[:5] == b"\x00" + int(format_["options"]["schema-id"]).to_bytes(4, "big")
    rest = io.BytesIO(data[5:])
    value = fastavro.schemaless_reader(rest, json.loads(format_["options"]["schema"]), None)
    assert rest.read() == b""
    return value


def test_avro(jvm: Any) -> None:
    key = avro_format(7, {"id": AVRO_COLUMNS["id"]})
    value = avro_format(2**31 - 1, AVRO_COLUMNS)
    columns = {n: "TIME" if t.name == "TIME" else t.spark_json() for n, t in AVRO_COLUMNS.items()}
    sink = UPSERT | {"keyFormat": key, "valueFormat": value}
    nothing = {"id": 2}
    got = write(jvm, sink, columns, ("+I", AVRO_ROW), ("+I", nothing), ("-D", nothing))
    read = [(read_avro(k, key), v and read_avro(v, value)) for k, v in got.records]
    assert read == [
        ({"id": 1}, AVRO_VALUE),
        ({"id": 2}, dict.fromkeys(AVRO_COLUMNS) | nothing),
        ({"id": 2}, None),
    ]

"""Values of Debezium's types in columns, on the recorded bytes and beside them."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.debezium.test_truths import ISO, SCHEMA, recorded_in
from tests.kernel.tables import Outcome, Record, TableScan

TEXTS = {
    "c_num": "12345.6789", "c_num_38_10": "1234567890123456789012345678.0123456789",
    "c_money": "1234.56", "c_bytea": "AP8Q", "c_date": "2026-02-03", "c_time": "04:05:06.789012",
    "c_time3": "04:05:06.789", "c_timetz": "02:05:06.789012Z",
    "c_ts": "2026-02-03T04:05:06.789012", "c_ts3": "2026-02-03T04:05:06.789",
    "c_tstz": "2026-02-03T02:05:06.789012Z", "c_interval": "PT10303H5M6.78S",
    "c_bit12": "101000000001", "c_bit1": "true", "c_int8": "9223372036854775807",
    "c_float8": "0.1", "c_int_arr": "[1,2,3]", "c_enum": "happy", "c_char": "ab  ",
    "c_uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "nn_ts": "2026-03-01T12:00:00",
}  # fmt: skip


def of_schema(jvm: Any, table: str, offset: int, columns: Any) -> Outcome:
    record = recorded_in("json_schema", table)[offset]
    return TableScan(columns, "debezium-json", SCHEMA, "retract").read(jvm, record)


@pytest.mark.parametrize("column", TEXTS)
def test_every_type_as_text(jvm: Any, column: str) -> None:
    """STRING takes each type without loss."""
    assert of_schema(jvm, "wide", 0, {column: "string"}).rows == [["+I", TEXTS[column]]]


@pytest.mark.parametrize(
    ("offset", "column", "type_", "text"),
    [
        (0, "d", "date", "infinity"),
        (1, "d", "date", "-infinity"),
        (0, "ts", "TIMESTAMP(6)", "infinity"),
        (1, "ts", "TIMESTAMP(6)", "-infinity"),
        (0, "ts3", "TIMESTAMP(3)", "infinity"),
        (1, "ts3", "TIMESTAMP(3)", "-infinity"),
        (0, "tstz", "timestamp", "infinity"),
        (1, "tstz", "timestamp", "-infinity"),
    ],
)
def test_infinite_times(jvm: Any, offset: int, column: str, type_: str, text: str) -> None:
    """No instant is made of an infinity; its text and its number can be had."""
    assert of_schema(jvm, "special", offset, {column: type_}).rejects == ["debezium-infinity"]
    assert of_schema(jvm, "special", offset, {column: "string"}).rows == [["+I", text]]
    unit = "millis" if column == "ts3" else "micros"
    bare = recorded_in("json", "special")[offset]
    scan = TableScan({column: type_}, "debezium-json", ISO, "retract",
                     debezium={"timestampUnit": unit})  # fmt: skip
    assert scan.read(jvm, bare).rejects == ["debezium-infinity"]


def test_infinite_floats_and_nan(jvm: Any) -> None:
    for offset, text in enumerate(("Infinity", "-Infinity", "NaN")):
        columns = {"f4": "float", "f8": "double"}
        assert of_schema(jvm, "special", offset, columns).rows == [["+I", text, text]]


def test_end_of_the_day(jvm: Any) -> None:
    """24:00:00 is no time of day, but a text and a number."""
    assert of_schema(jvm, "special", 0, {"t": "TIME"}).rejects == ["value-out-of-range"]
    assert of_schema(jvm, "special", 0, {"t": "string"}).rows == [["+I", "24:00:00"]]
    assert of_schema(jvm, "special", 0, {"t": "long"}).rows == [["+I", 86_400_000_000]]


def test_times_before_christ_and_far(jvm: Any) -> None:
    columns = {"d": "date", "ts": "TIMESTAMP(6)", "ts3": "TIMESTAMP(3)", "tstz": "timestamp"}
    for offset, day in ((3, "-0043-03-15T12:00:00.000"), (5, "1582-10-10T00:00:00.000")):
        row = of_schema(jvm, "special", offset, columns).rows[0]
        assert row[1:] == [day[: day.index("T")], day, day, day]
    assert of_schema(jvm, "special", 4, columns).rows[0][2] == "9999-12-31T23:59:59.999999"


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("decimal(38,2)", "99999999999999999999999999999.99"),
        ("decimal(38,4)", "99999999999999999999999999999.9900"),
        ("string", "99999999999999999999999999999.99"),
        ("decimal(30,2)", None),
    ],
)
def test_large_decimals(jvm: Any, type_: str, expected: str | None) -> None:
    """What has too many digits is refused and never NULL."""
    got = of_schema(jvm, "orders", 1, {"price": type_})
    assert got.rejects == ([] if expected else ["value-out-of-range"])
    assert got.rows == ([["+I", expected]] if expected else [])


def test_decimal_of_more_than_38_digits(jvm: Any) -> None:
    """`money` is DECIMAL(64, 2) in schemas; its values are what counts."""
    digits = 10**44 + 7
    payload = {"op": "c", "after": {"c": _base64(digits)}}
    record = Record(json.dumps({"schema": _schema("bytes", _DECIMAL), "payload": payload}).encode())
    wide = TableScan({"c": "decimal(38,2)"}, "debezium-json", SCHEMA, "retract")
    assert wide.read(jvm, record).rejects == ["value-out-of-range"]
    text = TableScan({"c": "string"}, "debezium-json", SCHEMA, "retract")
    assert text.read(jvm, record).rows == [["+I", f"1{0:042d}.07"]]


@pytest.mark.parametrize("offset", [0, 2])
def test_decimals_of_variable_scale(jvm: Any, offset: int) -> None:
    """NUMERIC without a scale: each value brings its own."""
    raw = json.loads(recorded_in("json", "wide")[offset].value or b"")["after"]["c_num"]
    text = of_schema(jvm, "wide", offset, {"c_num": "string"}).rows[0][1]
    assert len(text.partition(".")[2]) == raw["scale"]
    fixed = of_schema(jvm, "wide", offset, {"c_num": "decimal(38,10)"}).rows[0][1]
    assert Decimal(fixed) == Decimal(text)


@pytest.mark.parametrize("scale", [2147483647, -2147483648, 200_000])
def test_scales_without_end(jvm: Any, scale: int) -> None:
    """A scale that would take gigabytes to write out is refused."""
    value = {"scale": scale, "value": "AQ=="}
    record = Record(json.dumps({"op": "c", "after": {"c": value}}).encode())
    scan = TableScan({"c": "decimal(38,2)"}, "debezium-json", {}, "retract",
                     debezium={"decimals": "base64"})  # fmt: skip
    assert scan.read(jvm, record).rejects == ["value-out-of-range"]


@pytest.mark.parametrize("text", ["1e1000000000", '"1e1000000000"'])
@pytest.mark.parametrize("format_", ["json", "debezium-json"])
def test_exponents_without_end(jvm: Any, format_: str, text: str) -> None:
    value = f'{{"op":"c","after":{{"c":{text}}},"c":{text}}}'
    scan = TableScan(
        {"c": "decimal(38,2)"}, format_, {}, "append" if format_ == "json" else "retract"
    )
    got = scan.read(jvm, Record(value.encode()))
    if format_ == "json":
        assert got.rows == [["+I", None]]
    else:
        assert got.rejects == ["value-out-of-range"]


@pytest.mark.parametrize("format_", ["json", "debezium-json"])
def test_digits_without_end(jvm: Any, format_: str) -> None:
    """The time to read a text of digits grows with their square."""
    text = "9" * 1_000_000
    record = Record(json.dumps({"op": "c", "after": {"c": text}, "c": text}).encode())
    scan = TableScan(
        {"c": "decimal(38,2)"}, format_, {}, "append" if format_ == "json" else "retract"
    )
    assert scan.read(jvm, record).rejects == ["json-field-malformed"]


def test_bits_and_bytes(jvm: Any) -> None:
    """Bits come least significant byte first; their text has them as PostgreSQL prints them."""
    columns = {"c_bit1": "boolean", "c_bit12": "binary", "c_bytea": "binary"}
    assert of_schema(jvm, "wide", 0, columns).rows == [["+I", True, "AQo=", "AP8Q"]]


def test_intervals(jvm: Any) -> None:
    assert of_schema(jvm, "wide", 0, {"c_interval": "long"}).rows == [["+I", 37091106780000]]


def test_enums_uuids_and_documents_are_texts(jvm: Any) -> None:
    columns = dict.fromkeys(("c_enum", "c_uuid", "c_json", "c_jsonb", "c_xml", "c_inet"), "string")
    after = json.loads(recorded_in("json", "wide")[0].value or b"")["after"]
    assert of_schema(jvm, "wide", 0, columns).rows == [["+I", *(after[c] for c in columns)]]


def test_arrays(jvm: Any) -> None:
    elements = {"c_text_arr": "string", "c_int_arr": "integer", "c_num_arr": "decimal(10,2)"}
    columns = {
        n: {"type": "array", "elementType": t, "containsNull": True} for n, t in elements.items()
    }
    assert of_schema(jvm, "wide", 0, columns).rows == [
        ["+I", ["x", None, "y,z"], [1, 2, 3], ["1.10", "-2.25"]]
    ]


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        ("c_ts", "date"), ("c_date", "TIMESTAMP(3)"), ("c_tstz", "TIMESTAMP(3)"),
        ("c_num", "long"), ("c_bool", "integer"), ("c_int4", "TIMESTAMP(3)"),
        ("c_text_arr", "binary"),
    ],
)  # fmt: skip
def test_types_that_do_not_fit(jvm: Any, column: str, type_: str) -> None:
    """What the schema says and the table does not is refused and not guessed."""
    assert of_schema(jvm, "wide", 0, {column: type_}).rejects == ["connect-schema-mismatch"]


@pytest.mark.parametrize(("type_", "told"), [("TIME", "TIME"), ("binary", "BYTES")])
def test_types_that_do_not_fit_are_called_as_in_sql(jvm: Any, type_: str, told: str) -> None:
    (headers,) = of_schema(jvm, "wide", 0, {"c_bool": type_}).dead_letter_headers
    message = dict(headers)["__connect.errors.exception.message"].decode()
    assert message == f"'c_bool': the record's schema has boolean, the table {told}"


@pytest.mark.parametrize(
    ("column", "type_", "unit", "expected"),
    [
        ("c_ts", "TIMESTAMP(6)", "micros", "2026-02-03T04:05:06.789012"),
        ("c_ts3", "TIMESTAMP(3)", "millis", "2026-02-03T04:05:06.789"),
        ("c_time", "TIME", "micros", 14706789),
        ("c_time3", "TIME", "millis", 14706789),
        ("c_date", "date", None, "2026-02-03"),
    ],
)
def test_bare_numbers_in_time_columns(
    jvm: Any, column: str, type_: str, unit: str | None, expected: object
) -> None:
    """Without a schema nothing says what a number counts, but for the days of a DATE."""
    record = recorded_in("json", "wide")[0]
    told = TableScan({column: type_}, "debezium-json", ISO, "retract",
                     debezium={"timestampUnit": unit})  # fmt: skip
    assert told.read(jvm, record).rows == [["+I", expected]]
    untold = TableScan({column: type_}, "debezium-json", ISO, "retract")
    rejects = [] if column == "c_date" else ["json-field-malformed"]
    assert untold.read(jvm, record).rejects == rejects


def test_base64_decimals_need_the_option(jvm: Any) -> None:
    """The column's own scale is that of the database's column."""
    record = recorded_in("json", "orders")[0]
    column = {"price": "decimal(32,2)"}
    told = TableScan(column, "debezium-json", ISO, "retract", debezium={"decimals": "base64"})
    assert told.read(jvm, record).rows == [["+I", "10.50"]]
    untold = TableScan(column, "debezium-json", ISO, "retract")
    assert untold.read(jvm, record).rejects == ["json-field-malformed"]


_DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2", "connect.decimal.precision": "64"},
}


def _schema(kind: str, extra: dict[str, Any]) -> dict[str, Any]:
    column = {"type": kind, "optional": True, "field": "c", **extra}
    row = {"type": "struct", "fields": [column], "optional": True}
    return {"type": "struct", "fields": [row | {"field": "before"}, row | {"field": "after"}]}


def _base64(number: int) -> str:
    return base64.b64encode(number.to_bytes(32, "big", signed=True)).decode()

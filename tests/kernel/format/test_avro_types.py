"""Types that Kafka Connect and Debezium name, in the columns that may hold them."""

import datetime
import decimal
from typing import Any

import pytest

from tests.kernel.conftest import SchemaIds
from tests.kernel.format.avro_records import (
    avro,
    debezium,
    framed,
    record_schema,
    use_recorded_schemas,
)
from tests.kernel.tables import recorded

TIME = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."
DATA = "io.debezium.data."
NOON = datetime.time(12)
DAY = (datetime.date(2026, 2, 3) - datetime.date(1970, 1, 1)).days
AT = 1_770_091_506_789_012_345  # 2026-02-03T04:05:06.789012345 in nanoseconds
OF_DAY = 14_706_789_012_345
FOREVER = 9_223_372_036_825_200


def named(type_: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": type_, "connect.name": name, "connect.parameters": parameters}


def one(jvm: Any, schema_ids: SchemaIds, written: Any, value: Any, type_: Any) -> Any:
    """The column's value, or the reason of the reject."""
    records = framed(schema_ids, record_schema(("c", written)), {"c": value})
    got = avro(schema_ids, {"c": type_}).read(jvm, *records)
    return got.rejects[0] if got.rejects else got.rows[0][1]


@pytest.mark.parametrize(
    ("written", "value", "type_", "expected"),
    [
        (named("int", f"{TIME}Date"), DAY, "date", "2026-02-03"),
        (named("int", f"{TIME}Date"), DAY, "string", "2026-02-03"),
        (named("int", f"{TIME}Date"), DAY, "integer", DAY),
        (named("int", f"{CONNECT}Date"), DAY, "date", "2026-02-03"),
        (named("int", f"{TIME}Time"), 14_706_789, "TIME", 14_706_789),
        (named("int", f"{CONNECT}Time"), 14_706_789, "TIME", 14_706_789),
        (named("long", f"{TIME}MicroTime"), OF_DAY // 1000, "TIME", 14_706_789),
        (named("long", f"{TIME}MicroTime"), OF_DAY // 1000, "string", "04:05:06.789012"),
        (named("long", f"{TIME}NanoTime"), OF_DAY, "TIME", 14_706_789),
        (named("long", f"{TIME}Timestamp"), AT // 10**6, "TIMESTAMP(3)", "2026-02-03T04:05:06.789"),
        (named("long", f"{CONNECT}Timestamp"), AT // 10**6, "TIMESTAMP(3)",
         "2026-02-03T04:05:06.789"),
        (named("long", f"{TIME}MicroTimestamp"), AT // 1000, "TIMESTAMP(6)",
         "2026-02-03T04:05:06.789012"),
        (named("long", f"{TIME}NanoTimestamp"), AT, "TIMESTAMP(6)", "2026-02-03T04:05:06.789012"),
        (named("long", f"{TIME}MicroTimestamp"), AT // 1000, "string",
         "2026-02-03T04:05:06.789012"),
        (named("long", f"{TIME}MicroTimestamp"), AT // 1000, "long", AT // 1000),
        (named("string", f"{TIME}ZonedTimestamp"), "2026-02-03T04:05:06.789012Z", "timestamp",
         "2026-02-03T04:05:06.789012"),
        (named("string", f"{TIME}ZonedTimestamp"), "-0043-03-15T12:00:00.000000Z", "string",
         "-0043-03-15T12:00:00.000000Z"),
        (named("string", f"{TIME}ZonedTime"), "04:05:06.789Z", "TIME", 14_706_789),
        (named("string", f"{TIME}IsoDate"), "2026-02-03Z", "date", "2026-02-03"),
        (named("string", f"{TIME}IsoTime"), "04:05:06.789Z", "TIME", 14_706_789),
        (named("string", f"{TIME}IsoTimestamp"), "2026-02-03T04:05:06.789Z", "TIMESTAMP(3)",
         "2026-02-03T04:05:06.789"),
        (named("int", f"{TIME}Year"), 2026, "integer", 2026),
        (named("string", f"{TIME}Interval"), "P1Y2M3DT4H5M6.78S", "string", "P1Y2M3DT4H5M6.78S"),
        (named("long", f"{TIME}MicroDuration"), 37_091_106_780_000, "long", 37_091_106_780_000),
        (named("long", f"{TIME}MicroDuration"), 37_091_106_780_000, "string", "PT10303H5M6.78S"),
        (named("long", f"{TIME}NanoDuration"), 1, "long", 1),
        (named("string", f"{DATA}Enum", allowed="a,b"), "a", "string", "a"),
        (named("string", f"{DATA}Json"), '{"a": 1}', "string", '{"a": 1}'),
        (named("string", f"{DATA}Uuid"), "a0eebc99-9c0b", "string", "a0eebc99-9c0b"),
        (named("string", f"{DATA}Xml"), "<a/>", "string", "<a/>"),
        (named("string", f"{DATA}Ltree"), "a.b", "string", "a.b"),
        (named("bytes", f"{DATA}Bits", length="12"), b"\x01\x0a", "binary", "AQo="),
        (named("bytes", f"{DATA}Bits", length="12"), b"\x01\x0a", "string", "101000000001"),
        ("float", float("inf"), "float", "Infinity"),
        (named("int", f"{TIME}Date"), -735160, "date", "-0043-03-15"),
        (named("int", f"{TIME}Date"), 2932896, "date", "9999-12-31"),
        (named("int", f"{TIME}Date"), -2147472692, "string", "infinity"),
        (named("int", f"{TIME}Date"), -2147472691, "string", "-infinity"),
        (named("long", f"{TIME}MicroTimestamp"), FOREVER * 1000, "string", "infinity"),
        (named("long", f"{TIME}MicroTime"), 86_400_000_000, "string", "24:00:00"),
        (named("long", f"{TIME}MicroTime"), -1, "string", "-00:00:00.000001"),
        (named("long", f"{TIME}MicroTime"), -3_020_399_000_000, "string", "-838:59:59"),
        (named("string", f"{TIME}ZonedTimestamp"), "infinity", "string", "infinity"),
        (["null", named("int", f"{TIME}Date")], None, "string", None),
    ],
)  # fmt: skip
def test_named_type(jvm: Any, schema_ids: SchemaIds, written: Any, value: Any, type_: Any,
                    expected: Any) -> None:  # fmt: skip
    assert one(jvm, schema_ids, written, value, type_) == expected


@pytest.mark.parametrize(
    ("written", "value", "type_", "reason"),
    [
        (named("int", f"{TIME}Date"), -2147472692, "date", "debezium-infinity"),
        (named("int", f"{TIME}Date"), -2147472691, "date", "debezium-infinity"),
        (named("long", f"{TIME}MicroTimestamp"), FOREVER * 1000, "TIMESTAMP(6)",
         "debezium-infinity"),
        (named("long", f"{TIME}Timestamp"), FOREVER, "TIMESTAMP(3)", "debezium-infinity"),
        (named("long", f"{TIME}Timestamp"), -9_223_372_036_832_400, "TIMESTAMP(3)",
         "debezium-infinity"),
        (named("string", f"{TIME}ZonedTimestamp"), "-infinity", "timestamp", "debezium-infinity"),
        (named("long", f"{TIME}MicroTime"), 86_400_000_000, "TIME", "value-out-of-range"),
        (named("int", f"{TIME}Time"), 86_400_000, "TIME", "value-out-of-range"),
        (named("string", f"{TIME}ZonedTimestamp"), "noon", "timestamp", "value-out-of-range"),
        (named("string", f"{TIME}ZonedTimestamp"), "+294276-12-31T23:59:59Z", "timestamp",
         "value-out-of-range"),
        (named("string", f"{TIME}IsoTimestamp"), "+294276-12-31T23:59:59", "TIMESTAMP(6)",
         "value-out-of-range"),
        (named("string", f"{TIME}IsoDate"), "+999999999-12-31Z", "date", "value-out-of-range"),
        ("string", "+294276-12-31T23:59:59Z", "timestamp", "value-out-of-range"),
        (named("string", f"{TIME}ZonedTimestamp"), "2026-01-01T00:00:00Z", "TIMESTAMP(3)",
         "avro-schema-mismatch"),
        (named("string", f"{DATA}Json"), "{}", "integer", "avro-schema-mismatch"),
        ("long", 2**63 - 1, "TIMESTAMP(3)", "value-out-of-range"),
    ],
)  # fmt: skip
def test_what_no_column_holds(jvm: Any, schema_ids: SchemaIds, written: Any, value: Any,
                              type_: Any, reason: str) -> None:  # fmt: skip
    assert one(jvm, schema_ids, written, value, type_) == reason


def money(digits: str) -> tuple[dict[str, Any], decimal.Decimal]:
    """PostgreSQL's money is more than any DECIMAL holds: decimal(64, 2)."""
    size = {"precision": 64, "scale": 2}
    return {"type": "bytes", "logicalType": "decimal", **size}, decimal.Decimal(digits)


@pytest.mark.parametrize("digits", ["0.00", "-1234.50", f"{'9' * 40}.99"])
def test_decimal_beyond_38_digits(jvm: Any, schema_ids: SchemaIds, digits: str) -> None:
    written, value = money(digits)
    fits = len(digits) < 38
    assert one(jvm, schema_ids, written, value, "string") == digits
    got = one(jvm, schema_ids, written, value, "decimal(38,2)")
    assert got == (digits if fits else "value-out-of-range")


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [(123456789, 4, "12345.6789"), (-5, 0, "-5"), (1, -3, "1000"), (7, 50, "0." + "0" * 49 + "7")],
)
def test_decimal_of_varying_scale(
    jvm: Any, schema_ids: SchemaIds, unscaled: int, scale: int, text: str
) -> None:
    written = record_schema(("scale", "int"), ("value", "bytes"), name="VariableScaleDecimal")
    size = unscaled.bit_length() // 8 + 1
    value = {"scale": scale, "value": unscaled.to_bytes(size, "big", signed=True)}
    assert one(jvm, schema_ids, written, value, "string") == text
    rounded = one(jvm, schema_ids, written, value, "decimal(20,4)")
    assert decimal.Decimal(rounded) == round(decimal.Decimal(text), 4)


SPECIAL = {
    "id": "integer", "f4": "float", "f8": "double", "d": "string", "t": "string", "ts": "string",
    "ts3": "string", "tstz": "string",
}  # fmt: skip


def test_recorded_special_values_as_text(jvm: Any, schema_ids: SchemaIds) -> None:
    use_recorded_schemas(schema_ids)
    got = debezium(schema_ids, SPECIAL, "id").read(
        jvm, *recorded("avro/shopavro.public.special.jsonl")
    )
    endless = ["infinity", "24:00:00", "infinity", "infinity", "infinity"]
    assert got.rejects == []
    assert got.rows[0] == ["+U", 1, "Infinity", "Infinity", *endless]
    assert got.rows[1][4:] == ["-infinity", "00:00:00", *["-infinity"] * 3]
    assert got.rows[2][1:4] == [3, "NaN", "NaN"]
    assert got.rows[3][4:] == [
        "-0043-03-15", "23:59:59.999999", "-0043-03-15T12:00:00", "-0043-03-15T12:00:00",
        "-0043-03-15T12:00:00.000000Z",
    ]  # fmt: skip
    assert got.rows[4][6:8] == ["9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999"]
    assert got.rows[5][4] == "1582-10-10"

"""Messages that Google's library has written as rows, and bytes that are no messages."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.formats.protobuf import layout
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type
from tests.kernel.tables import Record, TableScan

FIXTURES = Path(__file__).parents[2] / "fixtures" / "protobuf"
RECORDS = {
    name: base64.b64decode(text)
    for name, text in json.loads((FIXTURES / "records.json").read_text()).items()
}
ROWS = {
    "long": "BIGINT", "integer": "INT", "string": "STRING", "double": "DOUBLE", "float": "FLOAT",
    "boolean": "BOOLEAN", "binary": "BYTES", "timestamp": "TIMESTAMP_LTZ(6)",
    "TIMESTAMP(6)": "TIMESTAMP(6)", "decimal(20,0)": "DECIMAL(20, 0)", "byte": "TINYINT",
}  # fmt: skip
FIRST = b"\0\0\0\0\x05"


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def row(**fields: Any) -> dict[str, Any]:
    named = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields.items()]
    return {"type": "struct", "fields": named}


def sql(type_: Any) -> str:
    if isinstance(type_, str):
        return ROWS[type_]
    match type_["type"]:
        case "array":
            return f"ARRAY<{sql(type_['elementType'])}>"
        case "map":
            return f"MAP<{sql(type_['keyType'])}, {sql(type_['valueType'])}>"
    fields = [f"{field['name']} {sql(field['type'])}" for field in type_["fields"]]
    return f"ROW<{', '.join(fields)}>"


def scan(
    columns: dict[str, Any], format_: str = "protobuf", message: str = "shop.Order", **options: str
) -> TableScan:
    fields = [RowField(name, parse_type(sql(type_))) for name, type_ in columns.items()]
    found = layout(str(FIXTURES / "shop.desc"), message, fields)
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return TableScan(columns, format_, {"layout": found, **given})


COUNTS = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}


@pytest.mark.parametrize(
    ("field", "type_", "full", "empty"),
    [
        ("id", "long", -7, 0),
        ("customer", "string", "Zoë", ""),
        ("amount", "double", 7.25, 0.0),
        ("paid", "boolean", True, False),
        ("status", "string", "CLOSED", "UNKNOWN"),
        ("status", "byte", 2, 0),
        ("address", row(floor="integer", city="string"), [0, "Oslo"], None),
        ("tags", array("string"), ["a", ""], None),
        ("deltas", array("long"), [-1, 2, -2147483648], None),
        ("counts", COUNTS, {"x": 1, "": -5}, None),
        ("token", "binary", "AP8=", ""),
        ("created", "timestamp", "2024-01-01T12:00:00.123456", None),
        ("created", "TIMESTAMP(6)", "2024-01-01T12:00:00.123456", None),
        ("discount", "long", 4294967295, None),
        ("shop", "string", None, None),
        ("web", "decimal(20,0)", "18446744073709551615", None),
        ("large", "decimal(20,0)", "18446744073709551615", "0"),
        ("share", "double", 0.5, 0.0),
        ("offset", "integer", -3, 0),
        ("items", array(row(number="integer", gift=row(id="long"))), [[1, [9]], [0, None]], None),
    ],
)
def test_every_kind_of_field(jvm: Any, field: str, type_: Any, full: object, empty: object) -> None:
    got = scan({field: type_}).read(jvm, Record(RECORDS["full"]), Record(RECORDS["empty"]))
    assert got.rows == [["+I", full], ["+I", empty]]


def test_what_a_message_tells_of_fields_that_are_not_there(jvm: Any) -> None:
    columns = {"discount": "integer", "shop": "string", "tags": array("string"), "status": "string"}
    records = [Record(RECORDS[name]) for name in ("optional_zero", "empty", "unknown_enum")]
    got = scan(columns).read(jvm, *records)
    assert got.rows == [
        ["+I", 0, "", None, "UNKNOWN"],
        ["+I", None, None, None, "UNKNOWN"],
        ["+I", None, None, None, "9"],
    ]
    filled = scan(columns, read_default_values="true").read(jvm, records[1])
    assert filled.rows == [["+I", 0, "", [], "UNKNOWN"]]


def test_occurrences_of_a_field(jvm: Any) -> None:
    """The last value counts, messages are merged, numbers may be packed or not."""
    twice = (
        b"\x08\x01\x08\x02"
        + b"\x32\x06\x0a\x04Oslo"
        + b"\x32\x02\x10\x05"
        + b"\x40\x01\x42\x02\x02\x03"
    )
    columns = {
        "id": "long",
        "address": row(city="string", floor="integer"),
        "deltas": array("long"),
    }
    got = scan(columns).read(jvm, Record(twice))
    assert got.rows == [["+I", 2, ["Oslo", 5], [-1, 1, -2]]]


def test_unknown_fields_are_skipped(jvm: Any) -> None:
    group = b"\xa3\x06\x08\x01\xab\x06\xac\x06\xa4\x06"  # group 100 with group 101 in it
    other_wire = b"\x0d\x01\x00\x00\x00"  # field 1 as a fixed32
    value = b"\x98\x06\x07" + group + other_wire + b"\x08\x07"
    assert scan({"id": "long"}).read(jvm, Record(value)).rows == [["+I", 7]]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (RECORDS["optional_zero"][:-1], "protobuf-malformed"),
        (b"\x08", "protobuf-malformed"),
        (b"\x08" + b"\xff" * 11, "protobuf-malformed"),
        (b"\x12\x05ab", "protobuf-malformed"),
        (b"\x12\x02\xff\xfe", "protobuf-malformed"),
        (b"\x00\x01", "protobuf-malformed"),
        (b"\x0f", "protobuf-malformed"),
        (b"\x0b\x08\x01", "protobuf-malformed"),
        (b"\x88\x01" + b"\xff" * 9 + b"\x01", "value-out-of-range"),
    ],
)
def test_bytes_that_are_no_message(jvm: Any, value: bytes, reason: str) -> None:
    columns = {"id": "long", "customer": "string", "large": "long"}
    got = scan(columns).read(jvm, Record(value), Record(b"\x08\x07"))
    assert (got.rows, got.rejects) == ([["+I", 7, "", 0]], [reason])
    lenient = scan(columns, ignore_parse_errors="true").read(jvm, Record(value))
    assert lenient.rejects == ([] if reason == "protobuf-malformed" else [reason])


def test_random_damage_is_a_bad_record_or_another_row(jvm: Any) -> None:
    drawn = random.Random(5)  # noqa: S311
    broken = []
    for _ in range(2_000):
        data = bytearray(RECORDS["full"])
        for _ in range(drawn.randint(1, 4)):
            data[drawn.randrange(len(data))] = drawn.randrange(256)
        broken.append(Record(bytes(data[: drawn.randint(1, len(data))])))
    columns = {"id": "long", "items": array(row(number="integer")), "counts": COUNTS, "web": "long"}
    got = scan(columns).read(jvm, *broken)
    assert len(got.rows) + len(got.rejects) == len(broken)
    assert set(got.rejects) <= {"protobuf-malformed", "value-out-of-range"}


def test_a_message_behind_its_schema_id(jvm: Any) -> None:
    order = RECORDS["full"]
    wanted = scan({"id": "long"}, "proto-registry")
    records = [
        Record(FIRST + b"\x02\x02" + order),  # one number: the second message of the file
        Record(FIRST + b"\x00" + order),  # the first message
        Record(FIRST + b"\x04\x02\x02" + order),  # a message within the second one
        Record(order),
        Record(FIRST),
    ]
    got = wanted.read(jvm, *records)
    assert got.rows == [["+I", -7]]
    assert got.rejects == [*["protobuf-bad-framing"] * 3, "protobuf-malformed"]
    first = scan({"nothing": "integer"}, "proto-registry", "shop.Ignored")
    assert first.read(jvm, Record(FIRST + b"\x00\x08\x05")).rows == [["+I", 5]]

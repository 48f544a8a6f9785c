"""Messages that Google's library has written as rows, and rows as the bytes that it writes."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from spark_jobs.formats.protobuf import layout
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type
from tests.kernel.tables import Record, TableScan, through, write

FIXTURES = Path(__file__).parents[2] / "fixtures" / "protobuf"
RECORDS = {
    name: base64.b64decode(text)
    for name, text in json.loads((FIXTURES / "records.json").read_text()).items()
}
WRITTEN = {
    name: (found["type"], base64.b64decode(found["bytes"]))
    for name, found in json.loads((FIXTURES / "written.json").read_text()).items()
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


def sink(
    columns: dict[str, Any], message: str = "written.Every", file: str = "written.desc"
) -> dict[str, Any]:
    """The options of a sink's format."""
    fields = [RowField(name, parse_type(sql(type_))) for name, type_ in columns.items()]
    found = layout(str(FIXTURES / file), message, fields)
    return {"name": "protobuf", "options": {"layout": found}}


WIDE = "decimal(20,0)"
PART = row(name="string", there="boolean", sizes=array("integer"))
BY_NUMBER = {"type": "map", "keyType": "integer", "valueType": PART, "valueContainsNull": True}
EVERY: dict[str, Any] = {
    "web": "string", "a_int32": "integer", "a_int64": "long", "a_uint32": "long",
    "a_uint64": WIDE, "a_sint32": "integer", "a_sint64": WIDE, "a_fixed32": "long",
    "a_fixed64": WIDE, "a_sfixed32": "integer", "a_sfixed64": "long", "a_bool": "boolean",
    "a_float": "float", "a_double": "double", "a_string": "string", "a_bytes": "binary",
    "a_kind": "string", "a_time": "timestamp", "a_part": PART, "told": "integer",
    "numbers": array("long"), "doubles": array("double"), "texts": array("string"),
    "parts": array(PART), "counts": COUNTS, "by_number": BY_NUMBER, "kinds": array("string"),
    "times": array("timestamp"), "shop": "string",
}  # fmt: skip
LEGACY: dict[str, Any] = {
    "id": "long", "name": "string", "loose": array("integer"), "packed": array("integer"),
    "kind": "string", "kinds": array("string"), "parts": array(row(number="integer")),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in WRITTEN if "null" not in n])
def test_rows_are_written_as_google_writes_them(jvm: Any, name: str) -> None:
    """A message that is read and written again has the same bytes; columns stand in any order."""
    message, encoded = WRITTEN[name]
    columns = EVERY if message == "written.Every" else LEGACY
    written = sink(columns, message)
    scanned = TableScan(columns, "protobuf", written["options"])
    got = through(jvm, {"valueFormat": written}, scanned, Record(encoded))
    assert (got.records, got.rejects) == ([(None, encoded)], [])


def test_nulls_in_arrays_and_maps_are_defaults(jvm: Any) -> None:
    columns = {n: EVERY[n] for n in ("numbers", "texts", "parts", "counts", "kinds", "times")}
    rows = {
        "numbers": [1, None], "texts": ["a", None], "parts": [None], "counts": {"k": None},
        "kinds": [None, "SOME"], "times": [None],
    }  # fmt: skip
    got = write(jvm, {"valueFormat": sink(columns)}, columns, ("+I", rows))
    assert got.records == [(None, WRITTEN["null_elements"][1])]
    named = sink({"texts": array("string")})
    named["options"]["write-null-string-literal"] = "-"
    texts = {"texts": array("string")}
    got = write(jvm, {"valueFormat": named}, texts, ("+I", {"texts": [None]}))
    assert got.records == [(None, b"\xb2\x01\x01-")]
    some = {n: LEGACY[n] for n in ("id", "loose", "packed", "kinds")}
    rows = {"id": 1, "loose": [None], "packed": [], "kinds": [None]}
    got = write(jvm, {"valueFormat": sink(some, "written.Legacy")}, some, ("+I", rows))
    assert got.records == [(None, WRITTEN["legacy_nulls"][1])]


def test_upserts_and_tombstones_under_a_message_as_key(jvm: Any) -> None:
    columns = {"id": "long", "name": "string"}
    upsert = {
        "mode": "upsert", "keyFields": ["id"], "keyFormat": sink({"id": "long"}, "written.Legacy"),
        "valueFormat": sink(columns, "written.Legacy"),
    }  # fmt: skip
    rows = [("+I", {"id": 1, "name": "a"}), ("+U", {"id": 1}), ("-D", {"id": 1})]
    got = write(jvm, upsert, columns, *rows)
    assert got.records == [
        (b"\x08\1", b"\x08\1\x1a\1a"),
        (b"\x08\1", b"\x08\1"),
        (b"\x08\1", None),
    ]


@pytest.mark.parametrize(
    ("column", "type_", "value", "says"),
    [
        ("a_uint32", "long", -1, "-1 does not fit a field of type uint32"),
        ("a_uint32", "long", 2**32, "4294967296 does not fit a field of type uint32"),
        ("a_uint64", "long", -1, "-1 does not fit a field of type uint64"),
        ("a_int32", "long", 2**31, "2147483648 does not fit a field of type int32"),
        ("a_sfixed64", WIDE, 2**63, "9223372036854775808 does not fit a field of type sfixed64"),
        ("a_kind", "string", "OTHER", "'OTHER' does not fit a field of type enum"),
    ],
)
def test_values_that_no_field_holds_end_the_job(
    jvm: Any, column: str, type_: str, value: object, says: str
) -> None:
    columns = {column: type_}
    with pytest.raises(Py4JJavaError, match=f"ProtobufValueException: {column}: {says}"):
        write(jvm, {"valueFormat": sink(columns)}, columns, ("+I", {column: value}))

"""JSON and Protobuf behind schema ids, read by Confluent's own deserializers and by our readers."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from py4j.protocol import Py4JJavaError

from spark_jobs.formats.columns import with_columns
from spark_jobs.formats.json_schema import json_schema
from spark_jobs.options.formats import FORMATS, Format
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type
from tests.kernel.tables import Record, TableScan, write

SHOP = Path(__file__).parents[2] / "fixtures" / "protobuf" / "shop.desc"
ID = 7
PREFIX = struct.pack(">bi", 0, ID)
CONTEXT = SerializationContext("t", MessageField.VALUE)
EVERY = {
    "id": "BIGINT NOT NULL", "tiny": "TINYINT", "small": "SMALLINT", "number": "INT",
    "there": "BOOLEAN", "f": "FLOAT", "d": "DOUBLE", "amount": "DECIMAL(20, 2)", "name": "STRING",
    "raw": "BYTES", "day": "DATE", "clock": "TIME(0)", "at": "TIMESTAMP(3)",
    "instant": "TIMESTAMP_LTZ(3)", "texts": "ARRAY<STRING>", "counts": "MAP<STRING, INT>",
    "part": "ROW<x INT NOT NULL, inner ROW<y STRING>>", "parts": "ARRAY<ROW<z DOUBLE>>",
}  # fmt: skip
ROW: dict[str, Any] = {
    "id": -1, "tiny": 1, "small": -2, "number": 3, "there": True, "f": 1.5, "d": 1e300,
    "amount": "123456789012345678.90", "name": 'Zoë "q"\n', "raw": "AP8=", "day": "2020-02-29",
    "clock": "10:00:00", "at": "2020-01-01 00:00:00.123", "instant": "2020-01-01 00:00:00.123Z",
    "texts": ["a", None], "counts": {"k": 1, "n": None}, "part": {"x": 1, "inner": {"y": None}},
    "parts": [{"z": 0.5}, None],
}  # fmt: skip


def fields(columns: dict[str, str]) -> list[RowField]:
    return [RowField(name, parse_type(text)) for name, text in columns.items()]


def spark(columns: dict[str, str]) -> dict[str, Any]:
    types = {each.name: each.type for each in fields(columns)}
    return {n: "TIME" if t.name == "TIME" else t.spark_json() for n, t in types.items()}


def written(jvm: Any, declared: Format, columns: dict[str, str], *rows: Any) -> list[bytes]:
    found = {} if declared.registry is None else {"schema-id": str(ID)}
    options = {**declared.texts, **found}
    sink = {"valueFormat": {"name": declared.name, "options": options}}
    given = [("+I", row) for row in rows]
    return [value or b"" for _, value in write(jvm, sink, spark(columns), *given).records]


def as_json(**options: str) -> Format:
    return FORMATS["json-registry"].read({f"json-registry.{n}": v for n, v in options.items()}, "")


@pytest.mark.parametrize("standard", ["SQL", "ISO-8601"])
@pytest.mark.parametrize("leaves_out", ["false", "true"])
def test_json_is_valid_by_its_schema(jvm: Any, standard: str, leaves_out: str) -> None:
    declared = as_json(
        **{"timestamp-format.standard": standard, "encode.ignore-null-fields": leaves_out}
    )
    values = written(jvm, declared, EVERY, ROW, {"id": 2})
    assert all(value.startswith(PREFIX) for value in values)
    read = JSONDeserializer(json_schema(fields(EVERY), standard))
    full, empty = (read(value, CONTEXT) for value in values)
    assert full["id"] == -1
    assert full["amount"] == pytest.approx(123456789012345678.90)
    assert full["part"] == {"x": 1, "inner": {} if leaves_out == "true" else {"y": None}}
    assert [full["name"], full["day"], full["texts"]] == [ROW["name"], ROW["day"], ["a", None]]
    assert {n: v for n, v in empty.items() if v is not None} == {"id": 2}
    assert len(empty) == (1 if leaves_out == "true" else len(EVERY))
    scan = TableScan(spark(EVERY), "json-registry", declared.texts)
    again = scan.read(jvm, *map(Record, values))
    plain = written(jvm, FORMATS["json"].read({}, ""), EVERY, ROW, {"id": 2})
    assert again.rows == TableScan(spark(EVERY)).read(jvm, *map(Record, plain)).rows
    assert again.rows[0][1:9] == [-1, 1, -2, 3, True, 1.5, 1e300, ROW["amount"]]


def test_the_schema_refuses_what_no_row_can_be() -> None:
    """Or the test above proved nothing."""
    read = JSONDeserializer(json_schema(fields(EVERY), "ISO-8601"))
    for wrong in ({"id": "1"}, {}, {"id": 1, "x": 1}, {"id": 1, "parts": [{"z": "a"}]}):
        with pytest.raises(SerializationError):
            read(PREFIX + json.dumps(wrong).encode(), CONTEXT)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_does_not_have(jvm: Any, text: str) -> None:
    columns = {"part": "ROW<d DOUBLE>"}
    assert written(jvm, FORMATS["json"].read({}, ""), columns, {"part": {"d": text}})
    with pytest.raises(Py4JJavaError, match=f"JsonValueException: part: d: {text} is no number"):
        written(jvm, as_json(), columns, {"part": {"d": text}})


def as_protobuf(message: str, columns: dict[str, str], file: Path = SHOP) -> Format:
    texts = {"descriptor-file": str(file), "message-name": message}
    given = {f"proto-registry.{n}": v for n, v in texts.items()}
    return with_columns(FORMATS["proto-registry"].read(given, ""), fields(columns))


def message_class(file: Path, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes()).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


ORDER = {
    "id": "BIGINT", "customer": "STRING", "status": "STRING", "tags": "ARRAY<STRING>",
    "address": "ROW<city STRING, floor INT>", "counts": "MAP<STRING, BIGINT>",
    "created": "TIMESTAMP_LTZ(6)", "discount": "INT", "items": "ARRAY<ROW<number INT>>",
    "token": "BYTES",
}  # fmt: skip
AN_ORDER: dict[str, Any] = {
    "id": 5, "customer": "Zoë", "status": "CLOSED", "tags": ["a", "b"],
    "address": {"city": "Oslo", "floor": 0}, "counts": {"x": 1},
    "created": "2024-01-01 12:00:00.123456Z", "discount": 0, "items": [{"number": 1}],
    "token": "AP8=",
}  # fmt: skip


def test_protobuf_behind_its_schema_id(jvm: Any) -> None:
    declared = as_protobuf("shop.Order", ORDER)
    values = written(jvm, declared, ORDER, AN_ORDER, {"id": 0})
    assert all(value.startswith(PREFIX + b"\2\2") for value in values), "the second of its file"
    kind = message_class(SHOP, "shop.Order")
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False})
    full, empty = (read(value, CONTEXT) for value in values)
    assert json_format.MessageToDict(full, preserving_proto_field_name=True) == {
        **AN_ORDER, "id": "5", "counts": {"x": "1"}, "created": "2024-01-01T12:00:00.123456Z",
    }  # fmt: skip
    assert (empty, empty.HasField("discount")) == (kind(), False)
    scan = TableScan(spark(ORDER), "proto-registry", declared.texts)
    assert scan.read(jvm, *map(Record, values)).rows == [
        [
            "+I", 5, "Zoë", "CLOSED", ["a", "b"], ["Oslo", 0], {"x": 1},
            "2024-01-01T12:00:00.123456", 0, [[1]], "AP8=",
        ],
        ["+I", 0, "", "UNKNOWN", None, None, None, None, None, None, ""],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "place"),
    [("shop.Ignored", b"\0"), ("shop.Order", b"\2\2"), ("shop.Order.Item", b"\4\2\0")],
)
def test_places_of_messages(jvm: Any, message: str, place: bytes) -> None:
    """A message within another one is counted without those that protoc makes of maps."""
    name = "nothing" if message == "shop.Ignored" else "id" if message == "shop.Order" else "number"
    columns = {name: "BIGINT" if name == "id" else "INT"}
    [value] = written(jvm, as_protobuf(message, columns), columns, {name: 1})
    assert value == PREFIX + place + b"\x08\1"


def test_keys_and_tombstones(jvm: Any) -> None:
    key = as_protobuf("shop.Order", {"id": "BIGINT"})
    columns = {"id": "BIGINT NOT NULL", "name": "STRING"}
    sink = {
        "mode": "upsert", "keyFields": ["id"],
        "keyFormat": {"name": key.name, "options": {**key.texts, "schema-id": "8"}},
        "valueFormat": {"name": "json-registry", "options": {"schema-id": str(ID)}},
    }  # fmt: skip
    rows = [(kind, {"id": 1, "name": None}) for kind in ("+I", "-D")]
    got = write(jvm, sink, spark(columns), *rows)
    framed = struct.pack(">bi", 0, 8) + b"\2\2\x08\1"
    assert got.records == [(framed, PREFIX + b'{"id":1,"name":null}'), (framed, None)]

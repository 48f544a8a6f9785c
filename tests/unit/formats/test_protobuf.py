"""The fields of a message that columns are, from a descriptor file that protoc has written."""

import json
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from spark_jobs.errors import FormatError
from spark_jobs.formats.proto_text import proto_text, registered_file
from spark_jobs.formats.protobuf import layout, refuse_unwritable
from spark_jobs.formats.written_schema import Import, WrittenSchema
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type

SHOP = Path(__file__).parents[2] / "fixtures" / "protobuf" / "shop.desc"


def columns(text: str) -> list[RowField]:
    return list(parse_type(f"ROW<{text}>").fields)


def test_fields_by_name() -> None:
    found = json.loads(layout(str(SHOP), "shop.Order", columns("paid BOOLEAN, discount BIGINT")))
    assert found == {
        "places": [[1]],
        "columns": [
            {"name": "paid", "number": 4, "presence": False, "kind": "bool", "default": None},
            {"name": "discount", "number": 12, "presence": True, "kind": "uint32", "default": None},
        ],
    }


def test_messages_within_messages() -> None:
    found = json.loads(
        layout(str(SHOP), ".shop.Order", columns("items ARRAY<ROW<gift ROW<id BIGINT>>>"))
    )
    (items,) = found["columns"]
    assert items["element"]["fields"][0]["fields"][0]["number"] == 1
    nested = json.loads(layout(str(SHOP), "shop.Order.Item", columns("number INT")))
    assert nested["places"] == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("price DOUBLE", "message shop.Order has no field 'price'"),
        ("id INT", "field 'id' is int64, not INT"),
        ("id DECIMAL(10, 2)", "field 'id' is int64, not DECIMAL"),
        ("tags STRING", "field 'tags' is repeated, not STRING"),
        ("counts ARRAY<STRING>", "field 'counts' is a map"),
        ("counts MAP<STRING, STRING>", "field 'value' is int64, not STRING"),
        ("address STRING", "field 'address' is a message shop.Address"),
        ("created STRING", "field 'created' is timestamp, not STRING"),
        ("status DOUBLE", "field 'status' is enum, not DOUBLE"),
    ],
)
def test_columns_that_do_not_fit(column: str, says: str) -> None:
    with pytest.raises(FormatError, match=says) as refused:
        layout(str(SHOP), "shop.Order", columns(column))
    assert refused.value.code == "PROTOBUF_TYPE"
    assert refused.value.hint


WRITTEN = SHOP.with_name("written.desc")


@pytest.mark.parametrize(
    ("message", "fields", "says"),
    [
        ("written.Legacy", "name STRING", "field 'id' of message written.Legacy is required"),
        ("written.Legacy", "id BIGINT", "field 'id' of message written.Legacy is required"),
        (
            "written.Legacy",
            "id BIGINT NOT NULL, parts ARRAY<ROW<number INT>>",
            "field 'number' of message written.Legacy.Part is required",
        ),
        ("written.Every", "a_float DOUBLE", "field 'a_float' is float, not DOUBLE"),
        ("written.Every", "nothing INT", "message written.Every has no field 'nothing'"),
    ],
)
def test_columns_of_which_no_message_can_be_made(message: str, fields: str, says: str) -> None:
    with pytest.raises(FormatError, match=says) as refused:
        refuse_unwritable(str(WRITTEN), message, columns(fields))
    assert refused.value.code == "PROTOBUF_TYPE"
    assert refused.value.hint
    sizes = "a_part ROW<sizes ARRAY<INT>>, by_number MAP<INT, ROW<there BOOLEAN>>, a_float FLOAT"
    refuse_unwritable(str(WRITTEN), "written.Every", columns(sizes))


def test_files_that_are_no_descriptors(tmp_path: Path) -> None:
    wanted = columns("id BIGINT")
    with pytest.raises(FormatError, match=r"shop\.Orders"):
        layout(str(SHOP), "shop.Orders", wanted)
    with pytest.raises(FormatError, match="cannot be read"):
        layout(str(tmp_path / "none"), "shop.Order", wanted)
    for wrong in (b"syntax = 'proto3';", SHOP.read_bytes()[:-1], b"\n\x02\x0a\x01"):
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(FormatError, match="PROTOBUF_DESCRIPTOR"):
            layout(str(tmp_path / "wrong"), "shop.Order", wanted)


def test_a_file_becomes_text_again() -> None:
    """protoc has made the same messages of this text: tests/fixtures/protobuf/README.md."""
    every = SHOP.with_name("every.desc")
    [file] = descriptor_pb2.FileDescriptorSet.FromString(every.read_bytes()).file
    text = every.with_suffix(".proto").read_text(encoding="utf-8")
    assert proto_text(file.SerializeToString()) == text


def test_a_group_is_in_no_schema() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="g.proto")
    message = file.message_type.add(name="M")
    message.nested_type.add(name="G")
    message.field.add(name="g", number=1, type=10, label=1, type_name=".M.G")
    with pytest.raises(FormatError, match=r"PROTOBUF_TYPE.*'g' is a group"):
        proto_text(file.SerializeToString())


def file_of(name: str, message: str, *imports: str) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=name, package="p", syntax="proto3")
    file.dependency.extend(imports)
    file.message_type.add(name=message).field.add(name="id", number=1, type=3, label=1)
    return file


def test_the_file_of_a_message_is_its_schema(tmp_path: Path) -> None:
    """With the files that it imports, but those that every registry has."""
    inner = file_of("inner.proto", "Inner")
    middle = file_of("middle.proto", "Middle", "inner.proto", "google/protobuf/timestamp.proto")
    outer = file_of("outer.proto", "Outer", "middle.proto")
    files = descriptor_pb2.FileDescriptorSet(file=[inner, middle, outer])
    path = tmp_path / "all.desc"
    path.write_bytes(files.SerializeToString())

    def text(file: descriptor_pb2.FileDescriptorProto) -> str:
        return proto_text(file.SerializeToString())

    known = Import("inner.proto", WrittenSchema(text(inner), "PROTOBUF"))
    part = WrittenSchema(text(middle), "PROTOBUF", (known,))
    assert registered_file(str(path), "p.Middle") == part
    whole = registered_file(str(path), "p.Outer")
    assert whole == WrittenSchema(text(outer), "PROTOBUF", (Import("middle.proto", part),))
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[outer]).SerializeToString())
    with pytest.raises(FormatError, match=r"lacks middle\.proto") as refused:
        registered_file(str(path), "p.Outer")
    assert "--include_imports" in (refused.value.hint or "")

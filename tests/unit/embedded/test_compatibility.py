"""Avro's resolution rules, case by case; the oracle for readable data is fastavro itself."""

import io
from typing import Any

import fastavro
import pytest

from spark_jobs.embedded.compatibility import incompatibilities


def problems(reader: Any, writer: Any) -> list[str]:
    reader_names: dict[str, Any] = {}
    writer_names: dict[str, Any] = {}
    return incompatibilities(
        fastavro.parse_schema(reader, named_schemas=reader_names),
        fastavro.parse_schema(writer, named_schemas=writer_names),
        reader_names,
        writer_names,
    )


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


A_INT = {"name": "a", "type": "int"}
TREE = record({"name": "next", "type": ["null", "R"], "default": None}, A_INT)

READABLE = [
    ("long", "int", 1),
    ("double", "long", 1),
    ("bytes", "string", "x"),
    ("string", "bytes", b"x"),
    ({"type": "long", "logicalType": "timestamp-millis"}, "long", 1),
    (["null", "int"], "int", 1),
    (["null", "int"], ["int", "null"], None),
    ("int", ["int"], 1),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, [1]),
    ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, {"k": 1}),
    (enum("x", "y"), enum("x"), "x"),
    (enum("z", default="z"), enum("x", "z"), "x"),
    (fixed(2), fixed(2), b"ab"),
    (record(), record(A_INT), {"a": 1}),
    (record(A_INT, {"name": "b", "type": "int", "default": 7}), record(A_INT), {"a": 1}),
    (record({"name": "b", "type": "int", "aliases": ["a"]}), record(A_INT), {"a": 1}),
    (TREE, TREE, {"next": {"next": None, "a": 2}, "a": 1}),
]


@pytest.mark.parametrize(("reader", "writer", "value"), READABLE)
def test_readable(reader: Any, writer: Any, value: Any) -> None:
    assert problems(reader, writer) == []
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(writer), value)
    data.seek(0)
    fastavro.schemaless_reader(data, fastavro.parse_schema(writer), fastavro.parse_schema(reader))


@pytest.mark.parametrize(
    ("reader", "writer", "problem"),
    [
        ("int", "long", "/: long cannot be read as int"),
        ("string", "int", "/: int cannot be read as string"),
        ("int", ["int", "null"], "/: null cannot be read as int"),
        (["null", "string"], "int", "/: no branch of the reader's union can read int"),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": "long"},
            "/items/: long cannot be read as int",
        ),
        (enum("x"), enum("x", "y"), "/: the reader's enum lacks y and has no default"),
        (fixed(2), fixed(3), "/: fixed of 3 bytes is not one of 2"),
        (fixed(2), fixed(2, "G"), "/: fixed G is not fixed F"),
        (record(A_INT), record(), "/a: the writer lacks this field and the reader has no default"),
        (record(A_INT), {**record(A_INT), "name": "S"}, "/: record S is not record R"),
        (
            record({"name": "a", "type": "int"}),
            record({"name": "a", "type": "string"}),
            "/a/: string cannot be read as int",
        ),
        (
            TREE,
            record({"name": "next", "type": ["null", "R"], "default": None}),
            "/a: the writer lacks this field",
        ),
    ],
)
def test_unreadable(reader: Any, writer: Any, problem: str) -> None:
    (told,) = problems(reader, writer)
    assert told.startswith(problem)

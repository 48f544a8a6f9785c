"""The JSON Schema of a sink's columns."""

import json
from typing import Any

import pytest

from spark_jobs.errors import FormatError
from spark_jobs.formats.json_schema import json_schema
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type


def of(type_: str, timestamp_format: str = "SQL") -> Any:
    schema = json.loads(json_schema([RowField("c", parse_type(type_))], timestamp_format))
    return schema["properties"]["c"]


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        ("INT NOT NULL", {"type": "integer", "connect.type": "int32"}),
        ("DECIMAL(10, 2) NOT NULL", {"type": "number"}),
        ("DATE NOT NULL", {"type": "string", "format": "date"}),
        ("BYTES NOT NULL", {"type": "string", "contentEncoding": "base64"}),
        ("STRING", {"oneOf": [{"type": "null"}, {"type": "string"}]}),
        (
            "ARRAY<STRING NOT NULL> NOT NULL",
            {"type": "array", "items": {"type": "string"}},
        ),
        (
            "MAP<STRING, DATE NOT NULL> NOT NULL",
            {"type": "object", "additionalProperties": {"type": "string", "format": "date"}},
        ),
        (
            "ROW<x STRING NOT NULL, y TIME(0) NOT NULL> NOT NULL",
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                "required": ["x", "y"],
            },
        ),
    ],
)
def test_types(type_: str, schema: Any) -> None:
    assert of(type_) == schema


def test_only_texts_of_rfc_3339_are_called_so() -> None:
    """A reader that checks formats would refuse the others."""
    instant = "TIMESTAMP_LTZ(3) NOT NULL"
    assert of(instant, "ISO-8601") == {"type": "string", "format": "date-time"}
    assert of(instant) == of("TIMESTAMP(3) NOT NULL", "ISO-8601") == {"type": "string"}


def test_objects_are_closed_and_nullable_columns_need_not_be_there() -> None:
    fields = [RowField(n, parse_type(t)) for n, t in (("a", "INT NOT NULL"), ("b", "INT"))]
    schema = json.loads(json_schema(fields, "SQL"))
    assert (schema["required"], schema["additionalProperties"]) == (["a"], False)
    assert "required" not in json.loads(json_schema(fields[1:], "SQL"))


@pytest.mark.parametrize("type_", ["MAP<INT, STRING>", "ARRAY<MAP<BIGINT, INT>>"])
def test_what_has_no_schema(type_: str) -> None:
    with pytest.raises(FormatError, match=r"JSON_TYPE.*'c'") as refused:
        of(type_)
    assert refused.value.hint == "the keys of a MAP are STRING"

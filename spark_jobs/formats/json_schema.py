"""The JSON Schema of the objects that a sink writes, in the words that Confluent's clients know."""

import json
from collections.abc import Iterable
from typing import Any

from spark_jobs.errors import FormatError
from spark_jobs.sql.types.data_types import DataType, RowField

_DRAFT = "http://json-schema.org/draft-07/schema#"
_TYPES: dict[str, dict[str, Any]] = {
    "BOOLEAN": {"type": "boolean"},
    "TINYINT": {"type": "integer", "connect.type": "int8"},
    "SMALLINT": {"type": "integer", "connect.type": "int16"},
    "INT": {"type": "integer", "connect.type": "int32"},
    "BIGINT": {"type": "integer", "connect.type": "int64"},
    "FLOAT": {"type": "number", "connect.type": "float32"},
    "DOUBLE": {"type": "number", "connect.type": "float64"},
    "DECIMAL": {"type": "number"},
    "STRING": {"type": "string"},
    "BYTES": {"type": "string", "contentEncoding": "base64"},
    "DATE": {"type": "string", "format": "date"},
    "TIME": {"type": "string"},
    "TIMESTAMP": {"type": "string"},
    "TIMESTAMP_LTZ": {"type": "string"},
}


def json_schema(fields: Iterable[RowField], timestamp_format: str) -> str:
    """The schema of a record key or value with these columns.

    Objects are closed. Then a registry takes a schema with one more nullable column as compatible
    with the one before; with open objects older records might have had that name with any value.

    >>> json_schema([RowField("id", DataType("BIGINT", nullable=False))], "SQL")
    '{"$schema":"http://json-schema.org/draft-07/schema#","title":"Record","type":"object",\
"additionalProperties":false,"properties":{"id":{"type":"integer","connect.type":"int64"}},\
"required":["id"]}'
    """
    head = {"$schema": _DRAFT, "title": "Record"}
    return json.dumps({**head, **_object(fields, timestamp_format)}, separators=(",", ":"))


def _object(fields: Iterable[RowField], timestamp_format: str) -> dict[str, Any]:
    listed = list(fields)
    properties = {each.name: _type(each.type, each.name, timestamp_format) for each in listed}
    closed = {"type": "object", "additionalProperties": False, "properties": properties}
    required = [each.name for each in listed if not each.type.nullable]
    return {**closed, "required": required} if required else closed


def _type(type_: DataType, name: str, timestamp_format: str) -> dict[str, Any]:
    own = _not_null(type_, name, timestamp_format)
    return {"oneOf": [{"type": "null"}, own]} if type_.nullable else own


def _not_null(type_: DataType, name: str, timestamp_format: str) -> dict[str, Any]:
    match type_:
        # texts of SQL have a space, and TIMESTAMP has no zone: neither is a date-time of RFC 3339
        case DataType(name="TIMESTAMP_LTZ") if timestamp_format == "ISO-8601":
            return {"type": "string", "format": "date-time"}
        case DataType(name=known) if known in _TYPES:
            return _TYPES[known]
        case DataType(name="ROW", fields=fields):
            return _object(fields, timestamp_format)
        case DataType(name="ARRAY", element=DataType() as element):
            return {"type": "array", "items": _type(element, name, timestamp_format)}
        case DataType(name="MAP", key=DataType(name="STRING"), element=DataType() as value):
            values = _type(value, name, timestamp_format)
            return {"type": "object", "additionalProperties": values}
    hint = "the keys of a MAP are STRING" if type_.name == "MAP" else None
    raise FormatError("JSON_TYPE", f"{type_.sql()} of '{name}' has no JSON Schema", hint)

"""Which fields of a protobuf message the columns of a table are, from protoc's descriptor file.

The kernel gets the fields of the columns alone, so that messages may contain themselves.
"""

import json
from collections.abc import Sequence
from typing import Any

from spark_jobs.errors import FormatError
from spark_jobs.formats.descriptors import (
    ENUM,
    GROUP,
    KINDS,
    MESSAGE,
    Descriptors,
    Field,
    message_of,
)
from spark_jobs.sql.types.data_types import DataType, RowField

_INTS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_WHOLE = ("INT", "BIGINT", "DECIMAL")
# by the kind of a field, the types that a column of it may have
_TYPES = {
    **dict.fromkeys(("int32", "sint32", "sfixed32", "uint32", "fixed32"), _WHOLE),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint64", "fixed64"), ("BIGINT", "DECIMAL")),
    "float": ("FLOAT", "DOUBLE"),
    "double": ("DOUBLE",),
    "bool": ("BOOLEAN",),
    "string": ("STRING",),
    "bytes": ("BYTES",),
    "enum": ("STRING", *_INTS),
    "timestamp": ("TIMESTAMP_LTZ", "TIMESTAMP"),
}
_TIMESTAMP = ".google.protobuf.Timestamp"
_MOST_DIGITS = 20  # of an uint64


def layout(path: str, message: str, columns: Sequence[RowField]) -> str:
    """JSON for the kernel: the field of each column, and the places of the message in its file.

    Raises FormatError if the file cannot be read, has no such message, or does not fit the columns.
    """
    found, name = message_of(path, message)
    fields = [_column(found, name, each.name, each.type) for each in columns]
    return json.dumps({"places": found.places[name], "columns": fields})


def refuse_unwritable(path: str, message: str, columns: Sequence[RowField]) -> None:
    """Raise FormatError if rows of the columns are no complete messages, or would lose digits."""
    found, name = message_of(path, message)
    for each in columns:
        _column(found, name, each.name, each.type)
    _check_written(found, name, columns)


def _check_written(found: Descriptors, message: str, columns: Sequence[RowField]) -> None:
    types = {each.name: each.type for each in columns}
    for each in found.messages[message].values():
        type_ = types.get(each.name)
        if each.is_required and (type_ is None or type_.nullable):
            raise FormatError(
                "PROTOBUF_TYPE",
                f"field '{each.name}' of message {message[1:]} is required",
                "declare it NOT NULL",
            )
        match type_:
            case DataType(name="MAP", key=DataType() as key, element=DataType() as element):
                entry = (RowField("key", key), RowField("value", element))
                _check_written(found, each.type_name, entry)
            case DataType(name="ARRAY", element=DataType() as inner) | (DataType() as inner):
                if KINDS.get(each.kind) == "float" and inner.name == "DOUBLE":
                    raise _unfit(each.name, "float", inner, "FLOAT")
                if inner.name == "ROW":
                    _check_written(found, each.type_name, inner.fields)
            case None:
                pass


def _column(found: Descriptors, message: str, name: str, type_: DataType) -> dict[str, Any]:
    known = found.messages[message]
    if name not in known:
        raise FormatError(
            "PROTOBUF_TYPE",
            f"message {message[1:]} has no field '{name}'",
            f"it has {', '.join(known)}",
        )
    each = known[name]
    head = {"name": name, "number": each.number, "presence": each.has_presence}
    if each.is_repeated and each.type_name in found.maps:
        if type_.name != "MAP" or type_.key is None or type_.element is None:
            raise _unfit(name, "a map", type_, "MAP")
        key = _column(found, each.type_name, "key", type_.key)
        value = _column(found, each.type_name, "value", type_.element)
        return {**head, "kind": "map", "key": key, "value": value}
    if each.is_repeated:
        if type_.name != "ARRAY" or type_.element is None:
            raise _unfit(name, "repeated", type_, "ARRAY")
        element = _single(found, each, type_.element)
        return {**head, "kind": "array", "packed": each.is_packed, "element": element}
    return {**head, **_single(found, each, type_)}


def _single(found: Descriptors, each: Field, type_: DataType) -> dict[str, Any]:
    """One value of a field."""
    if each.kind == GROUP:
        raise _unfit(each.name, "a group", type_, "a message")
    if each.kind == MESSAGE and not (each.type_name == _TIMESTAMP and type_.name != "ROW"):
        if type_.name != "ROW":
            raise _unfit(each.name, f"a message {each.type_name[1:]}", type_, "ROW")
        fields = [_column(found, each.type_name, f.name, f.type) for f in type_.fields]
        return {"kind": "message", "fields": fields}
    kind = {MESSAGE: "timestamp", ENUM: "enum"}.get(each.kind) or KINDS[each.kind]
    if type_.name not in _TYPES[kind] or _is_narrow(type_):
        raise _unfit(each.name, kind, type_, " or ".join(_TYPES[kind]))
    if kind == "enum":
        values = {str(number): text for number, text in found.enums[each.type_name].items()}
        return {"kind": kind, "values": values, "default": each.default}
    return {"kind": kind, "default": each.default}


def _is_narrow(type_: DataType) -> bool:
    """Whether a DECIMAL cannot hold every number of 64 bits."""
    digits = (type_.precision or 0) - (type_.scale or 0)
    return type_.name == "DECIMAL" and digits < _MOST_DIGITS


def _unfit(name: str, kind: str, type_: DataType, instead: str) -> FormatError:
    hint = f"declare it as {instead.replace('DECIMAL', 'DECIMAL(20, 0)')}"
    return FormatError("PROTOBUF_TYPE", f"field '{name}' is {kind}, not {type_.sql()}", hint)

"""Which fields of a protobuf message the columns of a table are, from protoc's descriptor file.

The file is what `protoc --include_imports --descriptor_set_out=FILE` writes. The kernel gets the
fields of the columns alone, so that messages may contain themselves.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.errors import FormatError
from spark_jobs.sql.types.data_types import DataType, RowField

_REQUIRED, _REPEATED = 2, 3
_MESSAGE, _ENUM, _GROUP = 11, 14, 10
_UNPACKED = (9, _GROUP, _MESSAGE, 12)  # texts and bytes as well
_KINDS = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
    8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
    17: "sint32", 18: "sint64",
}  # fmt: skip
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


@dataclass(frozen=True, slots=True)
class _Field:
    """`has_presence`: a message tells whether it has the field.

    `is_packed`: the elements of a repeated field are written behind one tag.
    """

    name: str
    number: int
    kind: int
    type_name: str
    is_repeated: bool
    is_required: bool
    is_packed: bool
    has_presence: bool
    default: str | None


@dataclass(slots=True)
class _Descriptors:
    """The messages and enumerations of a file, by their full names with a dot in front.

    `places` of messages in their files, by the numbers of the messages around them. Confluent's
    clients differ: some count the messages that protoc makes of maps, others do not.
    """

    messages: dict[str, dict[str, _Field]] = field(default_factory=dict)
    maps: set[str] = field(default_factory=set)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)
    places: dict[str, list[list[int]]] = field(default_factory=dict)


def layout(path: str, message: str, columns: Sequence[RowField]) -> str:
    """JSON for the kernel: the field of each column, and the places of the message in its file.

    Raises FormatError if the file cannot be read, has no such message, or does not fit the columns.
    """
    found, name = _message_of(path, message)
    fields = [_column(found, name, each.name, each.type) for each in columns]
    return json.dumps({"places": found.places[name], "columns": fields})


def refuse_unwritable(path: str, message: str, columns: Sequence[RowField]) -> None:
    """Raise FormatError if rows of the columns are no complete messages, or would lose digits."""
    found, name = _message_of(path, message)
    for each in columns:
        _column(found, name, each.name, each.type)
    _check_written(found, name, columns)


def _check_written(found: _Descriptors, message: str, columns: Sequence[RowField]) -> None:
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
                if _KINDS.get(each.kind) == "float" and inner.name == "DOUBLE":
                    raise _unfit(each.name, "float", inner, "FLOAT")
                if inner.name == "ROW":
                    _check_written(found, each.type_name, inner.fields)
            case None:
                pass


def _message_of(path: str, message: str) -> tuple[_Descriptors, str]:
    """What the file describes, and the full name of the message with a dot in front."""
    found = _read(path)
    name = f".{message.removeprefix('.')}"
    if name not in found.messages:
        known = ", ".join(sorted(n[1:] for n in found.messages if n not in found.maps))
        raise FormatError(
            "PROTOBUF_DESCRIPTOR", f"{path} has no message {message}", f"it has {known}"
        )
    return found, name


def _read(path: str) -> _Descriptors:
    try:
        data = Path(path).read_bytes()
        found = _Descriptors()
        for number, file in _fields(data):
            if number == 1:
                _file(found, file)
    except OSError as cause:
        problem = f"the descriptor file {path} cannot be read: {cause.strerror}"
        hint = "protoc --include_imports --descriptor_set_out=FILE writes it"
        raise FormatError("PROTOBUF_DESCRIPTOR", problem, hint) from cause
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration) as cause:
        problem = f"{path} is no descriptor file of protoc"
        hint = "protoc --include_imports --descriptor_set_out=FILE writes one, not the .proto file"
        raise FormatError("PROTOBUF_DESCRIPTOR", problem, hint) from cause
    return found


def _file(found: _Descriptors, data: bytes) -> None:
    parts = list(_fields(data))
    package = next((v.decode() for n, v in parts if n == 2), "")
    syntax = next((v.decode() for n, v in parts if n == 12), "proto2")
    if syntax == "editions":
        raise FormatError(
            "PROTOBUF_DESCRIPTOR", "files with 'edition' are not supported", "use proto2 or proto3"
        )
    scope = f".{package}" if package else ""
    messages = [v for n, v in parts if n == 4]
    for index, message in enumerate(messages):
        _message(found, scope, message, syntax == "proto3", [[index]])
    for enum in (v for n, v in parts if n == 5):
        _enum(found, scope, enum)


def _message(
    found: _Descriptors, scope: str, data: bytes, proto3: bool, places: list[list[int]]
) -> None:
    parts = list(_fields(data))
    name = f"{scope}.{_name(parts)}"
    fields = [_field(v, proto3) for n, v in parts if n == 2]
    found.messages[name] = {each.name: each for each in fields}
    found.places[name] = places
    if _is_map(parts):
        found.maps.add(name)
    nested = [v for n, v in parts if n == 3]
    declared = [v for v in nested if not _is_map(list(_fields(v)))]
    for message in nested:
        counts = {each.index(message): None for each in (nested, declared) if message in each}
        within = [[*place, count] for place in places for count in counts]
        _message(found, name, message, proto3, within)
    for enum in (v for n, v in parts if n == 4):
        _enum(found, name, enum)


def _is_map(parts: list[tuple[int, Any]]) -> bool:
    """Whether protoc has made the message of the entries of a map."""
    return (7, 1) in [option for n, v in parts if n == 7 for option in _fields(v)]


def _name(parts: list[tuple[int, Any]]) -> str:
    name: bytes = next(v for n, v in parts if n == 1)
    return name.decode()


def _field(data: bytes, proto3: bool) -> _Field:
    parts: dict[int, Any] = dict(_fields(data))
    kind, repeated = parts[5], parts.get(4) == _REPEATED
    in_oneof = 9 in parts  # an optional field of proto3 is in a oneof of its own
    return _Field(
        name=parts[1].decode(),
        number=parts[3],
        kind=kind,
        type_name=parts.get(6, b"").decode(),
        is_repeated=repeated,
        is_required=parts.get(4) == _REQUIRED,
        is_packed=repeated and kind not in _UNPACKED and _is_packed(parts, proto3),
        has_presence=not proto3 or in_oneof or kind == _MESSAGE,
        default=parts[7].decode() if 7 in parts else None,
    )


def _is_packed(parts: dict[int, Any], proto3: bool) -> bool:
    """The option `packed` of a field, without which proto3 packs and proto2 does not."""
    options: dict[int, Any] = dict(_fields(parts.get(8, b"")))
    return bool(options.get(2, proto3))


def _signed(number: int) -> int:
    """A negative number of an enumeration, which stands as one of 64 bits."""
    return number - 2**64 if number >= 2**63 else number


def _enum(found: _Descriptors, scope: str, data: bytes) -> None:
    parts = list(_fields(data))
    name = f"{scope}.{_name(parts)}"
    values = [dict(_fields(v)) for n, v in parts if n == 2]
    found.enums[name] = {_signed(v.get(2, 0)): v[1].decode() for v in values}


def _column(found: _Descriptors, message: str, name: str, type_: DataType) -> dict[str, Any]:
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


def _single(found: _Descriptors, each: _Field, type_: DataType) -> dict[str, Any]:
    """One value of a field."""
    if each.kind == _GROUP:
        raise _unfit(each.name, "a group", type_, "a message")
    if each.kind == _MESSAGE and not (each.type_name == _TIMESTAMP and type_.name != "ROW"):
        if type_.name != "ROW":
            raise _unfit(each.name, f"a message {each.type_name[1:]}", type_, "ROW")
        fields = [_column(found, each.type_name, f.name, f.type) for f in type_.fields]
        return {"kind": "message", "fields": fields}
    kind = {_MESSAGE: "timestamp", _ENUM: "enum"}.get(each.kind) or _KINDS[each.kind]
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


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of an encoded message: numbers, or bytes that may be a message again."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            case 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise ValueError("cut off")
                yield tag >> 3, data[at : at + length]
                at += length
            case 1 | 5 as wire:
                at += 8 if wire == 1 else 4
            case _:
                raise ValueError("no field of a descriptor")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1

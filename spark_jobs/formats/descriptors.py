"""What protoc's descriptor file says of messages.

`protoc --include_imports --descriptor_set_out=FILE` writes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.errors import FormatError

MESSAGE, ENUM, GROUP = 11, 14, 10
REQUIRED, REPEATED = 2, 3
KINDS = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
    8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
    17: "sint32", 18: "sint64",
}  # fmt: skip
_UNPACKED = (9, GROUP, MESSAGE, 12)  # texts and bytes as well


@dataclass(frozen=True, slots=True)
class Field:
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
class Descriptors:
    """The messages and enumerations of files, by their full names with a dot in front.

    `files` by name, as encoded, and `file_of` messages.
    `places` of messages in their files, by the numbers of the messages around them. Confluent's
    clients differ: some count the messages that protoc makes of maps, others do not.
    """

    messages: dict[str, dict[str, Field]] = field(default_factory=dict)
    maps: set[str] = field(default_factory=set)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)
    places: dict[str, list[list[int]]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    file_of: dict[str, str] = field(default_factory=dict)


def message_of(path: str, message: str) -> tuple[Descriptors, str]:
    """What the file describes, and the full name of the message with a dot in front."""
    found = _read(path)
    name = f".{message.removeprefix('.')}"
    if name not in found.messages:
        known = ", ".join(sorted(n[1:] for n in found.messages if n not in found.maps))
        raise FormatError(
            "PROTOBUF_DESCRIPTOR", f"{path} has no message {message}", f"it has {known}"
        )
    return found, name


def _read(path: str) -> Descriptors:
    try:
        data = Path(path).read_bytes()
        found = Descriptors()
        for number, file in encoded_fields(data):
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


def _file(found: Descriptors, data: bytes) -> None:
    parts = list(encoded_fields(data))
    package = next((v.decode() for n, v in parts if n == 2), "")
    syntax = next((v.decode() for n, v in parts if n == 12), "proto2")
    if syntax == "editions":
        raise FormatError(
            "PROTOBUF_DESCRIPTOR", "files with 'edition' are not supported", "use proto2 or proto3"
        )
    scope = f".{package}" if package else ""
    messages = [v for n, v in parts if n == 4]
    before = set(found.messages)
    for index, message in enumerate(messages):
        _message(found, scope, message, syntax == "proto3", [[index]])
    name = name_of(parts)
    found.files[name] = data
    found.file_of |= dict.fromkeys(found.messages.keys() - before, name)
    for enum in (v for n, v in parts if n == 5):
        _enum(found, scope, enum)


def _message(
    found: Descriptors, scope: str, data: bytes, proto3: bool, places: list[list[int]]
) -> None:
    parts = list(encoded_fields(data))
    name = f"{scope}.{name_of(parts)}"
    fields = [_field(v, proto3) for n, v in parts if n == 2]
    found.messages[name] = {each.name: each for each in fields}
    found.places[name] = places
    if is_map_entry(parts):
        found.maps.add(name)
    nested = [v for n, v in parts if n == 3]
    declared = [v for v in nested if not is_map_entry(list(encoded_fields(v)))]
    for message in nested:
        counts = {each.index(message): None for each in (nested, declared) if message in each}
        within = [[*place, count] for place in places for count in counts]
        _message(found, name, message, proto3, within)
    for enum in (v for n, v in parts if n == 4):
        _enum(found, name, enum)


def is_map_entry(parts: list[tuple[int, Any]]) -> bool:
    """Whether protoc has made the message of the entries of a map."""
    return (7, 1) in [option for n, v in parts if n == 7 for option in encoded_fields(v)]


def name_of(parts: list[tuple[int, Any]]) -> str:
    name: bytes = next(v for n, v in parts if n == 1)
    return name.decode()


def _field(data: bytes, proto3: bool) -> Field:
    parts: dict[int, Any] = dict(encoded_fields(data))
    kind, repeated = parts[5], parts.get(4) == REPEATED
    in_oneof = 9 in parts  # an optional field of proto3 is in a oneof of its own
    return Field(
        name=parts[1].decode(),
        number=parts[3],
        kind=kind,
        type_name=parts.get(6, b"").decode(),
        is_repeated=repeated,
        is_required=parts.get(4) == REQUIRED,
        is_packed=repeated and kind not in _UNPACKED and _is_packed(parts, proto3),
        has_presence=not proto3 or in_oneof or kind == MESSAGE,
        default=parts[7].decode() if 7 in parts else None,
    )


def _is_packed(parts: dict[int, Any], proto3: bool) -> bool:
    """The option `packed` of a field, without which proto3 packs and proto2 does not."""
    options: dict[int, Any] = dict(encoded_fields(parts.get(8, b"")))
    return bool(options.get(2, proto3))


def signed(number: int) -> int:
    """A negative number of an enumeration, which stands as one of 64 bits."""
    return number - 2**64 if number >= 2**63 else number


def _enum(found: Descriptors, scope: str, data: bytes) -> None:
    parts = list(encoded_fields(data))
    name = f"{scope}.{name_of(parts)}"
    values = [dict(encoded_fields(v)) for n, v in parts if n == 2]
    found.enums[name] = {signed(v.get(2, 0)): v[1].decode() for v in values}


def encoded_fields(data: bytes) -> Iterator[tuple[int, Any]]:
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

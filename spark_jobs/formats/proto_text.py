"""The file of a message as text again, which is how registries keep and compare schemas.

What says nothing about the bytes of a record is left out: options of other languages, services,
extensions.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from spark_jobs.errors import FormatError
from spark_jobs.formats.descriptors import (
    GROUP,
    KINDS,
    REPEATED,
    REQUIRED,
    Descriptors,
    encoded_fields,
    is_map_entry,
    message_of,
    name_of,
    signed,
)
from spark_jobs.formats.written_schema import Import, WrittenSchema

_Parts: TypeAlias = list[tuple[int, Any]]
# files that every registry has
_KNOWN_TO_REGISTRIES = ("google/protobuf/", "google/type/", "confluent/")
_MOST_NUMBER = 536_870_912
_BYTES = 12
_TEXT = 9


def registered_file(path: str, message: str) -> WrittenSchema:
    """The schema of a message: its file, with those that it imports."""
    found, name = message_of(path, message)
    return _schema(found, found.file_of[name])


def _schema(found: Descriptors, name: str) -> WrittenSchema:
    if name not in found.files:
        hint = "make it with protoc --include_imports"
        raise FormatError("PROTOBUF_DESCRIPTOR", f"the descriptor file lacks {name}", hint)
    file = found.files[name]
    imported = [v.decode() for n, v in encoded_fields(file) if n == 3]
    own = (each for each in imported if not each.startswith(_KNOWN_TO_REGISTRIES))
    imports = tuple(Import(each, _schema(found, each)) for each in own)
    return WrittenSchema(proto_text(file), "PROTOBUF", imports)


def proto_text(file: bytes) -> str:
    """The text of a file, given as protoc describes it."""
    parts = list(encoded_fields(file))
    syntax = next((v.decode() for n, v in parts if n == 12), "proto2")
    public = {v for n, v in parts if n == 10}
    lines = [f'syntax = "{syntax}";']
    lines += [f"package {v.decode()};" for n, v in parts if n == 2]
    for index, name in enumerate(v.decode() for n, v in parts if n == 3):
        lines.append(f'import {"public " if index in public else ""}"{name}";')
    for number, each in parts:
        if number == 4:
            lines += _message(list(encoded_fields(each)), syntax)
        elif number == 5:
            lines += _enum(list(encoded_fields(each)))
    return "".join(f"{line}\n" for line in lines)


def _message(parts: _Parts, syntax: str) -> Iterator[str]:
    yield f"message {name_of(parts)} {{"
    yield from _indented(_body(parts, syntax))
    yield "}"


def _body(parts: _Parts, syntax: str) -> Iterator[str]:
    nested = {name_of(own): own for own in (list(encoded_fields(v)) for n, v in parts if n == 3)}
    fields: list[dict[int, Any]] = [dict(encoded_fields(v)) for n, v in parts if n == 2]
    oneofs = [name_of(list(encoded_fields(v))) for n, v in parts if n == 8]
    written: set[int] = set()
    for each in fields:
        oneof = each.get(9)
        if oneof is None or each.get(17):  # an optional field of proto3 has a oneof of its own
            yield from _field(each, nested, syntax)
        elif oneof not in written:
            written.add(oneof)
            yield f"oneof {oneofs[oneof]} {{"
            for other in fields:
                if other.get(9) == oneof:
                    yield from _indented(_field(other, nested, syntax, is_in_oneof=True))
            yield "}"
    yield from _reserved(parts, 9, 10, last=-1)
    for own in nested.values():
        if not is_map_entry(own):
            yield from _message(own, syntax)
    for number, each in parts:
        if number == 4:
            yield from _enum(list(encoded_fields(each)))


def _field(
    each: dict[int, Any], nested: dict[str, _Parts], syntax: str, is_in_oneof: bool = False
) -> Iterator[str]:
    name, number, kind = each[1].decode(), each[3], each[5]
    type_name = each.get(6, b"").decode()
    entry = nested.get(type_name.rpartition(".")[2], [])
    if kind == GROUP:
        problem = f"field '{name}' is a group, which no schema of a registry can have"
        raise FormatError("PROTOBUF_TYPE", problem, "make it a message of its own")
    if each.get(4) == REPEATED and is_map_entry(entry):
        key, value = (dict(encoded_fields(v)) for n, v in entry if n == 2)
        yield f"map<{_type(key)}, {_type(value)}> {name} = {number};"
    else:
        label = "" if is_in_oneof else _label(each, syntax)
        yield f"{label}{_type(each)} {name} = {number}{_options(each)};"


def _label(each: dict[int, Any], syntax: str) -> str:
    if each.get(4) in (REPEATED, REQUIRED):
        return "repeated " if each[4] == REPEATED else "required "
    return "optional " if syntax == "proto2" or each.get(17) else ""


def _type(each: dict[int, Any]) -> str:
    return KINDS.get(each[5]) or each[6].decode()


def _options(each: dict[int, Any]) -> str:
    options: dict[int, Any] = dict(encoded_fields(each.get(8, b"")))
    found = [f"packed = {'true' if options[2] else 'false'}"] if 2 in options else []
    if 7 in each:
        found.append(f"default = {_default(each[5], each[7].decode())}")
    return f" [{', '.join(found)}]" if found else ""


def _default(kind: int, text: str) -> str:
    """Bytes have their escapes already."""
    if kind == _TEXT:
        return json.dumps(text, ensure_ascii=False)
    return f'"{text}"' if kind == _BYTES else text


def _enum(parts: _Parts) -> Iterator[str]:
    yield f"enum {name_of(parts)} {{"
    if any((2, 1) in encoded_fields(v) for n, v in parts if n == 3):
        yield "  option allow_alias = true;"
    for value in (dict(encoded_fields(v)) for n, v in parts if n == 2):
        yield f"  {value[1].decode()} = {signed(value.get(2, 0))};"
    yield from _indented(_reserved(parts, 4, 5, last=0))
    yield "}"


def _reserved(parts: _Parts, ranges: int, names: int, last: int) -> Iterator[str]:
    """Numbers and names that must not be used again; `last` from the end of a range."""
    for found in (dict(encoded_fields(v)) for n, v in parts if n == ranges):
        start, end = signed(found.get(1, 0)), signed(found.get(2, 0))
        until = "max" if end >= _MOST_NUMBER else str(end + last)
        yield f"reserved {start};" if until == str(start) else f"reserved {start} to {until};"
    for name in (v.decode() for n, v in parts if n == names):
        yield f'reserved "{name}";'


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)

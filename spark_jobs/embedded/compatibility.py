"""Checks whether data written with one Avro schema can be read with another.

Implements Avro's schema resolution: promotions, unions, the reader's aliases, defaults, enum
defaults. Logical types do not matter for it. Schemas are as fastavro parses them with
`expand=False`: a named type is a dict where it is defined and its full name elsewhere.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Any  # parsed Avro JSON: str | list | dict, nested
NamedTypes: TypeAlias = Mapping[str, Schema]

# writer type -> other reader types that can read it
_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def incompatibilities(
    reader: Schema, writer: Schema, reader_names: NamedTypes, writer_names: NamedTypes
) -> list[str]:
    """Why `reader` cannot read what `writer` wrote; empty if it can."""
    return list(_Resolution(reader_names, writer_names).problems(reader, writer, "/"))


class _Resolution:
    """One comparison of two schemas; remembers visited pairs of named types, which may recurse."""

    def __init__(self, reader_names: NamedTypes, writer_names: NamedTypes) -> None:
        self._reader_names = reader_names
        self._writer_names = writer_names
        self._seen: set[tuple[str, str]] = set()

    def problems(self, reader: Schema, writer: Schema, path: str) -> Iterator[str]:
        reader = _resolve(reader, self._reader_names)
        writer = _resolve(writer, self._writer_names)
        if isinstance(writer, list):
            for branch in writer:
                yield from self.problems(reader, branch, path)
        elif isinstance(reader, list):
            if all(any(self._fresh().problems(r, writer, path)) for r in reader):
                yield f"{path}: no branch of the reader's union can read {_kind(writer)}"
        elif _kind(reader) == _kind(writer):
            yield from self._same_kind(reader, writer, path)
        elif _kind(reader) not in _PROMOTIONS.get(_kind(writer), set()):
            yield f"{path}: {_kind(writer)} cannot be read as {_kind(reader)}"

    def _fresh(self) -> "_Resolution":
        copy = _Resolution(self._reader_names, self._writer_names)
        copy._seen = set(self._seen)
        return copy

    def _same_kind(self, reader: Schema, writer: Schema, path: str) -> Iterator[str]:
        match _kind(reader):
            case "array":
                yield from self.problems(reader["items"], writer["items"], f"{path}items/")
            case "map":
                yield from self.problems(reader["values"], writer["values"], f"{path}values/")
            case "fixed" | "enum" | "record" | "error" as kind:
                yield from self._named(kind, reader, writer, path)

    def _named(self, kind: str, reader: Schema, writer: Schema, path: str) -> Iterator[str]:
        pair = (reader["name"], writer["name"])
        if not _names_match(reader, writer):
            yield f"{path}: {kind} {pair[1]} is not {kind} {pair[0]}"
        elif kind == "fixed":
            if reader["size"] != writer["size"]:
                yield f"{path}: fixed of {writer['size']} bytes is not one of {reader['size']}"
        elif kind == "enum":
            missing = [s for s in writer["symbols"] if s not in reader["symbols"]]
            if missing and "default" not in reader:
                yield f"{path}: the reader's enum lacks {', '.join(missing)} and has no default"
        elif pair not in self._seen:
            self._seen.add(pair)
            yield from self._fields(reader, writer, path)

    def _fields(self, reader: Schema, writer: Schema, path: str) -> Iterator[str]:
        written = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            names = [field["name"], *field.get("aliases", [])]
            source = next((written[name] for name in names if name in written), None)
            where = f"{path}{field['name']}"
            if source is not None:
                yield from self.problems(field["type"], source["type"], f"{where}/")
            elif "default" not in field:
                yield f"{where}: the writer lacks this field and the reader has no default for it"


def _resolve(schema: Schema, names: NamedTypes) -> Schema:
    """The definition that a name or `{"type": <schema>}` stands for."""
    while isinstance(schema, str) or "type" in schema:
        inner = schema if isinstance(schema, str) else schema["type"]
        if isinstance(inner, str) and inner not in names:
            break
        schema = names[inner] if isinstance(inner, str) else inner
    return schema


def _kind(schema: Schema) -> str:
    if isinstance(schema, list):
        return "union"
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def _names_match(reader: Schema, writer: Schema) -> bool:
    """Whether the names match: without namespaces, and including the reader's aliases."""
    names = [reader["name"], *reader.get("aliases", [])]
    return _unqualified(writer["name"]) in {_unqualified(n) for n in names}


def _unqualified(name: str) -> str:
    return name.rpartition(".")[2]

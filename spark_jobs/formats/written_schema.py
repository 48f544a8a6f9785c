"""The schemas that sinks write with, as a registry takes them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

SchemaKind: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """The schema of a sink's records, with the schemas that it imports."""

    text: str
    kind: SchemaKind = "AVRO"
    imports: tuple["Import", ...] = ()


class Import(NamedTuple):
    """A schema that another one imports by its name, which is also its subject."""

    name: str
    schema: WrittenSchema

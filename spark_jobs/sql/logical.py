"""Logical nodes: what the query means, before any strategy is chosen.

Each node has `fields`, its output columns in order. Positions in expressions refer to the fields
of the input (for `Join`: left fields, then right fields).
"""

from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import TypeAlias

from spark_jobs.sql.catalog import Table
from spark_jobs.sql.expr import Expr
from spark_jobs.sql.types import DataType

TimeAttribute: TypeAlias = OneOf["rowtime", "proctime"] | None
JoinType: TypeAlias = OneOf["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the SQL file a node came from; lines and columns count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Field:
    """One output column; a time attribute is what watermarks and temporal joins may use."""

    name: str
    type: DataType
    time: TimeAttribute = None


@dataclass(frozen=True, slots=True)
class Scan:
    """All declared columns of a table, in declaration order."""

    table: Table
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Filter:
    """WHERE, or a condition moved there."""

    input: "Logical"
    condition: Expr

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Project:
    """One expression per output field."""

    input: "Logical"
    exprs: tuple[Expr, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """A join. `as_of` (over the LEFT fields) makes it `FOR SYSTEM_TIME AS OF`.

    `condition` None is a cross join. An outer side makes the other side's fields nullable; time
    attributes survive only where Flink keeps them (both sides lose them in a regular join).
    """

    left: "Logical"
    right: "Logical"
    kind: JoinType
    condition: Expr | None
    as_of: Expr | None
    position: Position

    @property
    def fields(self) -> tuple[Field, ...]:
        left, right = self.left.fields, self.right.fields
        if self.kind in ("right", "full"):
            left = tuple(_nullable(f) for f in left)
        if self.kind in ("left", "full"):
            right = tuple(_nullable(f) for f in right)
        if self.as_of is None:
            left = tuple(replace(f, time=None) for f in left)
        right = tuple(replace(f, time=None) for f in right)
        return left + right


@dataclass(frozen=True, slots=True)
class Sink:
    """INSERT INTO table: the input's fields match the table's writable columns by position."""

    input: "Logical"
    table: Table
    position: Position

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


Logical: TypeAlias = Scan | Filter | Project | Join | Sink


def _nullable(field: Field) -> Field:
    return replace(field, type=replace(field.type, nullable=True))

"""Logical nodes: what the query means, before any strategy is chosen.

Each node has `fields`, its output columns in order. Positions in expressions refer to the fields
of the input (for `Join`: left fields, then right fields). A field's `time` is that of Flink's
validated plan; which operators keep a time attribute alive is decided on the
optimised plan (plan/facts/times.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias, assert_never

from spark_jobs.sql.catalog import Table, TableColumn
from spark_jobs.sql.parse.statements import ConflictStrategy
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Column, Expr
from spark_jobs.sql.types.functions import AggregateFunction

TimeAttribute: TypeAlias = OneOf["rowtime", "proctime"] | None
JoinType: TypeAlias = OneOf["inner", "left", "right", "full", "semi", "anti"]


class Node:
    """What all nodes have: a place for the facts that the planner finds out about a node.

    They are computed once, when somebody first needs them, and are no part of what the node means:
    a node that a rule makes of another one starts without.
    """

    __slots__ = ("facts",)
    facts: object


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
class Scan(Node):
    """All declared columns of a table, in declaration order."""

    table: Table
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class NoRows(Node):
    """A table that never has a row: what the constant row of a query without FROM is made of.

    An aggregate without GROUP BY has one row over no rows (`one_row`).
    """

    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """WHERE, or a condition moved there."""

    input: "Logical"
    condition: Expr

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Project(Node):
    """One expression per output field."""

    input: "Logical"
    exprs: tuple[Expr, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`LATERAL TABLE(SNAPSHOT(...))`: when the build side counts as loaded.

    `at_ms`: its watermark has reached this time. `idle_ms`: no record came for so long.
    """

    at_ms: int | None
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True)
class EarlyFire:
    """An EARLY_FIRE hint: when an interval join pads rows that may still find a partner.

    That is `delay_ms` after the row's time. `time_mode` None: by the time that the join goes by.
    """

    delay_ms: int
    time_mode: TimeAttribute
    position: Position


@dataclass(frozen=True, slots=True)
class Join(Node):
    """A join.

    `as_of` (over the LEFT fields) makes it `FOR SYSTEM_TIME AS OF` or a temporal table function;
    `snapshot` makes it a LATERAL SNAPSHOT join. `condition` None is a cross join. An outer side
    makes the other side's fields nullable; semi and anti joins have the left fields alone.
    `ttl_ms` is the STATE_TTL hint of each side (None: the job's setting). `early_fire` is the hint
    of its query block, also where the join pads nothing.
    """

    left: "Logical"
    right: "Logical"
    kind: JoinType
    condition: Expr | None
    as_of: Expr | None
    position: Position
    snapshot: Snapshot | None = None
    ttl_ms: tuple[int | None, int | None] = (None, None)
    early_fire: EarlyFire | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        left, right = self.left.fields, self.right.fields
        if self.kind in ("semi", "anti"):
            return left
        if self.kind in ("right", "full"):
            left = tuple(_nullable(f) for f in left)
        if self.kind in ("left", "full"):
            right = tuple(_nullable(f) for f in right)
        return left + right


@dataclass(frozen=True, slots=True)
class Union(Node):
    """UNION ALL: the inputs' columns by position, with the types in `fields`."""

    inputs: tuple["Logical", ...]
    fields: tuple[Field, ...]
    position: Position


class SortKey(NamedTuple):
    """One field of an ORDER BY, by its position in the input."""

    column: int
    descends: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class RowNumber(Node):
    """`ROW_NUMBER() OVER (PARTITION BY partition ORDER BY order)` as one more field at the end.

    Positions are those of the input's fields.
    """

    input: "Logical"
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Rank(Node):
    """Top-N: the rows `first` to `last` of each partition, counted from 1 in the given order.

    Equal rows stand as they came. `number` is the field that says the place of each row, one more
    at the end; None where nothing reads it.
    """

    input: "Logical"
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    first: int
    last: int
    number: Field | None
    position: Position

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields if self.number is None else (*self.input.fields, self.number)


@dataclass(frozen=True, slots=True)
class Deduplicate(Node):
    """The first or the last row of each key by a time attribute: `ROW_NUMBER() = 1`, versions.

    `corrects`: the first row by event time leaves at once and is replaced by an earlier one that
    comes later (Flink's mini-batch); otherwise it waits until the watermark has passed it.
    """

    input: "Logical"
    partition: tuple[int, ...]
    order: int
    keep: OneOf["first", "last"]
    position: Position
    corrects: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate function; `argument` None is COUNT(*).

    `takes_nulls`: NULLs are elements of ARRAY_AGG. `separator`: between the texts of LISTAGG.
    """

    function: AggregateFunction
    argument: Expr | None
    distinct: bool
    filter: Expr | None
    type: DataType
    takes_nulls: bool = False
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """GROUP BY `keys` (none: one row for the whole table); fields are keys, then calls.

    Without calls it is SELECT DISTINCT.
    """

    input: "Logical"
    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Unnest(Node):
    """Each row with each element of its collection: `CROSS JOIN UNNEST`, `LEFT JOIN UNNEST`.

    `collection` is over the input's fields. `elements` are the fields behind those: the element,
    the fields of an element that is a ROW, or key and value of a MAP; the last one is the element's
    place, from 1, if `ordinality`. A left join keeps a row no element of which has passed
    `condition`, which is over all fields.
    """

    input: "Logical"
    collection: Expr
    kind: OneOf["inner", "left"]
    condition: Expr | None
    elements: tuple[Field, ...]
    ordinality: bool
    position: Position

    @property
    def fields(self) -> tuple[Field, ...]:
        added = self.elements if self.kind == "inner" else tuple(map(_nullable, self.elements))
        return self.input.fields + added


@dataclass(frozen=True, slots=True)
class Sink(Node):
    """INSERT INTO table: the input's fields match the table's writable columns by position."""

    input: "Logical"
    table: Table
    position: Position
    on_conflict: ConflictStrategy | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


Logical: TypeAlias = (
    Scan
    | NoRows
    | Filter
    | Project
    | Join
    | Union
    | RowNumber
    | Rank
    | Deduplicate
    | Aggregate
    | Unnest
    | Sink
)


def inputs_of(node: Logical) -> tuple[Logical, ...]:
    """The nodes that feed this one, left to right."""
    match node:
        case Scan() | NoRows():
            return ()
        case Join(left=left, right=right):
            return left, right
        case Union(inputs=inputs):
            return inputs
        case Filter() | Project() | RowNumber() | Rank() | Deduplicate():
            return (node.input,)
        case Aggregate() | Unnest() | Sink():
            return (node.input,)
        case _:
            assert_never(node)


def nodes(node: Logical) -> Iterator[Logical]:
    """The node and all below it, parents first."""
    yield node
    for below in inputs_of(node):
        yield from nodes(below)


def column(fields: Sequence[Field | TableColumn], index: int) -> Column:
    """A field of a node, or a column of a table, as an expression."""
    return Column(index, fields[index].name, fields[index].type)


def all_columns(node: Logical) -> tuple[Column, ...]:
    """Every field of a node as an expression over it."""
    return tuple(column(node.fields, i) for i in range(len(node.fields)))


def _nullable(field: Field) -> Field:
    return replace(field, type=replace(field.type, nullable=True))

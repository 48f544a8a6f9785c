"""Physical nodes: what runs. Their JSON is the contract with the kernel.

Expressions are Spark SQL text over backticked column names; field names become camelCase in JSON.
The nodes say all that runs per row; how a query is started is not theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import ClassVar, TypeAlias
from typing import Literal as OneOf

from spark_jobs.sql.catalog import ChangelogMode
from spark_jobs.sql.options import Format
from spark_jobs.sql.types import DataType

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

SideLayout: TypeAlias = OneOf["join-key-contains-unique-key", "has-unique-key", "no-unique-key"]


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the column it makes."""

    name: str
    expr: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its place in the query's list of topics; source ids are made of that place."""

    name: str
    index: int


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of the table and where in the record it stands; `sql_type` tells TIME from INT."""

    name: str
    type: DataType
    sql_type: str
    nullable: bool
    origin: OneOf["value", "key", "metadata"] = field(metadata={"json": "from"})
    field: str


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Where reading starts or ends, in the words of Flink's scan.startup.* and scan.bounded.*."""

    mode: str
    timestamp_ms: int | None = None
    offsets: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class KafkaScan:
    """Topics to keyed changelog rows; an upsert row that fails `filter` is a deletion."""

    kind: ClassVar[str] = "kafka-scan"
    table: str
    side: int
    topics: tuple[Topic, ...]
    groups: int
    changelog: ChangelogMode
    key_format: Format | None
    value_format: Format
    columns: tuple[ReadColumn, ...]
    primary_key: tuple[str, ...]
    filter: str | None
    rowtime: str | None
    watermark: str | None
    key: tuple[str, ...]
    drop_null_keys: tuple[int, ...]
    row: tuple[Named, ...]
    schema: DataType
    marks: bool
    on_error: str
    dead_letter_topic: str | None
    startup: ReadFrom
    bounded: ReadFrom
    properties: Mapping[str, str]
    time_zone: str
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Normalize:
    """Upsert rows to a complete changelog, by primary key (ordinals of the row)."""

    kind: ClassVar[str] = "normalize"
    schema: DataType
    key: tuple[int, ...]
    filter: str | None
    update_before: bool
    input: KafkaScan
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Rekey:
    """A changelog keyed anew, after a normaliser that was keyed by the primary key."""

    kind: ClassVar[str] = "rekey"
    side: int
    groups: int
    key: tuple[str, ...]
    drop_null_keys: tuple[int, ...]
    rowtime: str | None
    row: tuple[Named, ...]
    schema: DataType
    time_zone: str
    input: Normalize
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


JoinInput: TypeAlias = KafkaScan | Rekey


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a regular join: its row and how its state is laid out."""

    schema: DataType
    layout: SideLayout
    unique_key: tuple[int, ...]
    upsert: bool


@dataclass(frozen=True, slots=True)
class TemporalSide:
    """One input of a temporal join."""

    schema: DataType
    upsert: bool


@dataclass(frozen=True, slots=True)
class RegularJoin:
    """Two changelogs joined over all their rows."""

    kind: ClassVar[str] = "regular-join"
    join_type: OneOf["inner", "left"]
    left: Side
    right: Side
    key: DataType
    filter_nulls: tuple[bool, ...]
    residual: str | None
    where: str | None
    update_before: bool
    pair_by: tuple[str, ...] | None
    time_zone: str
    inputs: tuple[JoinInput, JoinInput]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class TemporalJoin:
    """Each left row with the version of the right row that was valid at the left row's time."""

    kind: ClassVar[str] = "temporal-join"
    join_type: OneOf["inner", "left"]
    left: TemporalSide
    right: TemporalSide
    key: DataType
    filter_nulls: tuple[bool, ...]
    residual: str | None
    where: str | None
    update_before: bool
    pair_by: tuple[str, ...] | None
    left_topics: tuple[int, ...]
    right_topics: tuple[int, ...]
    idle_timeout_ms: int
    watermark_policy: str
    time_zone: str
    inputs: tuple[JoinInput, JoinInput]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


Operator: TypeAlias = KafkaScan | Normalize | RegularJoin | TemporalJoin


@dataclass(frozen=True, slots=True)
class Project:
    """The SELECT list over the columns of its input."""

    kind: ClassVar[str] = "project"
    select: tuple[Named, ...]
    schema: DataType
    input: Operator
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Rows to records of one topic.

    With `exchange`, rows of one sink key come from several join keys: they are brought together by
    sink key once more, deletions first.
    """

    kind: ClassVar[str] = "kafka-sink"
    name: str
    table: str
    topic: str
    mode: ChangelogMode
    key_format: Format | None
    value_format: Format
    key_fields: tuple[str, ...]
    key_prefix: str
    value_includes_key: bool
    schema: DataType
    guarantee: str
    transactional_id_prefix: str | None
    properties: Mapping[str, str]
    exchange: bool
    input: Project


Physical: TypeAlias = (
    KafkaSink | Project | RegularJoin | TemporalJoin | Normalize | Rekey | KafkaScan
)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One INSERT, or one query without a sink, ready to run."""

    name: str
    root: KafkaSink | Project
    warnings: tuple[str, ...]


def to_json(node: Physical) -> dict[str, Json]:
    """The node and its inputs as the kernel reads them."""
    found = _json(node)
    if not isinstance(found, dict):
        raise TypeError(f"{type(node).__name__} is no plan node")
    return found


def inputs_of(node: Physical) -> tuple[Physical, ...]:
    """The nodes that feed this one."""
    match node:
        case RegularJoin(inputs=inputs) | TemporalJoin(inputs=inputs):
            return inputs
        case KafkaScan():
            return ()
        case _:
            return (node.input,)


def _json(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case DataType():
            return _json(value.spark_json())
        case Mapping():
            return {str(k): _json(v) for k, v in value.items()}
        case tuple() | list():
            return [_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            kind = getattr(value, "kind", None)
            names = {f.name: f.metadata.get("json") or _camel(f.name) for f in fields(value)}
            own = {json: _json(getattr(value, name)) for name, json in names.items()}
            return own if kind is None else {"kind": kind} | own
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a plan")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)

"""Physical nodes: what runs. Their JSON is the contract with the kernel.

Expressions are Spark SQL text over backticked column names; field names become camelCase in JSON.
The nodes say all that runs per row; how a query is started is not theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias
from typing import Literal as OneOf

from spark_jobs.options.formats import Format
from spark_jobs.plan.nodes.parts import (
    Advice,
    AggregateCall,
    Debezium,
    Gate,
    InputFaults,
    Named,
    Output,
    ReadColumn,
    ReadFrom,
    RejectLimit,
    Side,
    Timing,
    Topic,
)
from spark_jobs.sql.catalog import ChangelogMode
from spark_jobs.sql.logical import JoinType
from spark_jobs.sql.types.data_types import DataType


@dataclass(frozen=True, slots=True)
class Alignment:
    """Tables of one group keep their watermarks within a drift of each other while being read."""

    group: str
    max_drift_ms: int


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
    alignment: Alignment | None = None
    debezium: Debezium | None = None
    reject_limit: RejectLimit | None = None


@dataclass(frozen=True, slots=True)
class Normalize:
    """Upsert rows to a complete changelog, by primary key (ordinals of the row).

    Rows that fail the filter of `output` stay in state. `positions`: rows carry their place in the
    database's log, by which repeated events are known. `key_changes`: `KeyChanges` follows.
    """

    kind: ClassVar[str] = "normalize"
    id: str
    schema: DataType
    key: tuple[int, ...]
    output: Output
    timing: Timing
    inputs: "tuple[JoinInput, ...]"
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]
    positions: bool = False
    key_changes: bool = False


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Heals the rows of a normaliser whose primary key has changed from the rows that they were.

    All other rows pass. One half of a key change waits `wait_ms` for the other.
    """

    kind: ClassVar[str] = "key-changes"
    id: str
    schema: DataType
    key: tuple[int, ...]
    wait_ms: int
    output: Output
    timing: Timing
    inputs: "tuple[JoinInput, ...]"
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Rekey:
    """An operator's changelog as input of the next: keyed anew, projected.

    `ordered`: the changes of a row keep their order; otherwise retractions of a batch come first,
    which is right after operators that emit at most one change of each sign per row and batch.
    """

    kind: ClassVar[str] = "rekey"
    side: int
    groups: int
    key: tuple[str, ...]
    drop_null_keys: tuple[int, ...]
    rowtime: str | None
    row: tuple[Named, ...]
    schema: DataType
    ordered: bool
    time_zone: str
    input: "Stateful"
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


JoinInput: TypeAlias = KafkaScan | Rekey


@dataclass(frozen=True, slots=True)
class RegularJoin:
    """Two changelogs joined over all their rows."""

    kind: ClassVar[str] = "regular-join"
    id: str
    join_type: JoinType
    left: Side
    right: Side
    key: DataType
    filter_nulls: tuple[bool, ...]
    residual: str | None
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]
    input_faults: InputFaults = "repair"


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """Three or more changelogs that share one join key: side i + 1 joins what is left of it.

    `join_types` and `residuals` are those of the sides from the second on; a residual is over the
    columns of all sides up to its own.
    """

    kind: ClassVar[str] = "multi-join"
    id: str
    join_types: tuple[OneOf["inner", "left"], ...]
    sides: tuple[Side, ...]
    schema: DataType
    key: DataType
    filter_nulls: tuple[bool, ...]
    residuals: tuple[str | None, ...]
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]
    input_faults: InputFaults = "repair"


@dataclass(frozen=True, slots=True)
class IntervalJoin:
    """Two append-only inputs: left time within [right time + lower_ms, right time + upper_ms]."""

    kind: ClassVar[str] = "interval-join"
    id: str
    join_type: OneOf["inner", "left", "right", "full"]
    time: OneOf["event", "processing"]
    lower_ms: int
    upper_ms: int
    min_cleanup_ms: int
    left: Side
    right: Side
    key: DataType
    filter_nulls: tuple[bool, ...]
    residual: str | None
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class TemporalJoin:
    """Each left row with the version of the right row that is valid at its time.

    `time` event: the version at the left row's event time; `late_probe` rows are dropped, or joined
    at the next watermark. `time` processing: the newest version when the row comes, behind a gate.
    The larger `ttl_ms` of `timing` is Flink's idle state retention, for both sides of a key.
    """

    kind: ClassVar[str] = "temporal-join"
    id: str
    join_type: OneOf["inner", "left"]
    time: OneOf["event", "processing"]
    gate: Gate
    left: Side
    right: Side
    key: DataType
    filter_nulls: tuple[bool, ...]
    residual: str | None
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]
    late_probe: OneOf["drop", "join"] = "drop"


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """The first or last row of each key. `on_watermark`: the first row waits for the watermark."""

    kind: ClassVar[str] = "deduplicate"
    id: str
    keep: OneOf["first", "last"]
    time: OneOf["event", "processing"]
    on_watermark: bool
    generate_insert: bool
    schema: DataType
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY the join key of its input; `schema` is key columns, then one per call."""

    kind: ClassVar[str] = "aggregate"
    id: str
    input_schema: DataType
    key: DataType
    calls: tuple[AggregateCall, ...]
    schema: DataType
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class SinkMaterializer:
    """The rows of each sink key as an ordered list, where the query's own key is another.

    `upsert_key`: ordinals that tell rows apart, empty for all columns. `strategy` deduplicate
    shows the newest; nothing and error wait for the watermark, then keep the first or fail.
    """

    kind: ClassVar[str] = "sink-materializer"
    id: str
    strategy: OneOf["deduplicate", "nothing", "error"]
    upsert_key: tuple[int, ...]
    schema: DataType
    output: Output
    timing: Timing
    inputs: tuple[JoinInput, ...]
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


Stateful: TypeAlias = (
    Normalize
    | KeyChanges
    | RegularJoin
    | MultiJoin
    | IntervalJoin
    | TemporalJoin
    | Deduplicate
    | Aggregate
    | SinkMaterializer
)
Operator: TypeAlias = KafkaScan | Stateful


@dataclass(frozen=True, slots=True)
class Project:
    """The SELECT list over the columns of its input."""

    kind: ClassVar[str] = "project"
    select: tuple[Named, ...]
    schema: DataType
    time_zone: str
    input: Operator
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a query without a sink, for explain; several inputs are a UNION ALL."""

    kind: ClassVar[str] = "results"
    inputs: tuple[Project, ...]


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Rows to records of one topic; several inputs are a UNION ALL.

    With `exchange`, rows of one sink key come from several join keys: they are brought together by
    sink key once more, deletions first. `on_error` is of results too large for the topic.
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
    inputs: tuple[Project, ...]
    on_error: str = "fail"
    dead_letter_topic: str | None = None


Physical: TypeAlias = KafkaSink | Results | Project | Rekey | Operator


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One INSERT, or one query without a sink, ready to run."""

    name: str
    root: KafkaSink | Results
    advice: tuple[Advice, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may go wrong, in words."""
        return tuple(advice.text for advice in self.advice if advice.is_warning)


def inputs_of(node: Physical) -> tuple[Physical, ...]:
    """The nodes that feed this one."""
    match node:
        case KafkaScan():
            return ()
        case Rekey() | Project():
            return (node.input,)
        case _:
            return node.inputs

"""Physical nodes: what runs. Their JSON is the contract with the kernel.

Expressions are Spark SQL text over backticked column names; field names become camelCase in JSON.
The nodes describe all that runs per row, and nothing about how a query is started. What depends on
the whole tree (ids, topic indexes, gating) is filled in by plan/strategy/numbering.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias, assert_never
from typing import Literal as OneOf

from spark_jobs.options.formats import Format
from spark_jobs.plan.nodes.parts import (
    INLINE,
    PLANNER_ONLY,
    UNLESS_DEFAULT,
    Advice,
    AggregateCall,
    Debezium,
    Gate,
    InputFaults,
    Lookup,
    MetadataColumn,
    Named,
    Output,
    Pair,
    PythonColumn,
    ReadColumn,
    ReadFrom,
    RejectLimit,
    Side,
    SortColumn,
    Timing,
    Topic,
)
from spark_jobs.sql.catalog import ChangelogMode
from spark_jobs.sql.logical import JoinType
from spark_jobs.sql.types.data_types import DataType

BUILD_SIDE = 1
"""The side of a temporal join that is looked up."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Tables of one group keep their watermarks within a drift of each other while being read."""

    group: str
    max_drift_ms: int


@dataclass(frozen=True, slots=True)
class KafkaScan:
    """Topics to keyed changelog rows; an upsert row that fails `filter` is a deletion.

    `id` is its name within the query, as a table may be read in several places. `gated`: probe rows
    further on wait until what it finds at the first start is loaded. `idle_timeout_ms`: after how
    long a partition without records no longer holds the watermark back (0: never).

    With a `pattern` it has one topic in the plan, `/pattern/`, which stands for those that match
    when the query starts and every `discovery_ms` (plan/strategy/matched_topics.py).
    """

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
    pattern: str | None = field(default=None, metadata=PLANNER_ONLY)
    discovery_ms: int = field(default=0, metadata=PLANNER_ONLY)
    id: str = field(default="", metadata=PLANNER_ONLY)
    gated: bool = field(default=False, metadata=PLANNER_ONLY)
    idle_timeout_ms: int = field(default=0, metadata=PLANNER_ONLY)


@dataclass(frozen=True, slots=True)
class Normalize:
    """Upsert rows to a complete changelog, by primary key (ordinals of the row).

    Rows that fail the filter of `output` stay in state. `positions`: rows carry their place in the
    database's log, by which repeated events are known. `key_changes`: `KeyChanges` follows.
    """

    kind: ClassVar[str] = "normalize"
    schema: DataType
    key: tuple[int, ...]
    positions: bool = False
    key_changes: bool = False


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Heals the rows of a normaliser whose primary key has changed from the rows that they were.

    All other rows pass. One half of a key change waits `wait_ms` for the other.
    """

    kind: ClassVar[str] = "key-changes"
    schema: DataType
    key: tuple[int, ...]
    wait_ms: int


@dataclass(frozen=True, slots=True)
class RegularJoin:
    """Two changelogs joined over all their rows."""

    kind: ClassVar[str] = "regular-join"
    join_type: JoinType
    pair: Pair = field(metadata=INLINE)
    input_faults: InputFaults = "repair"


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """Three or more changelogs that share one join key: side i + 1 joins what is left of it.

    `join_types` and `residuals` are those of the sides from the second on; a residual is over the
    columns of all sides up to its own.
    """

    kind: ClassVar[str] = "multi-join"
    join_types: tuple[OneOf["inner", "left"], ...]
    sides: tuple[Side, ...]
    schema: DataType
    key: DataType
    filter_nulls: tuple[bool, ...]
    residuals: tuple[str | None, ...]
    input_faults: InputFaults = "repair"


@dataclass(frozen=True, slots=True)
class IntervalJoin:
    """Two inputs: left time within [right time + lower_ms, right time + upper_ms].

    `allowed_lateness_ms`: how much longer rows are kept and the watermark held back for late rows;
    as in Flink, SQL has no word for it. `changes`: rows are also updated or deleted, so that
    results are taken back. `early_fire_ms`: how long after its time an outer row without a partner
    is padded, if not only when no partner can come any more.
    """

    kind: ClassVar[str] = "interval-join"
    join_type: OneOf["inner", "left", "right", "full"]
    time: OneOf["event", "processing"]
    lower_ms: int
    upper_ms: int
    min_cleanup_ms: int
    pair: Pair = field(metadata=INLINE)
    allowed_lateness_ms: int = field(default=0, metadata=UNLESS_DEFAULT)
    changes: bool = field(default=False, metadata=UNLESS_DEFAULT)
    early_fire_ms: int | None = field(default=None, metadata=UNLESS_DEFAULT)

    @property
    def kept_ms(self) -> tuple[int, int]:
        """How far behind the watermark rows of the left and the right side are kept.

        Rows that change wait for the last change of a row that they may be joined with.
        """
        if self.lower_ms > self.upper_ms:
            return 0, 0
        left, right = max(-self.lower_ms, 0), max(self.upper_ms, 0)
        if self.changes:
            left, right = right - self.lower_ms, left + self.upper_ms
        return left + self.min_cleanup_ms, right + self.min_cleanup_ms


@dataclass(frozen=True, slots=True)
class TemporalJoin:
    """Each left row with the version of the right row that is valid at its time.

    `time` event: the version at the left row's event time; `late_probe` rows are dropped, or joined
    at the next watermark. `time` processing: the newest version when the row comes, behind a gate.
    The larger `ttl_ms` of `timing` is Flink's idle state retention, for both sides of a key.
    `probe_changes`: left rows are updated or deleted, so that what each was joined with is kept.
    """

    kind: ClassVar[str] = "temporal-join"
    join_type: OneOf["inner", "left"]
    time: OneOf["event", "processing"]
    gate: Gate
    pair: Pair = field(metadata=INLINE)
    late_probe: OneOf["drop", "join"] = "drop"
    probe_changes: bool = field(default=False, metadata=UNLESS_DEFAULT)


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """Each left row with the rows of a table in a database, as they are when it comes.

    Rows are looked up in front of the operator; only the left input is among its inputs.
    `probe_changes`: as of a temporal join, and the only state that there is.
    """

    kind: ClassVar[str] = "lookup-join"
    join_type: OneOf["inner", "left"]
    lookup: Lookup
    pair: Pair = field(metadata=INLINE)
    probe_changes: bool = field(default=False, metadata=UNLESS_DEFAULT)


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """The first or last row of each key. `on_watermark`: the first row waits for the watermark."""

    kind: ClassVar[str] = "deduplicate"
    keep: OneOf["first", "last"]
    time: OneOf["event", "processing"]
    on_watermark: bool
    generate_insert: bool
    schema: DataType


@dataclass(frozen=True, slots=True)
class Rank:
    """Top-N: the rows `first` to `last` under each key of its input, in order.

    `number`: the name of the column behind those of `schema` that says the place; None: there is
    none. `append_only`: rows behind `last` need not be kept.
    """

    kind: ClassVar[str] = "rank"
    first: int
    last: int
    order: tuple[SortColumn, ...]
    append_only: bool
    number: str | None
    schema: DataType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY the join key of its input; `schema` is key columns, then one per call.

    `no_input`: no row ever comes and there is no key: the one row leaves at the first start.
    """

    kind: ClassVar[str] = "aggregate"
    input_schema: DataType
    key: DataType
    calls: tuple[AggregateCall, ...]
    schema: DataType
    no_input: bool = field(default=False, metadata=UNLESS_DEFAULT)


@dataclass(frozen=True, slots=True)
class SinkMaterializer:
    """The rows of each sink key as an ordered list, where the query's own key is another.

    `upsert_key`: ordinals by which rows differ, empty for all columns. `strategy` deduplicate
    shows the newest; nothing and error wait for the watermark, then keep the first or fail.
    """

    kind: ClassVar[str] = "sink-materializer"
    strategy: OneOf["deduplicate", "nothing", "error"]
    upsert_key: tuple[int, ...]
    schema: DataType


@dataclass(frozen=True, slots=True)
class Unnest:
    """Each row with each element of the collection in its column `collection`; keeps no state.

    `elements` are the columns behind those of `schema`. `spreads`: an element is a ROW whose fields
    are columns. `ordinality`: the last column is the element's place. `residual`, over all columns,
    says which elements a left join has.
    """

    kind: ClassVar[str] = "unnest"
    join_type: OneOf["inner", "left"]
    collection: int
    spreads: bool
    ordinality: bool
    residual: str | None
    schema: DataType
    elements: DataType


TwoSided: TypeAlias = RegularJoin | IntervalJoin | TemporalJoin | LookupJoin
Machine: TypeAlias = (
    TwoSided
    | MultiJoin
    | Normalize
    | KeyChanges
    | Deduplicate
    | Rank
    | Aggregate
    | SinkMaterializer
    | Unnest
)


@dataclass(frozen=True, slots=True)
class Stateful:
    """An operator with state: its machine, what enters and leaves it, how time reaches it.

    `passes_loaded`: an operator further on needs to know which partitions are loaded.
    """

    id: str
    machine: Machine = field(metadata=INLINE)
    output: Output
    timing: Timing
    inputs: "tuple[JoinInput, ...]"
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]
    passes_loaded: bool = field(default=False, metadata=PLANNER_ONLY)

    @property
    def kind(self) -> str:
        return self.machine.kind

    @property
    def sides(self) -> tuple[Side, ...]:
        """The inputs of a join, left to right; nothing for an operator of one input."""
        match self.machine:
            case RegularJoin() | IntervalJoin() | TemporalJoin() | LookupJoin() as join:
                return join.pair.left, join.pair.right
            case MultiJoin(sides=sides):
                return sides
            case (
                Normalize()
                | KeyChanges()
                | Deduplicate()
                | Rank()
                | Aggregate()
                | SinkMaterializer()
                | Unnest()
            ):
                return ()
            case _:
                assert_never(self.machine)

    @property
    def side_names(self) -> tuple[str, ...]:
        """What people call its inputs."""
        if isinstance(self.machine, TwoSided):
            return ("left", "right")
        return tuple(f"side {i + 1}" for i in range(len(self.sides))) or ("input",)

    @property
    def gated_topics(self) -> tuple[int, ...]:
        """The indexes of the topics that have to be loaded before its gate opens."""
        if not isinstance(self.machine, TemporalJoin) or self.machine.gate.kind != "loaded":
            return ()
        return tuple(sorted({stream.topic for stream in self.timing.inputs[BUILD_SIDE]}))


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
    input: Stateful
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]


JoinInput: TypeAlias = KafkaScan | Rekey
Operator: TypeAlias = KafkaScan | Stateful


@dataclass(frozen=True, slots=True)
class Project:
    """The SELECT list over the columns of its input, and those that Python computes of them.

    `where`: which rows go on, where Python computes it. A row with a key that does not pass takes
    the one away that the key had.
    """

    kind: ClassVar[str] = "project"
    select: tuple[Named, ...]
    schema: DataType
    time_zone: str
    input: Operator
    changelog_mode: str
    unique_keys: tuple[tuple[str, ...], ...]
    computed: tuple[PythonColumn, ...] = field(default=(), metadata=UNLESS_DEFAULT)
    where: str | None = field(default=None, metadata=UNLESS_DEFAULT)


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a query without a sink, for explain; several inputs are a UNION ALL."""

    kind: ClassVar[str] = "results"
    inputs: tuple[Project, ...]


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Rows to records of one topic; several inputs are a UNION ALL.

    With `exchange`, rows of one sink key come from several join keys: they are brought together by
    sink key once more, retractions first. `on_error` is of results too large for the topic.
    `metadata`: columns of the schema that are in neither key nor value.
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
    metadata: tuple[MetadataColumn, ...] = field(default=(), metadata=UNLESS_DEFAULT)


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

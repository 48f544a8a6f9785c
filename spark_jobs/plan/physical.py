"""Physical nodes: what runs. Their JSON is the contract with the kernel.

Expressions are Spark SQL text over backticked column names; field names become camelCase in JSON.
The nodes say all that runs per row; how a query is started is not theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import ClassVar, TypeAlias
from typing import Literal as OneOf

from spark_jobs.sql.catalog import ChangelogMode
from spark_jobs.sql.logical import JoinType
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


@dataclass(frozen=True, slots=True)
class TopicTime:
    """A stream of watermarks that an input follows: a topic, or another operator's `forward`."""

    topic: int
    idle_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Timing:
    """How time reaches an operator and leaves it; all times in milliseconds.

    `inputs`: per side, whose watermarks count (empty: the operator asks for none). `forward`: the
    topic index under which its own watermark goes on, None where nobody below asks. `tick_ms`:
    how often the clock must tick for it, 0 for its other news alone (partition counts, the end),
    None where the clock is not among its inputs. `ttl_ms`: state TTL per side, 0 for ever.
    """

    inputs: tuple[tuple[TopicTime, ...], ...] = ()
    policy: str = "min"
    forward: int | None = None
    tick_ms: int | None = None
    ttl_ms: tuple[int, ...] = (0, 0)


@dataclass(frozen=True, slots=True)
class Output:
    """What becomes of an operator's rows before they leave it.

    `where` filters them; `pair_by` is the sink's key over them, set where an upsert sink follows
    directly: a -U or -D then leaves, as -D, only if the batch does not add its key again.
    `late_topic`: where rows go, as JSON, that the operator drops for being late (None: nowhere).
    """

    where: str | None
    pair_by: tuple[str, ...] | None
    time_zone: str
    late_topic: str | None = None


@dataclass(frozen=True, slots=True)
class Normalize:
    """Upsert rows to a complete changelog, by primary key (ordinals of the row)."""

    kind: ClassVar[str] = "normalize"
    id: str
    schema: DataType
    key: tuple[int, ...]
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
class Side:
    """One input of a join: its row, how its state is laid out, whether old rows are missing."""

    schema: DataType
    layout: SideLayout
    unique_key: tuple[int, ...]
    upsert: bool


InputFaults: TypeAlias = OneOf["repair", "trust"]
"""What becomes of changes that no changelog holds: ignored or made whole, or taken as they come."""


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
class Gate:
    """When the probe rows of a processing-time temporal join may look at the build side.

    `none`: at once. `loaded`: when every build partition has passed the end that it had at the
    first start. `watermark`: when the build side's watermark has reached `at_ms`. After
    `timeout_ms` (0: never) of waiting, `on_timeout` decides. `table` names the build side.
    """

    kind: OneOf["none", "loaded", "watermark"]
    at_ms: int = 0
    timeout_ms: int = 0
    on_timeout: OneOf["fail", "go"] = "fail"
    table: str = ""


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
class AggregateCall:
    """An aggregate function over ordinals of the input row (None: COUNT(*), no FILTER)."""

    function: OneOf["COUNT", "SUM", "MIN", "MAX", "AVG"]
    argument: int | None
    distinct: bool
    filter: int | None
    type: DataType


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
    inputs: tuple[Project, ...]


Physical: TypeAlias = KafkaSink | Results | Project | Rekey | Operator


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One INSERT, or one query without a sink, ready to run."""

    name: str
    root: KafkaSink | Results
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
        case KafkaScan():
            return ()
        case Rekey() | Project():
            return (node.input,)
        case _:
            return node.inputs


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

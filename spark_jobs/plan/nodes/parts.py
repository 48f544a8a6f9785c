"""What physical nodes are made of: columns, topics, sides of a join, how time reaches them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.functions import AggregateFunction

SideLayout: TypeAlias = OneOf["join-key-contains-unique-key", "has-unique-key", "no-unique-key"]

InputFaults: TypeAlias = OneOf["repair", "trust"]
"""Changes that no changelog holds are repaired (ignored, made whole), or trusted as they come."""


INLINE = {"json": "inline"}
"""Metadata of a field whose own fields stand in its place in the JSON (nodes/plan_json.py)."""

PLANNER_ONLY = {"json": "left out"}
"""Metadata of a field that Python reads: in no JSON, so neither in fingerprints nor digests."""

UNLESS_DEFAULT = {"left out": "by default"}
"""Metadata of a field that is in the JSON only where it does not have its default."""

FIRST_FORWARD = 1 << 14
"""Topic indexes from here on are operators whose watermark goes on (kernel/Spec.scala, Timing)."""


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the column it makes."""

    name: str
    expr: str


@dataclass(frozen=True, slots=True)
class PythonColumn:
    """A column that the Python function `target` ('module.function') computes.

    `schema` is a ROW of this column alone. `arguments` are over the columns before it.
    """

    target: str
    arguments: tuple[str, ...]
    argument_types: DataType
    schema: DataType

    @property
    def name(self) -> str:
        return self.schema.fields[0].name

    @property
    def type(self) -> DataType:
        return self.schema.fields[0].type


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its place in the query's list of topics; source ids are made of that place."""

    name: str
    index: int = -1  # until the tree is numbered


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of the table and where in the record it stands; `sql_type` is INT or TIME."""

    name: str
    type: DataType
    sql_type: str
    nullable: bool
    origin: OneOf["value", "key", "metadata"] = field(metadata={"json": "from"})
    field: str


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """A column of a sink that becomes the `timestamp` or the `headers` of its records."""

    key: str
    column: str


@dataclass(frozen=True, slots=True)
class Debezium:
    """How a table's Debezium events are read.

    `unwrapped`: values are rows of ExtractNewRecordState. `full_before`: the row before is complete
    (REPLICA IDENTITY FULL) and is trusted. `heals`: a value that the event leaves out is taken from
    the row in state; otherwise such a record is rejected. `positions`: rows carry their source
    position, so that replayed events are known. `follows_keys`: rows say that their primary key has
    changed. `retracts_on_truncate`: TRUNCATE retracts all rows;
    otherwise it is rejected. `timestamp_unit` and `decimals` are for JSON without a schema.
    """

    unwrapped: bool = False
    full_before: bool = False
    heals: bool = False
    positions: bool = False
    follows_keys: bool = False
    retracts_on_truncate: bool = False
    timestamp_unit: OneOf["millis", "micros", "nanos"] | None = None
    decimals: OneOf["text", "base64"] = "text"


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Where reading starts or ends, in the words of Flink's scan.startup.* and scan.bounded.*."""

    mode: str
    timestamp_ms: int | None = None
    offsets: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class RejectLimit:
    """The job stops when more than `max_share` of a table's last `window` records are bad."""

    max_share: float
    window: int


@dataclass(frozen=True, slots=True)
class TopicTime:
    """A stream of watermarks that an input follows: a topic, or another operator's `forward`."""

    topic: int
    idle_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Timing:
    """How time reaches an operator and leaves it; all times in milliseconds.

    `inputs`: per side, whose watermarks count (empty: the operator follows none). `forward`: the
    topic index under which its own watermark goes on, None where no operator further on follows
    it. `tick_ms`: how often the clock must tick for it, 0 for its other news alone (partition
    counts, the end), None where it has no clock. `ttl_ms`: state TTL per side, 0 for ever.
    `listens`, `forwards`: whether `inputs` and `forward` are filled when the tree is numbered.
    """

    inputs: tuple[tuple[TopicTime, ...], ...] = ()
    policy: str = "min"
    forward: int | None = None
    tick_ms: int | None = None
    ttl_ms: tuple[int, ...] = (0, 0)
    listens: bool = field(default=False, metadata=PLANNER_ONLY)
    forwards: bool = field(default=False, metadata=PLANNER_ONLY)


@dataclass(frozen=True, slots=True)
class Output:
    """What happens to an operator's rows before they leave it.

    `where` filters them; `pair_by` is the sink's key over them, set where an upsert sink follows
    directly: a -U or -D then leaves, as -D, only if the batch does not add its key again.
    `late_topic`: where rows go, as JSON, that the operator drops for being late (None: nowhere).
    `shown`: the SELECT list that follows, by which changes cancel out; None where the rows
    themselves tell, because the list has all their columns.
    """

    where: str | None
    pair_by: tuple[str, ...] | None
    time_zone: str
    late_topic: str | None = None
    shown: tuple[str, ...] | None = field(default=None, metadata=UNLESS_DEFAULT)


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join: its row, how its state is laid out, whether old rows are missing."""

    schema: DataType
    layout: SideLayout
    unique_key: tuple[int, ...]
    upsert: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """What all joins of two inputs have: rows of equal keys meet where `residual` holds.

    `filter_nulls`: the columns of the key in which NULL equals nothing.
    """

    left: Side
    right: Side
    key: DataType
    filter_nulls: tuple[bool, ...]
    residual: str | None


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
class SortColumn:
    """A column that rows are ordered by: its ordinal in the row."""

    ordinal: int
    descends: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class LookupColumn:
    """A column of a table in a database; `sql_type` is the type that SQL declares."""

    name: str
    type: DataType
    sql_type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class Cache:
    """What an executor keeps of the rows that it has looked up; None is no limit."""

    max_rows: int | None
    expire_after_write_ms: int | None
    expire_after_access_ms: int | None
    missing_keys: bool


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table in a database, and how rows of it are looked up.

    `key`: the column that each column of the join key is compared with, by its place in `columns`.
    `row` is what goes on of a row that passes `filter`. `properties` are the options that say where
    the table is, references to secrets unresolved. `cache`: None where every row is asked for.
    """

    table: str
    columns: tuple[LookupColumn, ...]
    key: tuple[int, ...]
    filter: str | None
    row: tuple[Named, ...]
    properties: Mapping[str, str]
    max_retry_timeout_ms: int
    max_retries: int
    cache: Cache | None
    time_zone: str


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function over ordinals of the input row (None: COUNT(*), no FILTER).

    `append_only`: rows are only inserted, which matters to functions that keep values in order.
    """

    function: AggregateFunction
    argument: int | None
    distinct: bool
    filter: int | None
    type: DataType
    takes_nulls: bool = field(default=False, metadata=UNLESS_DEFAULT)
    separator: str = field(default="", metadata=UNLESS_DEFAULT)
    append_only: bool = field(default=False, metadata=UNLESS_DEFAULT)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a plan; `add` are lines of SQL, for the job or for WITH.

    A warning is about what may go wrong, other advice about what may be better.
    """

    text: str
    add: tuple[str, ...] = ()
    is_warning: bool = False

    def lines(self) -> list[str]:
        return [f"- {self.text}", *(f"    {line}" for line in self.add)]


def and_words(names: Iterable[str]) -> str:
    """
    >>> and_words(["a", "b", "c"])
    'a, b and c'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last

"""What a CREATE TABLE declares: columns, keys, event time, options, and how the rows change."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spark_jobs.options.connectors import OnError, TableOptions
from spark_jobs.options.formats import Format
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Expr
from spark_jobs.sql.types.type_text import Length

ColumnKind: TypeAlias = Literal["physical", "computed", "metadata"]
ChangelogMode: TypeAlias = Literal["append", "upsert", "retract"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A declared column.

    `expr` defines a computed column, over all columns of the table in declaration order.
    `metadata_key` names what a metadata column reads (`value.source.timestamp`, `offset`).
    A virtual metadata column can be read only. `length` is what VARCHAR(n) and its like declare,
    `has_inner_length` that a part of the type has one.
    """

    name: str
    type: DataType
    kind: ColumnKind = "physical"
    expr: Expr | None = None
    metadata_key: str | None = None
    virtual: bool = False
    length: Length | None = None
    has_inner_length: bool = False

    @property
    def writable(self) -> bool:
        return self.kind == "physical" or (self.kind == "metadata" and not self.virtual)


@dataclass(frozen=True, slots=True)
class Watermark:
    """`WATERMARK FOR column AS expr`; the expression is over all columns of the table."""

    column: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table; `options` is what its WITH says, references unresolved."""

    name: str
    columns: tuple[TableColumn, ...]
    options: TableOptions
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None

    @property
    def connector(self) -> str:
        return self.options.connector

    @property
    def is_looked_up(self) -> bool:
        """Whether it is a table of a database, whose rows are read by key when they are needed."""
        return self.connector == "jdbc"

    @property
    def topics(self) -> tuple[str, ...]:
        return self.options.kafka.topics or ()

    @property
    def topic_pattern(self) -> str | None:
        """What the names of its topics match, where they are not listed."""
        return self.options.kafka.topic_pattern

    @property
    def value_format(self) -> Format | None:
        return self.options.value_format

    @property
    def key_format(self) -> Format | None:
        return self.options.key_format

    @property
    def key_fields(self) -> tuple[str, ...]:
        """Columns in the record key: `key.fields`, or the primary key of an upsert-kafka table."""
        if self.connector == "upsert-kafka":
            return self.primary_key
        return self.options.kafka.key_fields or ()

    @property
    def key_prefix(self) -> str:
        return self.options.kafka.key_prefix or ""

    @property
    def value_includes_key(self) -> bool:
        return self.options.kafka.value_fields == "ALL"

    @property
    def properties(self) -> dict[str, str]:
        return self.options.properties

    @property
    def is_debezium(self) -> bool:
        """Whether its records are Debezium's, whole or unwrapped."""
        return self.holds_events or self.unwrapped

    @property
    def changelog(self) -> ChangelogMode:
        """How rows of this table change when it is read.

        A table of Debezium's events with a primary key is an upsert table: its `before` rows are
        often incomplete (a database's replica identity decides), so they are not trusted unless
        the table says that they are complete.
        """
        if self.connector == "upsert-kafka" or self.unwrapped:
            return "upsert"
        declared = self.value_format.changelog if self.value_format else "append"
        if declared == "debezium":
            return "upsert" if self.primary_key and not self.full_before else "retract"
        return declared

    @property
    def holds_events(self) -> bool:
        """Whether its values are whole change events of Debezium."""
        return self.value_format is not None and self.value_format.changelog == "debezium"

    @property
    def unwrapped(self) -> bool:
        """Whether its values are rows that were taken out of Debezium's events."""
        return self.options.debezium.unwrapped

    @property
    def full_before(self) -> bool:
        """Whether `before` is a complete row in each event."""
        return self.options.debezium.replica_identity == "full"

    @property
    def on_error(self) -> OnError:
        """What becomes of a bad record, or of a result that is too large."""
        return self.options.kafka.on_error or ("dead-letter" if self.dead_letter_topic else "fail")

    @property
    def dead_letter_topic(self) -> str | None:
        return self.options.kafka.dead_letter_topic

    @property
    def value_columns(self) -> list[TableColumn]:
        """The columns in the record value."""
        in_key_only = () if self.value_includes_key else self.key_fields
        return [c for c in self.columns if c.kind == "physical" and c.name not in in_key_only]

    @property
    def key_places(self) -> tuple[int, ...]:
        """The positions of the primary key's columns, in the order of the key."""
        return tuple(self.index(name) for name in self.primary_key)

    def index(self, name: str) -> int:
        return next(i for i, c in enumerate(self.columns) if c.name == name)

    def column(self, name: str) -> TableColumn:
        return self.columns[self.index(name)]

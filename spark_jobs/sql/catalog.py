"""What a CREATE TABLE declares: columns, keys, event time, options, and how the rows change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spark_jobs.options.connectors import REGISTRY_OPTIONS, given_or_default
from spark_jobs.options.formats import FORMATS, Format
from spark_jobs.options.kinds import parse_duration_ms
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Expr

REGISTRY_TIMEOUT_MS = "rejoin.registry.timeout-ms"
ColumnKind: TypeAlias = Literal["physical", "computed", "metadata"]
ChangelogMode: TypeAlias = Literal["append", "upsert", "retract"]


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    `expr` defines a computed column, over all columns of the table in declaration order.
    `metadata_key` names what a metadata column reads (`value.source.timestamp`, `offset`).
    A virtual metadata column can be read only.
    """

    name: str
    type: DataType
    kind: ColumnKind = "physical"
    expr: Expr | None = None
    metadata_key: str | None = None
    virtual: bool = False

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
    """A declared table; `options` are the WITH options as typed, references unresolved."""

    name: str
    columns: tuple[Column, ...]
    options: Mapping[str, str]
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None

    @property
    def connector(self) -> str:
        return self.options.get("connector", "")

    @property
    def topics(self) -> tuple[str, ...]:
        listed = self.options.get("topic", "").split(";")
        return tuple(t.strip() for t in listed if t.strip())

    @property
    def value_format(self) -> Format | None:
        return self._format("value")

    @property
    def key_format(self) -> Format | None:
        return self._format("key")

    @property
    def key_fields(self) -> tuple[str, ...]:
        """Columns in the record key: `key.fields`, or the primary key of an upsert-kafka table."""
        if self.connector == "upsert-kafka":
            return self.primary_key
        listed = self.options.get("key.fields", "").split(";")
        return tuple(f.strip() for f in listed if f.strip())

    @property
    def key_prefix(self) -> str:
        return self.options.get("key.fields-prefix", "")

    @property
    def value_includes_key(self) -> bool:
        return self.option("value.fields-include") != "EXCEPT_KEY"

    @property
    def properties(self) -> dict[str, str]:
        """Kafka client properties, without the `properties.` prefix."""
        prefix = "properties."
        return {k[len(prefix) :]: v for k, v in self.options.items() if k.startswith(prefix)}

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
        declared = FORMATS[self.value_format.name].changelog if self.value_format else "append"
        if declared == "debezium":
            return "upsert" if self.primary_key and not self.full_before else "retract"
        return declared

    @property
    def holds_events(self) -> bool:
        """Whether its values are whole change events of Debezium."""
        value_format = self.value_format
        return value_format is not None and FORMATS[value_format.name].changelog == "debezium"

    @property
    def unwrapped(self) -> bool:
        """Whether its values are rows that were taken out of Debezium's events."""
        return (self.option("rejoin.debezium.unwrapped") or "").lower() == "true"

    @property
    def full_before(self) -> bool:
        """Whether `before` is a complete row in each event."""
        return self.option("rejoin.debezium.replica-identity") == "full"

    @property
    def on_error(self) -> str:
        """What becomes of a bad record, or of a result that is too large."""
        return self.option("rejoin.on-error") or (
            "dead-letter" if self.dead_letter_topic else "fail"
        )

    @property
    def dead_letter_topic(self) -> str | None:
        return self.option("rejoin.dead-letter.topic")

    def option(self, name: str) -> str | None:
        """The value of a connector option, or its default."""
        return given_or_default(self.connector, name, self.options)

    def index(self, name: str) -> int:
        return next(i for i, c in enumerate(self.columns) if c.name == name)

    def column(self, name: str) -> Column:
        return self.columns[self.index(name)]

    def _format(self, part: Literal["key", "value"]) -> Format | None:
        name = self.options.get(f"{part}.format")
        prefix = f"{part}."
        if name is None and part == "value":
            name, prefix = self.options.get("format"), ""
        if name is None or name not in FORMATS:
            return None
        read = FORMATS[name].read(self.options, prefix)
        return Format(name, read.options | self._registry) if FORMATS[name].registry else read

    @property
    def _registry(self) -> dict[str, str]:
        """What the table says of its formats' registry, for the kernel: durations in ms."""
        given = {n: self.options[n] for n in REGISTRY_OPTIONS if n in self.options}
        timeout_ms = parse_duration_ms(given.pop("rejoin.registry.timeout", "-"))
        return given if timeout_ms is None else {**given, REGISTRY_TIMEOUT_MS: str(timeout_ms)}

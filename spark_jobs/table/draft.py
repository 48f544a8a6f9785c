"""What CREATE TABLE a topic suggests: connector, columns, key, event time, and what was assumed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from spark_jobs.api.text import quoted
from spark_jobs.sql.types.data_types import STRING
from spark_jobs.table.binlog import binlog_columns, named_key, of_one_table
from spark_jobs.table.columns import Column
from spark_jobs.table.event_time import (
    MOST_MS,
    EventTime,
    change_time,
    column_times,
    record_time,
)
from spark_jobs.table.json_columns import BY_VALUES, JsonColumns, csv_columns, json_columns
from spark_jobs.table.keys import RecordKey, in_value, read_key
from spark_jobs.table.registered import Schemas, columns_problem
from spark_jobs.table.sampling import TopicSample
from spark_jobs.table.schema_columns import avro_columns, avro_field, connect_columns
from spark_jobs.table.values import SampledValue, SampledValues, Shape, read_values

Changes: TypeAlias = Literal["append", "upsert", "retract"]

_ADDED = "__"  # fields of ExtractNewRecordState
_OF_FORMAT = (
    "timestamp-format.standard",
    "schema-include",
    "field-delimiter",
    "null-literal",
    "table.include",
    "database.include",
)
_BINLOG = ("canal", "maxwell")
_FORMATS = {
    ("json", "rows"): "json",
    ("json", "unwrapped"): "json",
    ("connect", "unwrapped"): "json",
    ("json", "debezium"): "debezium-json",
    ("connect", "debezium"): "debezium-json",
    ("json", "changelog"): "changelog-json",
    ("json", "canal"): "canal-json",
    ("json", "maxwell"): "maxwell-json",
    ("csv", "rows"): "csv",
    ("json-registry", "rows"): "json-registry",
    ("avro", "rows"): "avro-confluent",
    ("avro", "unwrapped"): "avro-confluent",
    ("avro", "debezium"): "debezium-avro-confluent",
}


@dataclass(frozen=True, slots=True)
class TableTime:
    """The event time of a table; a computed or metadata column has a `declaration` of its own."""

    name: str
    declaration: str | None
    delay_ms: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableDraft:
    """A table over one topic. `rows` are sampled ones; `options` those of formats and records."""

    sample: TopicSample
    shape: Shape
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    changes: Changes
    connector: Literal["kafka", "upsert-kafka"]
    options: dict[str, str]
    time: TableTime | None
    notes: tuple[str, ...]
    rows: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def topic(self) -> str:
        return self.sample.topic


def draft_table(
    sample: TopicSample, schemas: Schemas | None, registry: dict[str, str], quantile: float
) -> TableDraft:
    """The table that a sample suggests, or an empty topic's registered schema.

    `registry`: options that an Avro format needs to reach the schemas, `url` among them. Raises
    FormatError if the topic suggests none, KafkaError if the registry fails.
    """
    newest = None if schemas is None else schemas.newest(sample.topic, "value")
    schema = None if newest is None or newest.kind != "AVRO" else newest.schema
    if schema is not None and not any(r.value is not None for r in sample.records):
        found = _unsampled(schema)
    else:
        found = read_values(sample, schemas)
    key, no_key = read_key(sample, found.values, schemas)
    if found.shape.meaning == "unwrapped" and not _repeats(key, found.values):
        found = replace(found, shape=found.shape._replace(meaning="rows"))
    return _Drafting(sample, found, schema, schemas, registry, quantile).table(key, no_key)


def _repeats(key: RecordKey | None, values: Sequence[SampledValue]) -> bool:
    """Whether the rows have the fields of the key, without which no row is told from another."""
    rows = [value.row for value in values if value.row is not None]
    return key is not None and all(name in row for row in rows for name in key.names)


def _unsampled(schema: Any) -> SampledValues:
    """What a schema alone says of values: Debezium's envelope is known by its fields."""
    names = {f["name"] for f in schema.get("fields", ())} if isinstance(schema, dict) else set()
    is_envelope = {"before", "after", "op"} <= names
    return SampledValues(Shape("avro", "debezium" if is_envelope else "rows"), (), ())


@dataclass(slots=True)
class _Drafting:
    """The parts of a table, made one after the other; `notes` collects what was assumed."""

    sample: TopicSample
    found: SampledValues
    schema: Any
    schemas: Schemas | None
    registry: dict[str, str]
    quantile: float
    notes: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    def table(self, key: RecordKey | None, no_key: str | None) -> TableDraft:
        meaning = self.found.shape.meaning
        if meaning in _BINLOG:
            self.found, self.options, notes = of_one_table(self.sample.topic, self.found)
            self.notes += notes
        columns = self._columns()
        self._note_sample()
        changes = self._changes(key, columns)
        connector: Literal["kafka", "upsert-kafka"] = "kafka"
        primary = key.names if key is not None and changes == "upsert" else ()
        if meaning in _BINLOG:
            primary = self._named_key(columns)
        elif meaning == "rows" and changes == "upsert" and key is not None:
            connector = "upsert-kafka"
            columns = self._upserted(key, columns)
        else:
            columns = self._keyed(key, no_key, columns, changes)
        self._format(key if connector == "upsert-kafka" else None)
        rows = tuple(v.row for v in self.found.values if v.row is not None)
        time = self._time(columns, changes)
        return TableDraft(
            self.sample, self.found.shape, columns, primary, changes, connector, self.options, time,
            tuple(self.notes), rows,
        )  # fmt: skip

    def _changes(self, key: RecordKey | None, columns: tuple[Column, ...]) -> Changes:
        meaning = self.found.shape.meaning
        if meaning in _BINLOG:
            return "retract"
        if meaning == "rows":
            return "upsert" if self._has_upserts(key) else "append"
        keyed = key is not None and in_value(key, {c.name: c for c in columns})
        return "upsert" if keyed else "retract"

    def _named_key(self, columns: tuple[Column, ...]) -> tuple[str, ...]:
        primary = named_key(self.found.values, columns)
        of = "is the one that the records name" if primary else "is missing: the records name none"
        self.notes.append(f"the PRIMARY KEY {of}; changes retract the whole row before")
        return primary

    def _has_upserts(self, key: RecordKey | None) -> bool:
        if key is None or key.connect or self.found.shape.encoding == "connect":
            return False
        return bool(self.sample.compacted or self.sample.has_tombstones)

    def _columns(self) -> tuple[Column, ...]:
        encoding, meaning = self.found.shape
        values = self.found.values
        if encoding == "avro":
            columns = self._avro()
        elif encoding == "csv":
            columns = self._csv(values)
        elif meaning in _BINLOG:
            found, note = binlog_columns(self.found)
            columns = self._json(found, note)
        elif encoding == "connect" and meaning != "rows":
            columns = self._connect(values)
        else:
            if encoding == "connect":
                self.notes.append(
                    "values carry Kafka Connect's schema, which the format json does not remove"
                )
                rows = [{"payload": value.row} for value in values]
            else:
                rows = [row for v in values for row in (v.before, v.row) if row is not None]
            columns = self._json(json_columns(rows))
        if meaning != "unwrapped":
            return columns
        return tuple(c for c in columns if not c.name.startswith(_ADDED))

    def _csv(self, values: Sequence[SampledValue]) -> tuple[Column, ...]:
        columns = csv_columns([value.row for value in values if value.row is not None])
        self.notes.append("records of CSV do not name their fields: give the columns names")
        self.notes.append(BY_VALUES)
        if self.found.delimiter not in (",", None):
            self.options["field-delimiter"] = self.found.delimiter.replace("\t", "\\t")
        typed = {column.name for column in columns if column.type != STRING}
        if any(v.row is not None and v.row[name] is None for v in values for name in typed):
            self.options["null-literal"] = ""
            self.notes.append("an empty field is NULL, as numbers and times have no empty value")
        return columns

    def _json(self, found: JsonColumns, note: str = BY_VALUES) -> tuple[Column, ...]:
        self.notes.append(note)
        if found.standard == "ISO-8601" and any(c.unit == "text" for c in found.columns):
            self.options["timestamp-format.standard"] = "ISO-8601"
        return found.columns

    def _connect(self, values: Sequence[SampledValue]) -> tuple[Column, ...]:
        schema = values[-1].schema or {}
        if self.found.shape.meaning == "debezium":
            fields = {f["field"]: f for f in schema.get("fields", ())}
            schema = fields.get("after", {})
            self.options["schema-include"] = "true"
        self.notes.append("types are those of the newest sampled record's own schema")
        return connect_columns(schema)

    def _avro(self) -> tuple[Column, ...]:
        schema = self.schema
        whose = f"the newest schema of subject {self.sample.topic}-value"
        if schema is None and self.schemas is not None:
            newest = self.found.values[-1].record.value
            schema = self.schemas.of(newest or b"").schema
            whose = "the schema of a newest sampled record"
        self.notes.append(f"types are those of {whose}")
        try:
            if self.found.shape.meaning == "debezium":
                schema = avro_field(schema, "after")
            return avro_columns(schema)
        except (ValueError, KeyError, TypeError) as cause:
            raise columns_problem(self.sample.topic, cause) from cause

    def _note_sample(self) -> None:
        if self.found.others:
            self.notes.append(
                f"not read, as they are of another kind: {'; '.join(self.found.others)}; "
                "'rejoin.on-error' or 'rejoin.dead-letter.topic' says what becomes of such records"
            )

    def _upserted(self, key: RecordKey, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """An upsert-kafka table: the key's columns are its primary key."""
        why = "the topic is compacted" if self.sample.compacted else "the sample has tombstones"
        self.notes.append(f"{why}: a record replaces the row of its key, a null value deletes it")
        if in_value(key, {c.name: c for c in columns}):
            return columns
        self.options["value.fields-include"] = "EXCEPT_KEY"
        self.notes.append("the key is not repeated in the value")
        named = key.names
        return (*key.columns, *(c for c in columns if c.name not in named))

    def _keyed(
        self,
        key: RecordKey | None,
        no_key: str | None,
        columns: tuple[Column, ...],
        changes: Changes,
    ) -> tuple[Column, ...]:
        meaning = self.found.shape.meaning
        if changes == "upsert":
            self.notes.append("the PRIMARY KEY is the record key's")
        elif changes == "retract":
            why = no_key or "the key's fields are not columns of the row"
            self.notes.append(f"no PRIMARY KEY, as {why}: changes retract the whole row before")
            if meaning == "debezium":
                self._identity()
        else:
            self.notes.append(
                "every record is a new row: the topic is not compacted and has no tombstones"
                if self.sample.compacted is False
                else "every record is a new row: no tombstones were seen"
            )
        return columns

    def _identity(self) -> None:
        changed = [v for v in self.found.values if v.op in ("u", "d")]
        if changed and all(v.before is not None for v in changed):
            self.options["rejoin.debezium.replica-identity"] = "full"
            self.notes.append("every sampled update and deletion has the row before it")

    def _format(self, key: RecordKey | None) -> None:
        """Turn the collected options into those of the table, under the names of its formats.

        `key` is that of an upsert-kafka table.
        """
        encoding, meaning = self.found.shape
        name = _FORMATS.get((encoding, meaning), "json")
        own = {k: v for k, v in self.options.items() if k in _OF_FORMAT}
        others = {k: v for k, v in self.options.items() if k not in _OF_FORMAT}
        if encoding in ("avro", "json-registry"):
            own |= self.registry
        found: dict[str, str] = {}
        if key is not None:
            reached = self.registry if key.format in ("avro-confluent", "json-registry") else {}
            found = {"key.format": key.format}
            found |= {f"key.{key.format}.{option}": value for option, value in reached.items()}
        prefix = "" if key is None else "value."
        found[f"{prefix}format"] = name
        found |= {f"{prefix}{name}.{option}": value for option, value in own.items()}
        if meaning == "unwrapped":
            found["rejoin.debezium.unwrapped"] = "true"
        self.options = found | others

    def _time(self, columns: tuple[Column, ...], changes: Changes) -> TableTime | None:
        values = [v for v in self.found.values if v.row is not None]
        if not values or changes == "retract":
            return None
        taken = {column.name for column in columns}
        if changes == "upsert":
            return _of_changes(self.found.shape, values, taken, self.quantile)
        times = column_times(columns, values, self.quantile)
        if times and times[0].disorder.at_quantile <= MOST_MS:
            return _of_column(times, taken)
        note = "no column holds an instant in every record: the event time is the record's"
        return _of_record(record_time(values, self.quantile), taken, note)


def _of_changes(
    shape: Shape, values: Sequence[SampledValue], taken: set[str], quantile: float
) -> TableTime:
    change = change_time(values, quantile)
    if shape.meaning == "rows" or change is None:
        note = "for temporal joins: a version is valid from its record's time on"
        return _of_record(record_time(values, quantile), taken, note)
    name = _free("change_time", taken)
    source = "TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL"
    note = "for temporal joins: a version is valid from its change in the database on"
    return TableTime(name, source, change.disorder.delay_ms, (note, change.disorder.text()))


def _of_record(time: EventTime, taken: set[str], note: str) -> TableTime:
    declaration = "TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL"
    notes = (note, time.disorder.text())
    return TableTime(_free("record_time", taken), declaration, time.disorder.delay_ms, notes)


def _of_column(times: Sequence[EventTime], taken: set[str]) -> TableTime | None:
    best, *rest = times
    if best.column is None:
        return None
    others = [f"another event time: {t.column.name}, {t.disorder.text()}" for t in rest if t.column]
    notes = (f"event time {best.column.name}: {best.disorder.text()}", *others)
    if best.column.is_rowtime:
        return TableTime(best.column.name, None, best.disorder.delay_ms, notes)
    precision = 0 if best.column.unit == "seconds" else 3
    computed = f"AS TO_TIMESTAMP_LTZ({quoted(best.column.name)}, {precision})"
    name = _free(f"{best.column.name}_instant", taken)
    return TableTime(name, computed, best.disorder.delay_ms, notes)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name

"""Encodes rows as Kafka records and decodes them; shares no code with the kernel's formats."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from spark_jobs.options.formats import (
    CanalJsonOptions,
    ChangelogJsonOptions,
    CsvOptions,
    DebeziumJsonOptions,
    Format,
    JsonOptions,
    MaxwellJsonOptions,
)
from spark_jobs.scenario.csv_lines import line_of, values_of
from spark_jobs.scenario.file import Input, Kind
from spark_jobs.scenario.literals import RowLiteral
from spark_jobs.scenario.values import Row, canonical, epoch_ms, json_text, to_json
from spark_jobs.sql.catalog import Table, TableColumn
from spark_jobs.sql.types.data_types import RowField

DEFAULT_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """A Kafka record to write, or one that was read."""

    key: bytes | None
    value: bytes | None
    partition: int = 0
    timestamp_ms: int = DEFAULT_TIMESTAMP_MS
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A row with its kind. Of a tombstone only the key columns are known; the others are NULL."""

    kind: Kind
    row: Row


@dataclass(slots=True)
class Encoder:
    """Encodes the input rows of one table in its format."""

    table: Table
    _before: dict[Row, Row] = field(default_factory=dict)

    def encode(self, inputs: Iterable[Input]) -> list[Record]:
        return [record for row in inputs for record in self._encode(row)]

    def _encode(self, given: Input) -> list[Record]:
        if given.kind == "raw":
            return [_raw_record(given)]
        columns = input_columns(self.table)
        row = dict(zip((c.name for c in columns), row_of(columns, given.values), strict=True))
        value = self._value(given.kind, row)
        if value is _NOTHING:
            return []
        content = value if value is None or isinstance(value, bytes) else _bytes_of(value)
        timestamp = _record_timestamp(columns, row)
        return [Record(self._key(row), content, given.partition, timestamp)]

    def _key(self, row: dict[str, Any]) -> bytes | None:
        table = self.table
        fields = table.key_fields if table.key_format else table.primary_key
        if not fields:
            return None
        prefix = table.key_prefix
        parts = {f.removeprefix(prefix): self._json(table.column(f), row[f]) for f in fields}
        if table.key_format and table.key_format.name == "raw":
            return str(next(iter(parts.values()))).encode()
        return _plain(table.key_format, parts)

    def _value(self, kind: str, row: dict[str, Any]) -> Any:
        table = self.table
        name = table.value_format.name if table.value_format else ""
        data = {c.name: self._json(c, row[c.name]) for c in self._value_columns()}
        if kind not in kinds_of(table):
            raise ValueError(f"{table.name} has no {kind} rows, only {', '.join(kinds_of(table))}")
        if table.connector == "upsert-kafka" or table.unwrapped:
            return None if kind == "-D" else _plain(table.value_format, data)
        match name:
            case "raw":
                [value] = (row[c.name] for c in self._value_columns())
                return value.encode() if isinstance(value, str) else value
            case "json" | "csv":
                return _plain(table.value_format, data)
            case "changelog-json":
                return {"op": kind, "data": data}
            case "canal-json" | "maxwell-json":
                return self._binlog(name == "canal-json", kind, row, data)
            case "debezium-json":
                return self._debezium(kind, row, data)
        raise ValueError(f"{table.name}: scenarios cannot write format {name!r}")

    def _binlog(self, is_canal: bool, kind: str, row: dict[str, Any], data: dict[str, Any]) -> Any:
        """Keep a `-U` until its `+U` arrives, as both are in one record; `old` is the whole row."""
        identity = tuple(row[k] for k in self.table.primary_key)
        if kind == "-U":
            self._before[identity] = tuple(data.items())
            return _NOTHING
        old = dict(self._before.pop(identity, ())) or None
        op = {"+I": "insert", "+U": "update", "-D": "delete"}[kind]
        if is_canal:
            return {"data": [data], "old": old and [old], "type": op.upper()}
        return {"data": data, "old": old, "type": op}

    def _debezium(self, kind: str, row: dict[str, Any], data: dict[str, Any]) -> Any:
        """Keep a `-U` until its `+U` arrives: Debezium writes both in one record."""
        identity = tuple(row[k] for k in self.table.primary_key)
        if kind == "-U":
            self._before[identity] = tuple(data.items())
            return _NOTHING
        old = dict(self._before.pop(identity, ())) or None
        op, before, after = {
            "+I": ("c", None, data),
            "+U": ("u", old, data),
            "-D": ("d", data, None),
        }[kind]
        source = self._debezium_source(row)
        payload = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 0}
        options = self.table.value_format and self.table.value_format.options
        wrapped = isinstance(options, DebeziumJsonOptions) and options.schema_include
        return {"schema": None, "payload": payload} if wrapped else payload

    def _debezium_source(self, row: dict[str, Any]) -> dict[str, Any]:
        source: dict[str, Any] = {"db": "shop", "table": self.table.name, "ts_ms": 0}
        for column in self.table.columns:
            match column.metadata_key:
                case "value.source.timestamp":
                    source["ts_ms"] = epoch_ms(row[column.name])
                case "value.source.database":
                    source["db"] = row[column.name]
                case "value.source.table":
                    source["table"] = row[column.name]
        return source

    def _value_columns(self) -> list[TableColumn]:
        table = self.table
        keys = set(table.key_fields) if table.key_format and not table.value_includes_key else set()
        return [c for c in physical_columns(table) if c.name not in keys]

    def _json(self, column: TableColumn, value: Any) -> Any:
        return to_json(value, column.type, _iso_timestamps(self.table))


def input_columns(table: Table) -> list[TableColumn]:
    """The columns of an input row: all but computed ones, in declaration order."""
    return [c for c in table.columns if c.kind != "computed"]


def physical_columns(table: Table) -> list[TableColumn]:
    """The columns of a result row."""
    return [c for c in table.columns if c.kind == "physical"]


def kinds_of(table: Table) -> tuple[Kind, ...]:
    """The row kinds that records of a table can express."""
    match table.changelog:
        case "append":
            return ("+I",)
        case "upsert" if not table.holds_events:
            return ("+I", "+U", "-D")
        case _:
            return ("+I", "-U", "+U", "-D")


def row_of(columns: Sequence[TableColumn], given: RowLiteral) -> Row:
    """The values of all columns; columns that are not named are NULL."""
    values = [given.get(c.name) for c in columns] if isinstance(given, dict) else given
    return tuple(canonical(v, c.type) for v, c in zip(values, columns, strict=True))


def decode(table: Table, record: Record) -> list[Change]:
    """Decode the row changes in a record that a sink wrote."""
    if record.value is None:
        return [Change("-D", _row(table, _key_values(table, record.key)))]
    name = table.value_format.name if table.value_format else ""
    if name == "raw":
        [column] = physical_columns(table)
        text = record.value if column.type.name == "BYTES" else record.value.decode()
        return [Change("+I", (text,))]
    if isinstance(options := table.value_format and table.value_format.options, CsvOptions):
        value = values_of(options, record.value, _fields(table.value_columns))
    else:
        value = _loads(record.value)
    if table.connector == "upsert-kafka":
        keys = {} if table.value_includes_key else _key_values(table, record.key)
        return [Change("+U", _row(table, value | keys))]
    match name:
        case "json" | "csv":
            return [Change("+I", _row(table, value))]
        case "changelog-json":
            return [Change(value["op"], _row(table, value["data"]))]
        case "debezium-json":
            if value["op"] == "d":
                return [Change("-D", _row(table, value["before"]))]
            return [Change("+I", _row(table, value["after"]))]
        case "canal-json" | "maxwell-json":
            [data] = value["data"] if name == "canal-json" else [value["data"]]
            return [Change("-D" if value["type"].lower() == "delete" else "+I", _row(table, data))]
    raise ValueError(f"{table.name}: scenarios cannot read format {name!r}")


def keeps_kinds(table: Table) -> bool:
    """Whether the sink's records express all four row kinds."""
    return table.value_format is not None and table.value_format.name == "changelog-json"


def _row(table: Table, data: dict[str, Any]) -> Row:
    columns = physical_columns(table)
    unknown = set(data) - {c.name for c in columns}
    if unknown:
        raise ValueError(f"{table.name} has no columns {sorted(unknown)}")
    return tuple(canonical(data.get(c.name), c.type) for c in columns)


def _key_values(table: Table, key: bytes | None) -> dict[str, Any]:
    options = table.key_format and table.key_format.options
    if not isinstance(options, CsvOptions) or key is None:
        return _loads(key)
    return values_of(options, key, _fields(table.column(n) for n in table.key_fields))


def _fields(columns: Iterable[TableColumn]) -> list[RowField]:
    return [RowField(c.name, c.type) for c in columns]


def _plain(declared: Format | None, values: dict[str, Any]) -> bytes:
    """A key or value that is a plain row, in CSV or JSON."""
    if declared is not None and isinstance(declared.options, CsvOptions):
        return line_of(declared.options, values.values())
    return _bytes_of(values)


def _bytes_of(value: Any) -> bytes:
    return json_text(value).encode()


def _loads(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise ValueError("a record without key or value")
    loaded = json.loads(text, parse_float=Decimal)
    if not isinstance(loaded, dict):
        raise ValueError(f"not a JSON object: {text!r}")
    return loaded


def _iso_timestamps(table: Table) -> bool:
    match table.value_format and table.value_format.options:
        case JsonOptions(reading=how) | DebeziumJsonOptions(reading=how):
            return how.timestamp_format == "ISO-8601"
        case CanalJsonOptions(reading=how) | MaxwellJsonOptions(reading=how):
            return how.timestamp_format == "ISO-8601"
        case ChangelogJsonOptions(reading=how):
            return how.timestamp_format == "ISO-8601"
        case _:
            return False


def _record_timestamp(columns: Sequence[TableColumn], row: dict[str, Any]) -> int:
    for column in columns:
        if column.metadata_key == "timestamp":
            return epoch_ms(row[column.name])
    return DEFAULT_TIMESTAMP_MS


def _raw_record(given: Input) -> Record:
    """A record from `raw (key, value)`, whose bytes are taken as they are."""
    if not isinstance(given.values, tuple) or len(given.values) != 2:
        raise ValueError(f"line {given.line}: raw takes (key, value)")
    key, value = (v.encode() if isinstance(v, str) else v for v in given.values)
    if not all(part is None or isinstance(part, bytes) for part in (key, value)):
        raise ValueError(f"line {given.line}: a raw key or value is text, bytes or NULL")
    return Record(_bytes(key), _bytes(value), given.partition)


def _bytes(part: Any) -> bytes | None:
    return part if isinstance(part, bytes) else None


def to_base64(part: bytes | None) -> str | None:
    return None if part is None else base64.b64encode(part).decode()


_NOTHING = object()

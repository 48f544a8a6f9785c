"""One table as an input of a query: which columns of its records are read, and how rows leave.

A table whose rows come without their old versions (upsert) enters a join in one of two ways: as it
is, where the join key is part of the primary key and the join's own state holds the old row; or
through a normaliser, keyed by primary key, whose complete changelog is keyed anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spark_jobs.plan.changelog import ALL, INSERT, mode_text
from spark_jobs.plan.physical import (
    KafkaScan,
    Named,
    Normalize,
    ReadColumn,
    ReadFrom,
    Rekey,
    Topic,
)
from spark_jobs.plan.sources import Source, written_out
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.expr import Column, Expr, columns
from spark_jobs.sql.options import SETTINGS, parse_offsets
from spark_jobs.sql.spark_text import render
from spark_jobs.sql.types import DataType, RowField, with_nullable


@dataclass(frozen=True, slots=True)
class Shape:
    """What a query wants of a source: expressions over the table's columns.

    `row` and `key` are what leaves; `drop_null_keys` are the places in the key whose NULL means
    that the row can neither match nor show; `timed` asks for event time and watermarks.
    """

    row: tuple[tuple[str, Expr], ...]
    key: tuple[Expr, ...]
    drop_null_keys: tuple[int, ...] = ()
    timed: bool = False


def scan(
    source: Source, shape: Shape, settings: Mapping[str, str], side: int = 0, first_topic: int = 0
) -> KafkaScan:
    """The source as it is: append-only, retracting, or upsert rows for whom can take those."""
    table = source.table
    names = column_names(table)
    rowtime = _rowtime(table) if shape.timed else None
    watermark = _watermark(table) if shape.timed else None
    exprs = [*shape.key, *(e for _, e in shape.row)]
    exprs += [e for e in (source.filter, rowtime, watermark) if e is not None]
    keyed = table.changelog == "upsert"
    read = columns(exprs) | (_primary_key(table) if keyed else frozenset())
    value_format = table.value_format
    if value_format is None:
        raise ValueError(f"table {table.name} has no value format")
    dead_letters = table.option("rejoin.dead-letter.topic")
    return KafkaScan(
        table=table.name,
        side=side,
        topics=tuple(Topic(t, first_topic + i) for i, t in enumerate(table.topics)),
        groups=key_groups(settings),
        changelog=table.changelog,
        key_format=table.key_format,
        value_format=value_format,
        columns=tuple(_read_column(table, i) for i in sorted(read)),
        primary_key=table.primary_key if keyed else (),
        filter=text_of(source.filter, names),
        rowtime=text_of(rowtime, names),
        watermark=text_of(watermark, names),
        key=tuple(key_text(e, names) for e in shape.key),
        drop_null_keys=shape.drop_null_keys,
        row=tuple(Named(n, render(e, names)) for n, e in shape.row),
        schema=row_type((n, e.type) for n, e in shape.row),
        marks=shape.timed,
        on_error=table.option("rejoin.on-error") or ("dead-letter" if dead_letters else "fail"),
        dead_letter_topic=dead_letters,
        startup=_read_from(table, "startup"),
        bounded=_read_from(table, "bounded"),
        properties=table.properties,
        time_zone=time_zone(settings),
        changelog_mode=mode_text(
            INSERT if table.changelog == "append" else ALL, table.changelog == "retract"
        ),
        unique_keys=(table.primary_key,) if table.primary_key else (),
    )


def normalized(
    source: Source,
    exprs: Iterable[Expr],
    settings: Mapping[str, str],
    *,
    update_before: bool = True,
    timed: bool = False,
    side: int = 0,
    first_topic: int = 0,
) -> Normalize:
    """An upsert source as a complete changelog of the table columns that `exprs` read."""
    table = source.table
    key = _primary_key(table)
    kept = sorted(columns(exprs) | key)
    shape = Shape(
        row=tuple((table.columns[i].name, _column(table, i)) for i in kept),
        key=tuple(_column(table, table.index(name)) for name in table.primary_key),
        timed=timed,
    )
    rows = scan(source, shape, settings, side, first_topic)
    return Normalize(
        schema=rows.schema,
        key=tuple(kept.index(table.index(name)) for name in table.primary_key),
        filter=None,
        update_before=update_before,
        input=rows,
        changelog_mode=mode_text(ALL, update_before),
        unique_keys=(table.primary_key,),
    )


def rekeyed(
    source: Source, shape: Shape, settings: Mapping[str, str], side: int, first_topic: int
) -> Rekey:
    """An upsert source in the shape a join wants, through a normaliser."""
    rowtime = _rowtime(source.table) if shape.timed else None
    exprs = [*shape.key, *(e for _, e in shape.row), *(e for e in (rowtime,) if e is not None)]
    below = normalized(
        source, exprs, settings, timed=shape.timed, side=side, first_topic=first_topic
    )
    names = column_names(source.table)
    row = {e.index: n for n, e in shape.row if isinstance(e, Column)}
    key = [row.get(i) for i in (source.table.index(n) for n in source.table.primary_key)]
    return Rekey(
        side=side,
        groups=key_groups(settings),
        key=tuple(key_text(e, names) for e in shape.key),
        drop_null_keys=shape.drop_null_keys,
        rowtime=text_of(rowtime, names),
        row=tuple(Named(n, render(e, names)) for n, e in shape.row),
        schema=row_type((n, e.type) for n, e in shape.row),
        time_zone=time_zone(settings),
        input=below,
        changelog_mode=below.changelog_mode,
        unique_keys=() if None in key else (tuple(n for n in key if n is not None),),
    )


def row_type(named: Iterable[tuple[str, DataType]]) -> DataType:
    """The type of a row in flight.

    All its columns may be NULL, whatever the table says: deletions carry keys only, and an outer
    join pads.
    """
    fields = tuple(RowField(n, with_nullable(t, True)) for n, t in named)
    return DataType("ROW", nullable=False, fields=fields)


def text_of(expr: Expr | None, names: Sequence[str]) -> str | None:
    """Spark's text of an expression that need not be there."""
    return None if expr is None else render(expr, names)


def key_text(expr: Expr, names: list[str]) -> str:
    """A key column; keys are compared as bytes, so that -0.0 must become 0.0."""
    text = render(expr, names)
    match expr.type.name:
        case "DOUBLE":
            return f"({text} + 0D)"
        case "FLOAT":
            return f"({text} + CAST(0 AS FLOAT))"
        case _:
            return text


def column_names(table: Table) -> list[str]:
    return [c.name for c in table.columns]


def key_groups(settings: Mapping[str, str]) -> int:
    return int(setting(settings, "rejoin.key-groups"))


def time_zone(settings: Mapping[str, str]) -> str:
    return setting(settings, "table.local-time-zone")


def setting(settings: Mapping[str, str], name: str) -> str:
    """A SET value or its default."""
    return settings.get(name) or SETTINGS[name].default or ""


def _primary_key(table: Table) -> frozenset[int]:
    return frozenset(table.index(name) for name in table.primary_key)


def _column(table: Table, index: int) -> Column:
    declared = table.columns[index]
    return Column(index, declared.name, declared.type)


def _rowtime(table: Table) -> Expr | None:
    """The table's event time; watermark and as-of conditions are checked before."""
    if table.watermark is None:
        return None
    return written_out(_column(table, table.index(table.watermark.column)), table)


def _watermark(table: Table) -> Expr | None:
    return None if table.watermark is None else written_out(table.watermark.expr, table)


def _read_column(table: Table, index: int) -> ReadColumn:
    column = table.columns[index]
    origin: Literal["value", "key", "metadata"] = "value"
    field = column.name
    if column.kind == "metadata":
        origin, field = "metadata", column.metadata_key or column.name
    elif column.name in table.key_fields and _stands_in_key(table):
        origin, field = "key", column.name.removeprefix(table.key_prefix)
    return ReadColumn(
        column.name, column.type, column.type.sql(), column.type.nullable, origin, field
    )


def _stands_in_key(table: Table) -> bool:
    """A tombstone has only its key; otherwise a column that stands in both is the value's."""
    return table.connector == "upsert-kafka" or not table.value_includes_key


def _read_from(table: Table, end: Literal["startup", "bounded"]) -> ReadFrom:
    default = "earliest-offset" if end == "startup" else "unbounded"
    mode = table.option(f"scan.{end}.mode") or default
    if mode == "timestamp":
        at = table.option(f"scan.{end}.timestamp-millis")
        return ReadFrom(mode, timestamp_ms=int(at) if at else None)
    if mode == "specific-offsets":
        offsets = parse_offsets(table.option(f"scan.{end}.specific-offsets") or "")
        return ReadFrom(mode, offsets={str(p): o for p, o in (offsets or {}).items()})
    return ReadFrom(mode)

"""One table as an input of a query: which columns of its records are read, and how rows leave.

A table whose rows come without their old versions (upsert) enters an operator in one of two ways:
as it is, where every key column is part of the primary key and the operator's own state holds the
old row; or through a normaliser, keyed by primary key, whose complete changelog is keyed anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from spark_jobs.formats.columns import with_columns
from spark_jobs.options.connectors import Bounded, Startup
from spark_jobs.options.formats import Format
from spark_jobs.plan.facts.changelog import ALL, INSERT, mode_text
from spark_jobs.plan.facts.sources import Source, written_out
from spark_jobs.plan.nodes.parts import (
    Advice,
    Named,
    Output,
    ReadColumn,
    ReadFrom,
    RejectLimit,
    Topic,
)
from spark_jobs.plan.nodes.physical import (
    Alignment,
    JoinInput,
    KafkaScan,
    KeyChanges,
    Normalize,
    Rekey,
    Stateful,
)
from spark_jobs.plan.spark_sql.expressions import render
from spark_jobs.plan.strategy.building import Building, Input, Shape, warning
from spark_jobs.plan.strategy.healing import (
    before_state,
    behind_state,
    follows_keys,
    has_positions,
    read_events,
    retracts_on_truncate,
)
from spark_jobs.plan.strategy.timing import idle_timeout_ms, state_ttl, timing
from spark_jobs.sql.catalog import ChangelogMode, Table
from spark_jobs.sql.logical import column
from spark_jobs.sql.types.data_types import DataType, RowField, with_nullable
from spark_jobs.sql.types.expr import Column, Expr, columns, conjuncts


def table_input(source: Source, wanted: Input, building: Building) -> JoinInput:
    """A table in the shape that an operator wants, which is over the source's fields."""
    shape = wanted.shape.over(source.exprs)
    if not is_normalized(source.table, building) or shape.upsert:
        return scan(source, shape, wanted.side, building)
    below = normalized(source, shape.exprs, building, marks=shape.marks, side=wanted.side)
    return rekey(below, column_names(source.table), shape, wanted.side, building)


def is_normalized(table: Table, building: Building) -> bool:
    """Whether only a normaliser makes a complete changelog of the table's rows."""
    if table.changelog == "retract" and table.primary_key:
        return building.settings.events_may_repeat or retracts_on_truncate(table)
    return table.changelog == "upsert"


def scan(source: Source, shape: Shape, side: int, building: Building) -> KafkaScan:
    """The source as it is; unlike elsewhere, `shape` is over the columns of the table.

    What a normaliser is to complete is read as upserts, as Flink drops each -U in front of it.
    """
    table = source.table
    changelog = "upsert" if is_normalized(table, building) else table.changelog
    names = column_names(table)
    watermark = _watermark(table) if shape.marks else None
    exprs = [*shape.exprs, *(e for e in (source.filter, watermark) if e is not None)]
    building.warn(*_odd_events(table))
    return KafkaScan(
        table=table.name,
        side=side,
        topics=tuple(Topic(name) for name in _topics(table)),
        groups=building.groups,
        changelog=changelog,
        key_format=table.key_format and with_columns(table.key_format, key_columns(table)),
        value_format=with_columns(value_format(table), value_columns(table)),
        columns=_read_columns(table, exprs, changelog),
        primary_key=table.primary_key if changelog == "upsert" else (),
        filter=text_of(source.filter, names),
        rowtime=text_of(shape.rowtime, names),
        watermark=text_of(watermark, names),
        key=tuple(key_text(e, names) for e in shape.key),
        drop_null_keys=shape.drop_null_keys,
        row=tuple(Named(n, render(e, names)) for n, e in shape.row),
        schema=row_type((n, e.type) for n, e in shape.row),
        marks=shape.marks,
        on_error=table.on_error,
        dead_letter_topic=table.dead_letter_topic,
        startup=_startup(table),
        bounded=_read_from(table.options.kafka.bounded),
        properties=table.properties,
        time_zone=building.time_zone,
        changelog_mode=_changelog_mode(changelog),
        unique_keys=(table.primary_key,) if table.primary_key else (),
        alignment=_alignment(table),
        debezium=read_events(source, building),
        reject_limit=RejectLimit(
            building.settings.dead_letter_max_share, building.settings.dead_letter_window
        ),
        pattern=table.topic_pattern,
        discovery_ms=table.options.kafka.discovery_ms,
        idle_timeout_ms=idle_timeout_ms(table, building),
    )


def _topics(table: Table) -> tuple[str, ...]:
    """No topic has a slash in its name, so that a pattern is not taken for one."""
    return table.topics if table.topic_pattern is None else (f"/{table.topic_pattern}/",)


def _odd_events(table: Table) -> Iterator[Advice]:
    if table.holds_events and not table.primary_key and not table.full_before:
        yield warning(
            f"table {table.name} has no PRIMARY KEY, so that deletions and updates are taken from"
            " the row before a change, which only REPLICA IDENTITY FULL makes complete: under"
            " DEFAULT its columns are empty or zero",
            "PRIMARY KEY (...) NOT ENFORCED  -- in the table, or in its WITH:",
            "'rejoin.debezium.replica-identity' = 'full'",
        )
    if retracts_on_truncate(table):
        yield warning(
            f"TRUNCATE of {table.name} follows all rows that its batch holds of other partitions:"
            " only those of its own are in order with it"
        )


def _alignment(table: Table) -> Alignment | None:
    group, drift_ms = table.options.kafka.alignment_group, table.options.kafka.alignment_drift_ms
    return None if group is None or drift_ms is None else Alignment(group, drift_ms)


def normalized(
    source: Source,
    exprs: Iterable[Expr],
    building: Building,
    *,
    pair_by: tuple[Expr, ...] | None = None,
    marks: bool = False,
    side: int = 0,
) -> Stateful:
    """A source as a complete changelog of the table columns that `exprs` read.

    With `pair_by` (over the table's columns) an upsert sink follows, which needs no old rows.
    """
    table = source.table
    where = behind_state(source)
    read = columns([*exprs, *conjuncts(where), *(pair_by or ())])
    kept = sorted(read.union(table.key_places))
    shape = Shape(
        row=tuple((table.columns[i].name, column(table.columns, i)) for i in kept),
        key=tuple(column(table.columns, i) for i in table.key_places),
        marks=marks,
    )
    rows = scan(replace(source, filter=before_state(source)), shape, side, building)
    names = column_names(table)
    machine = Normalize(
        schema=rows.schema,
        key=tuple(map(kept.index, table.key_places)),
        positions=has_positions(source, building),
        key_changes=follows_keys(source),
    )
    below = Stateful(
        id="",
        machine=machine,
        output=Output(text_of(where, names), texts_of(pair_by, names), building.time_zone),
        timing=timing(building, ttl_ms=state_ttl(building), keeps_graves=machine.positions),
        inputs=(rows,),
        changelog_mode=mode_text(ALL, pair_by is None),
        unique_keys=(table.primary_key,),
    )
    return _healed(below, machine, shape, table, building) if machine.key_changes else below


def _healed(
    below: Stateful, normalize: Normalize, shape: Shape, table: Table, building: Building
) -> Stateful:
    """Heals the rows of a normaliser whose key has changed; all its rows pass."""
    wait_ms = table.options.debezium.key_change_wait_ms
    return replace(
        below,
        machine=KeyChanges(normalize.schema, normalize.key, wait_ms),
        timing=timing(building, ttl_ms=below.timing.ttl_ms, waits_ms=max(wait_ms, 1)),
        inputs=(rekey(below, column_names(table), shape, 0, building),),
    )


def rekey(
    below: Stateful,
    names: Sequence[str],
    shape: Shape,
    side: int,
    building: Building,
) -> Rekey:
    """An operator's rows, whose columns have these names, in the shape that another wants."""
    sent = {names[e.index]: n for n, e in shape.row if isinstance(e, Column)}
    return Rekey(
        side=side,
        groups=building.groups,
        key=tuple(key_text(e, names) for e in shape.key),
        drop_null_keys=shape.drop_null_keys,
        rowtime=text_of(shape.rowtime, names),
        row=tuple(Named(n, render(e, names)) for n, e in shape.row),
        schema=row_type((n, e.type) for n, e in shape.row),
        ordered=False,
        time_zone=building.time_zone,
        input=below,
        changelog_mode=below.changelog_mode,
        unique_keys=tuple(
            tuple(sent[n] for n in key) for key in below.unique_keys if sent.keys() >= set(key)
        ),
    )


def row_type(named: Iterable[tuple[str, DataType]]) -> DataType:
    """The type of a row in flight.

    All its columns may be NULL, also those declared NOT NULL: deletions carry keys only, and an
    outer join pads.
    """
    fields = tuple(RowField(n, with_nullable(t, True)) for n, t in named)
    return DataType("ROW", nullable=False, fields=fields)


def text_of(expr: Expr | None, names: Sequence[str]) -> str | None:
    """Spark's text of an expression; None of none."""
    return None if expr is None else render(expr, names)


def texts_of(exprs: Sequence[Expr] | None, names: Sequence[str]) -> tuple[str, ...] | None:
    """Spark's texts of expressions; None of none."""
    return None if exprs is None else tuple(render(e, names) for e in exprs)


def key_text(expr: Expr, names: Sequence[str]) -> str:
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


def _watermark(table: Table) -> Expr | None:
    return None if table.watermark is None else written_out(table.watermark.expr, table)


def _read_columns(
    table: Table, exprs: Sequence[Expr], changelog: ChangelogMode
) -> tuple[ReadColumn, ...]:
    """What the expressions read; an upsert needs its key as well."""
    key = table.key_places if changelog == "upsert" else ()
    return tuple(_read_column(table, i) for i in sorted(columns(exprs).union(key)))


def _changelog_mode(changelog: ChangelogMode) -> str:
    return mode_text(INSERT if changelog == "append" else ALL, changelog == "retract")


def value_format(table: Table) -> Format:
    """The format of the record values, which the binder requires of a table."""
    if table.value_format is None:
        raise ValueError(f"table {table.name} has no value format")
    return table.value_format


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


def key_columns(table: Table) -> list[RowField]:
    """The columns of the record key, by the names that they have there."""
    names = table.key_fields
    return [RowField(n.removeprefix(table.key_prefix), table.column(n).type) for n in names]


def value_columns(table: Table) -> list[RowField]:
    return [RowField(c.name, c.type) for c in table.value_columns]


def _stands_in_key(table: Table) -> bool:
    """A tombstone has only its key; otherwise a column that stands in both is the value's."""
    keyed = table.connector == "upsert-kafka" or table.unwrapped
    return keyed or not table.value_includes_key


def _startup(table: Table) -> ReadFrom:
    """An upsert-kafka table is always read whole."""
    if table.connector == "upsert-kafka":
        return ReadFrom("earliest-offset")
    return _read_from(table.options.kafka.startup)


def _read_from(end: Startup | Bounded) -> ReadFrom:
    if end.mode == "timestamp":
        return ReadFrom(end.mode, timestamp_ms=end.timestamp_ms)
    if end.mode == "specific-offsets":
        return ReadFrom(end.mode, offsets={str(p): o for p, o in (end.offsets or {}).items()})
    return ReadFrom(end.mode)

"""Debezium events that need care: those that lack values, come twice or empty their table.

A database may leave a large value out of an event that did not change it (PostgreSQL: TOAST). Only
the machine that holds the row before can fill it in, so no expression may read such a column
before that machine: there plain columns travel, and predicates come later.
"""

from collections.abc import Iterable

from spark_jobs.plan.facts.sources import Source
from spark_jobs.plan.nodes.parts import Debezium
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.plan.strategy.building import Building
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Column, Expr, and_all, columns, conjuncts

_LARGE = frozenset({"STRING", "BYTES", "ARRAY", "MAP", "ROW"})


def may_be_left_out(type_: DataType) -> bool:
    """Whether values of the type may be too large for an event that did not change them.

    A DECIMAL of 38 digits never is: it is shorter than the reference that would stand for it.
    """
    return type_.name in _LARGE


def heals(source: Source) -> bool:
    """Whether values that events leave out are taken from the row in state."""
    table = source.table
    if table.changelog != "upsert" or not table.is_debezium:
        return False
    read = [*source.exprs, *(() if source.filter is None else (source.filter,))]
    return table.options.debezium.unavailable == "heal" and bool(_left_out(table, read))


def follows_keys(source: Source) -> bool:
    """Whether those values are found, too, that stand under the key that a row had before."""
    return heals(source) and source.table.options.debezium.key_changes == "heal"


def has_positions(source: Source, building: Building) -> bool:
    """Whether repeated events are known by their place in the database's log.

    It distinguishes key changes as well: one that is repeated would find its old row gone.
    """
    table = source.table
    keyed = table.is_debezium and bool(table.primary_key)
    return follows_keys(source) or (keyed and building.settings.events_may_repeat)


def retracts_on_truncate(table: Table) -> bool:
    return table.options.debezium.truncate == "retract"


def needs_rows(source: Source, building: Building) -> bool:
    """Whether some events can only be recognised or made whole by the rows of their table."""
    truncated = retracts_on_truncate(source.table)
    return heals(source) or has_positions(source, building) or truncated


def is_taken_as_it_is(source: Source, exprs: Iterable[Expr], building: Building) -> bool:
    """Whether an operator that holds the last row of each primary key may take the table's upserts.

    `exprs` are what it is sent, over the table's columns; its keys read the primary key only.
    """
    table = source.table
    if has_positions(source, building) or retracts_on_truncate(table):
        return False
    if not heals(source):
        return True
    computed = [e for e in exprs if not isinstance(e, Column)]
    return behind_state(source) is None and not _left_out(table, computed)


def before_state(source: Source) -> Expr | None:
    """The part of the filter that events can be tested by: what it reads is in each of them.

    Without healing that is all of it. With healing the primary key is all that may decide: a row
    that fails any other predicate has to stay in state, or a later event could not be healed. Where
    a row may get another key, not even that.
    """
    if not heals(source):
        return source.filter
    if follows_keys(source):
        return None
    return and_all(p for p in conjuncts(source.filter) if _reads_key(p, source.table))


def behind_state(source: Source) -> Expr | None:
    """The rest of the filter."""
    if not heals(source):
        return None
    if follows_keys(source):
        return source.filter
    return and_all(p for p in conjuncts(source.filter) if not _reads_key(p, source.table))


def read_events(source: Source, building: Building) -> Debezium | None:
    """How the table's events are read; None where they are not Debezium's."""
    table = source.table
    if not table.is_debezium:
        return None
    return Debezium(
        unwrapped=table.unwrapped,
        full_before=table.full_before,
        heals=heals(source),
        positions=has_positions(source, building),
        follows_keys=follows_keys(source),
        retracts_on_truncate=retracts_on_truncate(table),
        timestamp_unit=table.options.debezium.timestamp_unit,
        decimals=table.options.debezium.decimals,
    )


def large_columns(scan: KafkaScan) -> tuple[str, ...]:
    """The columns that are read of events and that events may lack."""
    large = [c.name for c in scan.columns if c.origin != "metadata" and may_be_left_out(c.type)]
    return tuple(name for name in large if name not in scan.primary_key)


def _reads_key(predicate: Expr, table: Table) -> bool:
    return columns((predicate,)) <= set(table.key_places)


def _left_out(table: Table, exprs: Iterable[Expr]) -> frozenset[int]:
    """Columns that the expressions read and that events may lack: not the primary key's."""
    found = ((i, table.columns[i]) for i in columns(exprs) - set(table.key_places))
    return frozenset(i for i, c in found if c.kind == "physical" and may_be_left_out(c.type))

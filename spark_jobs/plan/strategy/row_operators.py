"""Operators of one input: deduplication, aggregates, and the materialiser before a sink."""

from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.emptiness import is_row_of_nothing
from spark_jobs.plan.facts.facts import facts, waits_for_watermark
from spark_jobs.plan.facts.keys import is_unique, smallest
from spark_jobs.plan.facts.sources import peel
from spark_jobs.plan.nodes.parts import Advice, SortColumn
from spark_jobs.plan.nodes.parts import AggregateCall as Call
from spark_jobs.plan.nodes.physical import Aggregate as AggregateMachine
from spark_jobs.plan.nodes.physical import Deduplicate as DeduplicateMachine
from spark_jobs.plan.nodes.physical import Rank as RankMachine
from spark_jobs.plan.nodes.physical import SinkMaterializer
from spark_jobs.plan.strategy.building import (
    BOUND_ALL,
    Building,
    Input,
    Planned,
    Required,
    Shape,
    not_repeatable,
    tables,
    warning,
)
from spark_jobs.plan.strategy.join_sides import key_type, unique_names
from spark_jobs.plan.strategy.operator import operator
from spark_jobs.plan.strategy.scans import row_type
from spark_jobs.plan.strategy.timing import state_ttl, timing
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Logical,
    NoRows,
    Rank,
    Sink,
    column,
)
from spark_jobs.sql.types.expr import Column, Expr, columns
from spark_jobs.sql.types.functions import BY_ARRIVAL


def deduplicate(node: Deduplicate, required: Required, building: Building) -> Planned:
    """The first or last row of each key. Its order goes by the row's time, which need not stay."""
    inner = node.input
    is_event = facts(inner).times[node.order] == "rowtime"
    waits = waits_for_watermark(node)
    kept = columns(required.exprs) or frozenset(node.partition[:1] or (node.order,))
    names = unique_names([f.name if i in kept else "" for i, f in enumerate(inner.fields)])
    shape = Shape(
        row=tuple((names[i], column(inner.fields, i)) for i in sorted(kept)),
        key=tuple(column(inner.fields, i) for i in node.partition),
        rowtime=column(inner.fields, node.order) if is_event else None,
        marks=waits or required.forwards,
    )
    ttl_ms = state_ttl(building)
    machine = DeduplicateMachine(
        keep=node.keep,
        time="event" if is_event else "processing",
        on_watermark=waits,
        generate_insert=True,
        schema=row_type((n, e.type) for n, e in shape.row),
    )
    followed = timing(building, ttl_ms=ttl_ms, listens=waits, forwards=required.forwards)
    endless = () if any(ttl_ms) else (_endless("keys", inner),)
    by_arrival = () if is_event else (not_repeatable(f"it orders the rows of {tables(inner)}"),)
    inputs, warnings = (Input(inner, shape),), (*endless, *by_arrival)
    return operator(machine, required, names, facts(node), followed, building, inputs, warnings)


def rank(node: Rank, required: Required, building: Building) -> Planned:
    """Top-N; what it is ordered by stays, so that a retraction finds its row."""
    inner = node.input
    width = len(inner.fields)
    by = {key.column for key in node.order}
    kept = sorted(by | (columns(required.exprs) - {width}) or {*node.partition[:1]} or {0})
    fields = [f.name if i in kept else "" for i, f in enumerate(inner.fields)]
    names = unique_names([*fields, *([node.number.name] if node.number else [])])
    shape = Shape(
        row=tuple((names[i], column(inner.fields, i)) for i in kept),
        key=tuple(column(inner.fields, i) for i in node.partition),
        marks=required.forwards,
    )
    ttl_ms = state_ttl(building)
    machine = RankMachine(
        first=node.first,
        last=node.last,
        order=tuple(SortColumn(kept.index(i), *how) for i, *how in node.order),
        append_only=facts(inner).kinds == INSERT,
        number=names[width] if node.number else None,
        schema=row_type((n, e.type) for n, e in shape.row),
    )
    followed = timing(building, ttl_ms=ttl_ms, forwards=required.forwards)
    what = "partitions" if machine.append_only else "rows"
    endless = () if any(ttl_ms) else (_endless(what, inner),)
    warnings = endless if node.partition else (_ONE_PARTITION,)
    inputs = (Input(inner, shape),)
    return operator(machine, required, names, facts(node), followed, building, inputs, warnings)


_ONE_PARTITION = warning(
    "no PARTITION BY: all rows go to one key group, one task does the work",
    "PARTITION BY column  -- one that many values spread, if the result may be by it",
)
_ONE_GROUP = warning(
    "no GROUP BY: all rows go to one key group, one task does the work",
    "GROUP BY column  -- one that many values spread, if the result may be by it",
)


def _endless(what: str, inner: Logical) -> Advice:
    return warning(
        f"state grows without bound: the {what} of {tables(inner)} are kept for ever", BOUND_ALL
    )


def aggregate(node: Aggregate, required: Required, building: Building) -> Planned:
    """GROUP BY; arguments and filters become columns of the input row.

    The row of an aggregate over no rows never expires, and no watermark holds it back.
    """
    inner, no_input = node.input, is_row_of_nothing(node)
    marks = required.forwards and not no_input
    args = _arguments(node)
    labels = unique_names([_label(e, i) for i, e in enumerate(args)])
    shape = Shape(row=tuple(zip(labels, args, strict=True)), key=node.keys, marks=marks)
    names = unique_names([f.name for f in node.fields])
    ttl_ms = (0,) if no_input else state_ttl(building)
    machine = AggregateMachine(
        input_schema=row_type((n, e.type) for n, e in shape.row),
        key=key_type(node.keys),
        calls=tuple(_call(c, args, facts(inner).kinds == INSERT) for c in node.calls),
        schema=row_type((n, f.type) for n, f in zip(names, node.fields, strict=True)),
        no_input=no_input,
    )
    followed = timing(building, ttl_ms=ttl_ms, forwards=marks, starts=no_input)
    endless = () if any(ttl_ms) else (_endless("groups", inner),)
    one_group = () if no_input else (_ONE_GROUP,)
    read = () if isinstance(peel(inner).base, NoRows) else (Input(inner, shape),)
    warnings = endless if node.keys else one_group
    return operator(machine, required, names, facts(node), followed, building, read, warnings)


def _arguments(node: Aggregate) -> tuple[Expr, ...]:
    """What the calls read, each once; an empty row would be a case of its own everywhere."""
    read = [e for c in node.calls for e in (c.argument, c.filter) if e is not None]
    return tuple(dict.fromkeys(read)) or (node.keys or (column(node.input.fields, 0),))[:1]


def _label(expr: Expr, position: int) -> str:
    return expr.name if isinstance(expr, Column) else f"$f{position}"


def _call(call: AggregateCall, args: Sequence[Expr], append_only: bool) -> Call:
    return Call(
        function=call.function,
        argument=None if call.argument is None else args.index(call.argument),
        distinct=call.distinct,
        filter=None if call.filter is None else args.index(call.filter),
        type=call.type,
        takes_nulls=call.takes_nulls,
        separator=call.separator,
        append_only=append_only and call.function in BY_ARRIVAL,
    )


def materialized(
    select: Logical,
    sink: Sink,
    fields: Sequence[tuple[str, Expr]],
    key: Sequence[int],
    building: Building,
) -> Planned:
    """What each sink key shows, of all rows that the SELECT list gives it.

    `fields` are the sink's columns over those of the SELECT list, `key` the places of its key.
    """
    strategy = sink.on_conflict or "deduplicate"
    waits = strategy != "deduplicate"
    names = tuple(name for name, _ in fields)
    key_exprs = tuple(fields[i][1] for i in key)
    # rows of one upsert key come from several operator tasks, in real-time mode in any order
    tells = smallest(facts(select).upsert_keys) or frozenset()
    upsert_key = frozenset[int]() if building.is_real_time else tells
    machine = SinkMaterializer(
        strategy=strategy,
        upsert_key=tuple(sorted(upsert_key)),
        schema=row_type((n, e.type) for n, e in fields),
    )
    followed = timing(building, ttl_ms=state_ttl(building), listens=waits)
    required = Required((), pair_by=key_exprs, update_before=False)
    inputs = (Input(select, Shape(tuple(fields), key_exprs, marks=waits)),)
    several = warning(
        f"the primary key ({', '.join(sink.table.primary_key)}) of {sink.table.name} does not tell"
        " the rows of the query apart: all rows of each sink key are kept, to show one of them",
        *_key_that_tells(fields, tells),
    )
    is_told = building.is_real_time and is_unique(facts(select).unique_keys, frozenset(key))
    warnings = () if is_told else (several,)
    rows = operator(machine, required, names, facts(select), followed, building, inputs, warnings)
    return replace(rows, node=replace(rows.node, unique_keys=(tuple(names[i] for i in key),)))


def _key_that_tells(fields: Sequence[tuple[str, Expr]], upsert_key: frozenset[int]) -> list[str]:
    """The sink's key that would need no materialiser, where its columns are among the sink's."""
    names = [fields[i][0] for i in sorted(upsert_key)]
    return [f"PRIMARY KEY ({', '.join(names)}) NOT ENFORCED  -- in the sink"] if names else []

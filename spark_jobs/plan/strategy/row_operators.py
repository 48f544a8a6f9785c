"""Operators of one input: deduplication, aggregates, and the materialiser before a sink."""

from collections.abc import Sequence

from spark_jobs.plan.facts.changelog import kinds, mode_text, waits_for_watermark
from spark_jobs.plan.facts.keys import smallest, unique_keys, upsert_keys
from spark_jobs.plan.facts.times import times
from spark_jobs.plan.nodes.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Field,
    Logical,
    Sink,
)
from spark_jobs.plan.nodes.parts import AggregateCall as Call
from spark_jobs.plan.nodes.physical import Aggregate as AggregateNode
from spark_jobs.plan.nodes.physical import Deduplicate as DeduplicateNode
from spark_jobs.plan.nodes.physical import SinkMaterializer
from spark_jobs.plan.strategy.building import (
    BOUND_ALL,
    EVENT_TIME,
    Building,
    Feeder,
    Rows,
    Shape,
    Wanted,
)
from spark_jobs.plan.strategy.join_operators import output_of, tables
from spark_jobs.plan.strategy.join_sides import key_type, named_keys, unique_names
from spark_jobs.plan.strategy.scans import row_type
from spark_jobs.plan.strategy.timing import state_ttl, timing
from spark_jobs.sql.types.expr import Column, Expr, columns


def deduplicate(node: Deduplicate, wanted: Wanted, feed: Feeder, building: Building) -> Rows:
    """The first or last row of each key. Its order goes by the row's time, which need not stay."""
    inner = node.input
    is_event = times(inner)[node.order] == "rowtime"
    waits = waits_for_watermark(node)
    kept = columns(wanted.exprs) or frozenset(node.partition[:1] or (node.order,))
    names = unique_names([f.name if i in kept else "" for i, f in enumerate(inner.fields)])
    shape = Shape(
        row=tuple((names[i], _field(inner, i)) for i in sorted(kept)),
        key=tuple(_field(inner, i) for i in node.partition),
        rowtime=_field(inner, node.order) if is_event else None,
        marks=waits or wanted.forwards,
    )
    below = feed(inner, shape, 0, building)
    ttl_ms = state_ttl(building)
    if not any(ttl_ms):
        building.warn(
            f"state grows without bound: the keys of {tables(inner)} are kept for ever", BOUND_ALL
        )
    if not is_event:
        building.warn(
            f"processing time is not repeatable: it orders the rows of {tables(inner)}", EVENT_TIME
        )
    found = DeduplicateNode(
        id=building.operator_id(DeduplicateNode.kind),
        keep=node.keep,
        time="event" if is_event else "processing",
        on_watermark=waits,
        generate_insert=True,
        schema=row_type((n, e.type) for n, e in shape.row),
        output=output_of(wanted, names, building),
        timing=timing(
            building, (below.streams,), hears=waits, forwards=wanted.forwards, ttl_ms=ttl_ms
        ),
        inputs=below.inputs,
        changelog_mode=mode_text(kinds(node), wanted.update_before),
        unique_keys=named_keys(unique_keys(node), names),
    )
    return Rows(found, names, below.topics)


def aggregate(node: Aggregate, wanted: Wanted, feed: Feeder, building: Building) -> Rows:
    """GROUP BY; arguments and filters become columns of the input row."""
    inner = node.input
    args = _arguments(node)
    labels = unique_names([_label(e, i) for i, e in enumerate(args)])
    shape = Shape(row=tuple(zip(labels, args, strict=True)), key=node.keys, marks=wanted.forwards)
    below = feed(inner, shape, 0, building)
    names = unique_names([f.name for f in node.fields])
    ttl_ms = state_ttl(building)
    if node.keys and not any(ttl_ms):
        building.warn(
            f"state grows without bound: the groups of {tables(inner)} are kept for ever", BOUND_ALL
        )
    if not node.keys:
        building.warn(
            "no GROUP BY: all rows go to one key group, one task does the work",
            "GROUP BY column  -- one that many values spread, if the result may be by it",
        )
    found = AggregateNode(
        id=building.operator_id(AggregateNode.kind),
        input_schema=row_type((n, e.type) for n, e in shape.row),
        key=key_type(node.keys),
        calls=tuple(_call(c, args) for c in node.calls),
        schema=row_type((n, f.type) for n, f in zip(names, node.fields, strict=True)),
        output=output_of(wanted, names, building),
        timing=timing(building, (below.streams,), forwards=wanted.forwards, ttl_ms=ttl_ms),
        inputs=below.inputs,
        changelog_mode=mode_text(kinds(node), wanted.update_before),
        unique_keys=named_keys(unique_keys(node), names),
    )
    return Rows(found, names, below.topics)


def _arguments(node: Aggregate) -> tuple[Expr, ...]:
    """What the calls read, each once; an empty row would be a case of its own everywhere."""
    read = [e for c in node.calls for e in (c.argument, c.filter) if e is not None]
    return tuple(dict.fromkeys(read)) or (node.keys or (_field(node.input, 0),))[:1]


def _label(expr: Expr, position: int) -> str:
    return expr.name if isinstance(expr, Column) else f"$f{position}"


def _call(call: AggregateCall, args: Sequence[Expr]) -> Call:
    return Call(
        function=call.function,
        argument=None if call.argument is None else args.index(call.argument),
        distinct=call.distinct,
        filter=None if call.filter is None else args.index(call.filter),
        type=call.type,
    )


def materialized(
    select: Logical,
    sink: Sink,
    fields: Sequence[tuple[str, Expr]],
    key: Sequence[int],
    feed: Feeder,
    building: Building,
) -> Rows:
    """What each sink key shows, of all rows that the SELECT list gives it.

    `fields` are the sink's columns over those of the SELECT list, `key` the places of its key.
    """
    strategy = sink.on_conflict or "deduplicate"
    waits = strategy != "deduplicate"
    names = tuple(name for name, _ in fields)
    key_exprs = tuple(fields[i][1] for i in key)
    below = feed(select, Shape(tuple(fields), key_exprs, marks=waits), 0, building)
    upsert_key = smallest(upsert_keys(select)) or frozenset()
    ttl_ms = state_ttl(building)
    building.warn(
        f"the primary key ({', '.join(sink.table.primary_key)}) of {sink.table.name} does not tell"
        " the rows of the query apart: all rows of each sink key are kept, to show one of them",
        *_key_that_tells(fields, upsert_key),
    )
    found = SinkMaterializer(
        id=building.operator_id(SinkMaterializer.kind),
        strategy=strategy,
        upsert_key=tuple(sorted(upsert_key)),
        schema=row_type((n, e.type) for n, e in fields),
        output=output_of(Wanted((), pair_by=key_exprs), names, building),
        timing=timing(building, (below.streams,), hears=waits, ttl_ms=ttl_ms),
        inputs=below.inputs,
        changelog_mode=mode_text(kinds(select), False),
        unique_keys=(tuple(names[i] for i in key),),
    )
    return Rows(found, names, below.topics)


def _key_that_tells(fields: Sequence[tuple[str, Expr]], upsert_key: frozenset[int]) -> list[str]:
    """The sink's key that would need no materialiser, where its columns are among the sink's."""
    names = [fields[i][0] for i in sorted(upsert_key)]
    return [f"PRIMARY KEY ({', '.join(names)}) NOT ENFORCED  -- in the sink"] if names else []


def _field(node: Logical, index: int) -> Column:
    field: Field = node.fields[index]
    return Column(index, field.name, field.type)

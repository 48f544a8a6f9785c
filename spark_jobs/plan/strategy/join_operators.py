"""Joins of two inputs as operators: regular, interval and temporal."""

from dataclasses import replace
from typing import Literal

from spark_jobs.plan.facts.bounds import Interval
from spark_jobs.plan.facts.changelog import kinds, mode_text
from spark_jobs.plan.facts.keys import and_all, unique_keys
from spark_jobs.plan.facts.times import version_time
from spark_jobs.plan.nodes.logical import Join, Logical, Scan, inputs_of
from spark_jobs.plan.nodes.parts import Gate, Output
from spark_jobs.plan.nodes.physical import IntervalJoin, RegularJoin, TemporalJoin
from spark_jobs.plan.strategy.building import (
    BOUND_ALL,
    BOUND_ONE,
    EVENT_TIME,
    Building,
    Feed,
    Feeder,
    Rows,
    Wanted,
    peel,
)
from spark_jobs.plan.strategy.healing import needs_rows
from spark_jobs.plan.strategy.join_sides import (
    JoinSides,
    join_feeds,
    join_sides,
    join_time,
    keeps_order,
    named_keys,
)
from spark_jobs.plan.strategy.scans import is_normalized, text_of, texts_of
from spark_jobs.plan.strategy.timing import timing
from spark_jobs.sql.types.expr import Column, Expr


def output_of(
    wanted: Wanted, names: tuple[str, ...], building: Building, *, drops_late: bool = False
) -> Output:
    """What becomes of an operator's rows, whose columns have these names."""
    late_topic = building.settings.late_topic if drops_late else None
    return Output(
        where=text_of(wanted.where, names),
        pair_by=texts_of(wanted.pair_by, names),
        time_zone=building.time_zone,
        late_topic=late_topic,
    )


def regular_join(join: Join, wanted: Wanted, feed: Feeder, building: Building) -> Rows:
    """All rows of both sides, for as long as their TTL says."""
    sides = join_sides(join, wanted.exprs, building)
    both = (wanted.forwards, wanted.forwards)
    left, right = join_feeds(join, sides, feed, building, marks=both)
    ttl_ms = _ttl(join, building)
    _warn_of_growth(join, ttl_ms, building)
    _warn_of_one_group(sides, building)
    node = RegularJoin(
        id=building.operator_id(RegularJoin.kind),
        join_type=join.kind,
        left=sides.left.described(sides.kept_names(0)),
        right=sides.right.described(sides.kept_names(1)),
        key=sides.key_type,
        filter_nulls=filter_nulls(sides),
        residual=text_of(and_all(sides.condition.residual), sides.names),
        output=output_of(wanted, sides.names, building),
        timing=timing(
            building, (left.streams, right.streams), forwards=wanted.forwards, ttl_ms=ttl_ms
        ),
        inputs=(*left.inputs, *right.inputs),
        changelog_mode=mode_text(kinds(join), wanted.update_before),
        unique_keys=named_keys(unique_keys(join), sides.names),
        input_faults=building.input_faults,
    )
    return Rows(node, sides.names, (*left.topics, *right.topics))


def interval_join(
    join: Join, interval: Interval, wanted: Wanted, feed: Feeder, building: Building
) -> Rows:
    """Pairs whose times are close; rows that are out of reach are forgotten."""
    sides = join_sides(join, wanted.exprs, building, interval.condition)
    is_event = interval.time == "rowtime"
    marks = (is_event or wanted.forwards,) * 2
    times = (_field(join.left, interval.left), _field(join.right, interval.right))
    rowtimes = times if is_event else (None, None)
    left, right = join_feeds(join, sides, feed, building, rowtimes=rowtimes, marks=marks)
    _warn_of_one_group(sides, building)
    _warn_of_bounds(interval, building)
    node = IntervalJoin(
        id=building.operator_id(IntervalJoin.kind),
        join_type=_interval_type(join),
        time="event" if is_event else "processing",
        lower_ms=interval.lower_ms,
        upper_ms=interval.upper_ms,
        min_cleanup_ms=_min_cleanup_ms(interval, building),
        left=sides.left.described(sides.kept_names(0)),
        right=sides.right.described(sides.kept_names(1)),
        key=sides.key_type,
        filter_nulls=filter_nulls(sides),
        residual=text_of(and_all(sides.condition.residual), sides.names),
        output=output_of(wanted, sides.names, building),
        timing=timing(
            building,
            (left.streams, right.streams),
            hears=is_event,
            forwards=wanted.forwards,
            ticks=not is_event,
            ttl_ms=(0, 0),
        ),
        inputs=(*left.inputs, *right.inputs),
        changelog_mode=mode_text(kinds(join), wanted.update_before),
        unique_keys=named_keys(unique_keys(join), sides.names),
    )
    return Rows(node, sides.names, (*left.topics, *right.topics))


_NOT_REPEATABLE = (
    "processing time is not repeatable: which version a row meets depends on when it is read"
)


def _warn_of_bounds(interval: Interval, building: Building) -> None:
    if interval.time == "proctime":
        building.warn(
            "processing time is not repeatable: which rows meet depends on their arrival",
            EVENT_TIME,
        )
    if interval.lower_ms > interval.upper_ms:
        building.warn("the time bounds contradict each other: no pair of rows can match")


def _interval_type(join: Join) -> Literal["inner", "left", "right", "full"]:
    match join.kind:
        case "inner" | "left" | "right" | "full" as kind:
            return kind
        case kind:
            raise ValueError(f"an interval join cannot be a {kind} join")


def _min_cleanup_ms(interval: Interval, building: Building) -> int:
    """Flink before 1.18 took half of the interval, which seed 000 shows."""
    if building.settings.min_cleanup_rule == "half":
        return max(interval.upper_ms - interval.lower_ms, 0) // 2
    return building.settings.min_cleanup_ms


def temporal_join(join: Join, wanted: Wanted, feed: Feeder, building: Building) -> Rows:
    """Each left row with the version of the right row at its time."""
    time = join_time(join) or "event"
    sides = join_sides(join, wanted.exprs, building)
    gate = _gate(join, building) if time == "processing" else Gate("none")
    left, right = _temporal_feeds(join, sides, gate, wanted, feed, building)
    _warn_of_one_group(sides, building)
    if time == "event":
        _warn_of_finer_key(sides, building)
    else:
        building.warn(_NOT_REPEATABLE, EVENT_TIME)
    hears = time == "event" or gate.kind != "none"
    node = TemporalJoin(
        id=building.operator_id(TemporalJoin.kind),
        join_type="left" if join.kind == "left" else "inner",
        time=time,
        gate=gate,
        left=sides.left.described(sides.kept_names(0)),
        right=sides.right.described(sides.kept_names(1)),
        key=sides.key_type,
        filter_nulls=filter_nulls(sides),
        residual=text_of(and_all(sides.condition.residual), sides.names),
        output=output_of(wanted, sides.names, building, drops_late=time == "event"),
        timing=timing(
            building,
            (left.streams, right.streams),
            hears=hears,
            forwards=wanted.forwards,
            ticks=gate.kind != "none",
            ttl_ms=_ttl(join, building),
        ),
        inputs=(*left.inputs, *right.inputs),
        changelog_mode=mode_text(kinds(join), wanted.update_before),
        unique_keys=named_keys(unique_keys(join), sides.names),
        late_probe=building.settings.late_probe,
    )
    return Rows(node, sides.names, (*left.topics, *right.topics), keeps_order(join))


def _temporal_feeds(
    join: Join, sides: JoinSides, gate: Gate, wanted: Wanted, feed: Feeder, building: Building
) -> tuple[Feed, Feed]:
    if join_time(join) == "processing":
        # its time is the probe side's; the build side's only opens a gate
        marks = (wanted.forwards, gate.kind == "watermark")
        left, right = join_feeds(join, sides, feed, building, marks=marks)
        return left, replace(right, streams=right.topics) if gate.kind == "loaded" else right
    valid_from = version_time(join.right)
    if valid_from is None:
        raise ValueError("the versioned table has no event time")
    rowtimes = (join.as_of, _field(join.right, valid_from))
    return join_feeds(join, sides, feed, building, rowtimes=rowtimes, marks=(True, True))


def _field(node: Logical, index: int) -> Expr:
    field = node.fields[index]
    return Column(index, field.name, field.type)


def _gate(join: Join, building: Building) -> Gate:
    """A build side that is read from topics says nothing until it is complete."""
    snapshot = join.snapshot
    gate = Gate(
        kind="loaded",
        timeout_ms=building.settings.bootstrap_timeout_ms or 0,
        on_timeout=building.settings.on_bootstrap_timeout,
        table=tables(join.right),
    )
    if snapshot is not None and snapshot.at_ms is not None:
        # how long to wait for it is the query's to say, not the job's
        gate = replace(gate, kind="watermark", at_ms=snapshot.at_ms, timeout_ms=0)
    if snapshot is not None and snapshot.idle_ms:
        gate = replace(gate, timeout_ms=snapshot.idle_ms, on_timeout="go")
    return gate


def filter_nulls(sides: JoinSides) -> tuple[bool, ...]:
    return tuple(not k.null_safe for k in sides.condition.keys)


def _ttl(join: Join, building: Building) -> tuple[int, int]:
    """State TTL of both sides: a STATE_TTL hint goes before the job's setting."""
    default = building.settings.state_ttl_ms
    left, right = join.ttl_ms
    return (default if left is None else left, default if right is None else right)


def _warn_of_growth(join: Join, ttl_ms: tuple[int, int], building: Building) -> None:
    endless = [tables(n) for n, ms in zip((join.left, join.right), ttl_ms, strict=True) if not ms]
    if endless:
        building.warn(
            f"state grows without bound: rows of {' and '.join(endless)} are kept for ever",
            BOUND_ALL if not any(ttl_ms) else BOUND_ONE,
        )


def _warn_of_one_group(sides: JoinSides, building: Building) -> None:
    if not sides.condition.keys:
        building.warn(
            "no equality between the inputs: all rows go to one key group, one task does the work",
            "AND left.column = right.column  -- in ON or WHERE, of columns that many values spread",
        )


def _warn_of_finer_key(sides: JoinSides, building: Building) -> None:
    source = sides.right.source
    if source and is_normalized(source.table, building) and not sides.right.upsert:
        name = source.table.name
        why = (
            f"rows of {name} are normalised by primary key first"
            if needs_rows(source, building)
            else f"deletions of {name} carry its primary key only and the join key has more columns"
        )
        building.warn(f"{why}: a deletion takes effect at the time of the row it deletes")


def tables(node: Logical) -> str:
    """What an input is made of, for people."""
    match peel(node).base:
        case Scan(table=table):
            return table.name
        case Join(left=left, right=right):
            return f"({tables(left)} join {tables(right)})"
        case base:
            below = inputs_of(base)
            names = " union ".join(tables(i) for i in below)
            return f"({names})" if len(below) > 1 else names

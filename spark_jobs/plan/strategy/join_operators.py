"""Joins of two inputs as operators: regular, interval and temporal."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from spark_jobs.plan.facts.bounds import Interval, fires_early
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.nodes.parts import Advice, Gate, and_words
from spark_jobs.plan.nodes.physical import IntervalJoin, RegularJoin, TemporalJoin
from spark_jobs.plan.strategy.building import (
    BOUND_ALL,
    BOUND_ONE,
    Building,
    Input,
    Planned,
    Required,
    not_repeatable,
    tables,
    warning,
)
from spark_jobs.plan.strategy.healing import needs_rows
from spark_jobs.plan.strategy.join_sides import (
    JoinSides,
    join_inputs,
    join_sides,
    join_time,
    keeps_order,
)
from spark_jobs.plan.strategy.operator import operator
from spark_jobs.plan.strategy.scans import is_normalized
from spark_jobs.plan.strategy.timing import state_ttl, timing
from spark_jobs.sql.logical import Join, Logical, column


def regular_join(join: Join, required: Required, building: Building) -> Planned:
    """All rows of both sides, kept for their TTL."""
    sides = join_sides(join, required.exprs, building)
    ttl_ms = state_ttl(building, join.ttl_ms)
    return operator(
        RegularJoin(join.kind, sides.pair(), building.input_faults),
        required,
        sides.names,
        facts(join),
        timing(building, ttl_ms=ttl_ms, forwards=required.forwards),
        building,
        join_inputs(join, sides, marks=(required.forwards,) * 2),
        (*growth((join.left, join.right), ttl_ms), *_one_group(sides)),
    )


def interval_join(
    join: Join, interval: Interval, required: Required, building: Building
) -> Planned:
    """Pairs whose times are close; rows that are out of reach are forgotten."""
    sides = join_sides(join, required.exprs, building, interval.condition)
    is_event = interval.time == "rowtime"
    changes = _changes(join)
    times = column(join.left.fields, interval.left), column(join.right.fields, interval.right)
    machine = IntervalJoin(
        join_type=_interval_type(join),
        time="event" if is_event else "processing",
        lower_ms=interval.lower_ms,
        upper_ms=interval.upper_ms,
        min_cleanup_ms=_min_cleanup_ms(interval, building),
        pair=sides.pair(),
        changes=changes,
        early_fire_ms=_early_fire_ms(join, interval),
    )
    forwards = required.forwards
    followed = timing(
        building, ttl_ms=(0, 0), listens=is_event, forwards=forwards, ticks=not is_event
    )
    return operator(
        machine,
        required,
        sides.names,
        facts(join),
        followed,
        building,
        join_inputs(
            join,
            sides,
            rowtimes=times if is_event else (None, None),
            marks=(is_event or forwards,) * 2,
        ),
        (*_one_group(sides), *_bounds(interval)),
        late_topic=building.settings.late_topic if changes else None,
    )


def _changes(join: Join) -> bool:
    return any(facts(i).kinds != INSERT for i in (join.left, join.right))


def _bounds(interval: Interval) -> Iterator[Advice]:
    if interval.time == "proctime":
        yield not_repeatable("which rows meet depends on their arrival")
    if interval.lower_ms > interval.upper_ms:
        yield warning("the time bounds contradict each other: no pair of rows can match")


def _early_fire_ms(join: Join, interval: Interval) -> int | None:
    hint = join.early_fire
    return hint.delay_ms if hint is not None and fires_early(join, interval) else None


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


def temporal_join(join: Join, required: Required, building: Building) -> Planned:
    """Each left row with the version of the right row at its time."""
    time = join_time(join) or "event"
    is_event = time == "event"
    sides = join_sides(join, required.exprs, building)
    gate = Gate("none") if is_event else _gate(join, building)
    machine = TemporalJoin(
        join_type="left" if join.kind == "left" else "inner",
        time=time,
        gate=gate,
        pair=sides.pair(),
        late_probe=building.settings.late_probe,
        probe_changes=facts(join.left).kinds != INSERT,
    )
    followed = timing(
        building,
        ttl_ms=state_ttl(building, join.ttl_ms),
        listens=is_event or gate.kind != "none",
        forwards=required.forwards,
        ticks=gate.kind != "none",
    )
    by_arrival = not_repeatable("which version a row meets depends on when it is read")
    kept = (join.left,) if machine.probe_changes else ()
    return operator(
        machine,
        required,
        sides.names,
        facts(join),
        followed,
        building,
        _temporal_inputs(join, sides, gate, required),
        (
            *_one_group(sides),
            *growth(kept, (max(followed.ttl_ms),) * len(kept)),
            *(_finer_key(sides, building) if is_event else (by_arrival,)),
        ),
        late_topic=building.settings.late_topic if is_event else None,
        ordered=keeps_order(join),
    )


def _temporal_inputs(
    join: Join, sides: JoinSides, gate: Gate, required: Required
) -> tuple[Input, Input]:
    if join_time(join) == "processing":
        # its time is the probe side's; the build side's only opens a gate
        return join_inputs(join, sides, marks=(required.forwards, gate.kind == "watermark"))
    valid_from = facts(join.right).version_time
    if valid_from is None:
        raise ValueError("the versioned table has no event time")
    rowtimes = (join.as_of, column(join.right.fields, valid_from))
    return join_inputs(join, sides, rowtimes=rowtimes, marks=(True, True))


def _gate(join: Join, building: Building) -> Gate:
    """Probe rows wait until the build side is complete: before, they would miss rows of it."""
    snapshot = join.snapshot
    gate = Gate(
        kind="loaded",
        timeout_ms=building.settings.bootstrap_timeout_ms or 0,
        on_timeout=building.settings.on_bootstrap_timeout,
        table=tables(join.right),
    )
    if snapshot is not None and snapshot.at_ms is not None:
        # the query decides how long to wait for it, not the job
        gate = replace(gate, kind="watermark", at_ms=snapshot.at_ms, timeout_ms=0)
    if snapshot is not None and snapshot.idle_ms:
        gate = replace(gate, timeout_ms=snapshot.idle_ms, on_timeout="go")
    return gate


def growth(inputs: Sequence[Logical], ttl_ms: Sequence[int]) -> Iterator[Advice]:
    """A warning of rows that a join keeps for ever."""
    endless = [tables(n) for n, ms in zip(inputs, ttl_ms, strict=True) if not ms]
    if endless:
        yield warning(
            f"state grows without bound: rows of {and_words(endless)} are kept for ever",
            BOUND_ALL if not any(ttl_ms) else BOUND_ONE,
        )


def _one_group(sides: JoinSides) -> Iterator[Advice]:
    if not sides.condition.keys:
        yield warning(
            "no equality between the inputs: all rows go to one key group, one task does the work",
            "AND left.column = right.column  -- in ON or WHERE, of columns that many values spread",
        )


def _finer_key(sides: JoinSides, building: Building) -> Iterator[Advice]:
    source = sides.right.source
    if source and is_normalized(source.table, building) and not sides.right.upsert:
        name = source.table.name
        why = (
            f"rows of {name} are normalised by primary key first"
            if needs_rows(source, building)
            else f"deletions of {name} carry its primary key only and the join key has more columns"
        )
        yield warning(f"{why}: a deletion takes effect at the time of the row it deletes")

"""All facts of a logical node: computed once, from the facts of its inputs, and carried by it."""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.plan.facts.bounds import Interval, interval, mixed_times
from spark_jobs.plan.facts.changelog import Kinds, kinds
from spark_jobs.plan.facts.keys import JoinCondition, Key, smallest, split_condition, unique_keys
from spark_jobs.plan.facts.times import Times, times, version_time
from spark_jobs.sql.logical import (
    Deduplicate,
    Join,
    Logical,
    Rank,
    TimeAttribute,
    Unnest,
    inputs_of,
)
from spark_jobs.sql.types.expr import Column


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a node.

    `times`: the time attribute, or None, of every field. `version_time`: the field that says from
    when a row of a versioned table is valid. `upsert_keys`: unique keys by which a row's changes
    stay in order (Flink's FlinkRelMdUpsertKeys). Of joins only: `interval` is None where the join
    is of another kind, `condition` is the whole condition, taken apart.
    """

    times: Times
    version_time: int | None
    kinds: Kinds
    unique_keys: frozenset[Key]
    upsert_keys: frozenset[Key]
    interval: Interval | None
    condition: JoinCondition


def facts(node: Logical) -> Facts:
    """The facts of a node."""
    found = getattr(node, "facts", None)
    if not isinstance(found, Facts):
        found = _facts(node, [facts(i) for i in inputs_of(node)])
        object.__setattr__(node, "facts", found)
    return found


def _facts(node: Logical, below: Sequence[Facts]) -> Facts:
    bounds, condition = None, JoinCondition((), ())
    ordered = [i.upsert_keys for i in below]
    if isinstance(node, Join):
        bounds = interval(node, below[0].times, below[1].times)
        condition = split_condition(node, below[1].unique_keys)
        # rows go to tasks by join key: changes of a row stay in order by keys that contain it
        read = condition.columns_read(0), condition.columns_read(1)
        ordered = [frozenset(k for k in ordered[side] if read[side] <= k) for side in (0, 1)]
    if isinstance(node, Rank):
        ordered = [frozenset(k for k in ordered[0] if frozenset(node.partition) <= k)]
    if isinstance(node, Unnest):
        by = smallest(ordered[0]) or frozenset()
        ordered = [frozenset(k for k in ordered[0] if by <= k)]
    own_times = times(node, [i.times for i in below], is_interval=bounds is not None)
    return Facts(
        times=own_times,
        version_time=version_time(node, own_times, [i.version_time for i in below]),
        kinds=kinds(node, [i.kinds for i in below], bounds),
        unique_keys=unique_keys(node, [i.unique_keys for i in below], condition),
        upsert_keys=unique_keys(node, ordered, condition),
        interval=bounds,
        condition=condition,
    )


def as_of_time(join: Join) -> TimeAttribute:
    """The left time attribute that `FOR SYSTEM_TIME AS OF` names, None if it names none."""
    if isinstance(join.as_of, Column):
        left = facts(join.left).times
        return left[join.as_of.index] if join.as_of.index < len(left) else None
    return None


def waits_for_watermark(node: Deduplicate) -> bool:
    """The first row by event time is known when the watermark has passed it (FLINK-37005)."""
    is_first = node.keep == "first" and facts(node).times[node.order] == "rowtime"
    return is_first and not node.corrects


def compares_different_times(join: Join) -> bool:
    """Whether an event time is bounded by a processing time, which has no meaning."""
    return mixed_times(join, facts(join.left).times, facts(join.right).times)

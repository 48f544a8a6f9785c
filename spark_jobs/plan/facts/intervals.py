"""Recognises interval joins: conditions that bound one time attribute by another, both ways.

Flink runs such a join as an interval join whatever its author had in mind, so it must be told
apart from a regular join over the same columns.
"""

from spark_jobs.plan.facts.bounds import Interval, mixed_times
from spark_jobs.plan.facts.times import interval_bounds, times
from spark_jobs.plan.nodes.logical import Join

__all__ = ["Interval", "compares_different_times", "interval_of"]


def interval_of(join: Join) -> Interval | None:
    """The bounds of an interval join; None where the join is of another kind."""
    return interval_bounds(join)


def compares_different_times(join: Join) -> bool:
    """Whether an event time is bounded by a processing time, which has no meaning."""
    return mixed_times(join, times(join.left), times(join.right))

"""Which fields of a plan are still time attributes: Flink's RelTimeIndicatorConverter.

A time attribute promises that watermarks follow it. Operators whose output may come out of order
lose it: its column is a plain timestamp from there on.
"""

from spark_jobs.plan.facts.bounds import Interval, interval
from spark_jobs.plan.nodes.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Project,
    RowNumber,
    Scan,
    Sink,
    TimeAttribute,
    Union,
)
from spark_jobs.sql.types.expr import Call, Column, Expr

Times = tuple[TimeAttribute, ...]


def times(node: Logical) -> Times:
    """The time attribute, or None, of every field of a node."""
    match node:
        case Scan(fields=fields):
            return tuple(f.time for f in fields)
        case Filter(input=inner) | Sink(input=inner) | Deduplicate(input=inner):
            return times(inner)
        case Project(input=inner, exprs=exprs):
            below = times(inner)
            return tuple(_of(e, below) for e in exprs)
        case RowNumber(input=inner):
            return (*times(inner), None)
        case Aggregate(fields=fields):
            return (None,) * len(fields)
        case Union(inputs=inputs):
            return tuple(_common(found) for found in zip(*map(times, inputs), strict=True))
        case Join():
            return _joined(node)


def version_time(node: Logical) -> int | None:
    """The field that says from when a row of a versioned table is valid.

    A versioned view goes by the time that its ROW_NUMBER is ordered by.
    """
    match node:
        case Deduplicate(order=order):
            return order if times(node)[order] == "rowtime" else None
        case Filter(input=inner):
            return version_time(inner)
        case Project(input=inner, exprs=exprs):
            below = version_time(inner)
            found = (i for i, e in enumerate(exprs) if isinstance(e, Column) and e.index == below)
            return next(found, None)
        case _:
            return next((i for i, time in enumerate(times(node)) if time == "rowtime"), None)


def as_of_time(join: Join) -> TimeAttribute:
    """The left time attribute that `FOR SYSTEM_TIME AS OF` names, None if it names none."""
    if isinstance(join.as_of, Column):
        left = times(join.left)
        return left[join.as_of.index] if join.as_of.index < len(left) else None
    return None


def is_versioned(join: Join) -> bool:
    """Whether left rows meet versions of right rows: temporal and snapshot joins."""
    return join.as_of is not None or join.snapshot is not None


def interval_bounds(join: Join) -> Interval | None:
    """The bounds of an interval join; None where the join is of another kind."""
    return interval(join, times(join.left), times(join.right))


def _of(expr: Expr, below: Times) -> TimeAttribute:
    match expr:
        case Column(index=index):
            return below[index]
        case Call(op="PROCTIME"):
            return "proctime"
        case _:
            return None


def _common(found: tuple[TimeAttribute, ...]) -> TimeAttribute:
    return found[0] if len(set(found)) == 1 else None


def _joined(join: Join) -> Times:
    """Temporal joins keep the left times, interval joins both sides', regular joins none."""
    left = times(join.left)
    if join.kind in ("semi", "anti"):
        return (None,) * len(left)
    right = times(join.right)
    if is_versioned(join):
        return (*left, *(None for _ in right))
    if interval(join, left, right) is not None:
        return (*left, *right)
    return (None,) * (len(left) + len(right))

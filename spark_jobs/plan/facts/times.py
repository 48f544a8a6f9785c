"""Which fields of a plan are still time attributes: Flink's RelTimeIndicatorConverter.

A time attribute promises that watermarks follow it. Operators whose output may come out of order
lose it: its column is a plain timestamp from there on.
"""

from collections.abc import Sequence
from typing import assert_never

from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    NoRows,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    TimeAttribute,
    Union,
    Unnest,
)
from spark_jobs.sql.types.expr import Call, Column, Expr

Times = tuple[TimeAttribute, ...]


def times(node: Logical, below: Sequence[Times], *, is_interval: bool) -> Times:
    """The time attribute, or None, of every field, from those of the inputs."""
    match node:
        case Scan(fields=fields) | NoRows(fields=fields):
            return tuple(f.time for f in fields)
        case Filter() | Sink() | Deduplicate():
            return below[0]
        case Project(exprs=exprs):
            return tuple(_computed(e, below[0]) for e in exprs)
        case RowNumber():
            return (*below[0], None)
        case Unnest(elements=elements):
            return (*below[0], *(None for _ in elements))
        case Rank():
            return (None,) * len(node.fields)
        case Aggregate(fields=fields):
            return (None,) * len(fields)
        case Union():
            return tuple(_common(found) for found in zip(*below, strict=True))
        case Join():
            return _joined(node, below[0], below[1], is_interval)
        case _:
            assert_never(node)


def version_time(node: Logical, times: Times, below: Sequence[int | None]) -> int | None:
    """The field that says from when a row of a versioned table is valid.

    A versioned view goes by the time that its ROW_NUMBER is ordered by.
    """
    match node:
        case Deduplicate(order=order):
            return order if times[order] == "rowtime" else None
        case Filter():
            return below[0]
        case Project(exprs=exprs):
            found = (
                i for i, e in enumerate(exprs) if isinstance(e, Column) and e.index == below[0]
            )
            return next(found, None)
        case Scan() | Join() | Union() | RowNumber() | Rank() | Aggregate() | Unnest() | Sink():
            return next((i for i, time in enumerate(times) if time == "rowtime"), None)
        case NoRows():
            return None
        case _:
            assert_never(node)


def is_versioned(join: Join) -> bool:
    """Whether left rows meet versions of right rows: temporal and snapshot joins."""
    return join.as_of is not None or join.snapshot is not None


def _computed(expr: Expr, below: Times) -> TimeAttribute:
    match expr:
        case Column(index=index):
            return below[index]
        case Call(op="PROCTIME"):
            return "proctime"
        case _:
            return None


def _common(found: tuple[TimeAttribute, ...]) -> TimeAttribute:
    return found[0] if len(set(found)) == 1 else None


def _joined(join: Join, left: Times, right: Times, is_interval: bool) -> Times:
    """Temporal joins keep the left times, interval joins both sides', regular joins none."""
    if join.kind in ("semi", "anti"):
        return (None,) * len(left)
    if is_versioned(join):
        return (*left, *(None for _ in right))
    return (*left, *right) if is_interval else (None,) * (len(left) + len(right))

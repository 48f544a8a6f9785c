"""PROCTIME() may decide when something happens; its value may not be read.

A replay of a batch would read another value, so the result would not be the same.
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from spark_jobs.errors import PositionedError
from spark_jobs.plan.check.problems import unsupported
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.sources import Source, sources
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    NoRows,
    Position,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    TimeAttribute,
    Union,
    Unnest,
    inputs_of,
)
from spark_jobs.sql.types.expr import Call, Column, Expr, columns, conjuncts, walk


def clock_refusals(root: Logical) -> Iterator[PositionedError]:
    """Where the value of PROCTIME() is read; a column that only serves as time does no harm."""
    read = list(sources(root))
    of_tables = [s for s in read if any(map(_computes, s.exprs)) or _filters_by_clock(s)]
    for source in of_tables:
        yield _clock_read(source.position, f" of table {source.table.name}")
    place = root.position if isinstance(root, Sink) else read[0].position
    if not of_tables and "proctime" in facts(root).times:
        yield _clock_read(place, "")
    elif not of_tables:
        at = next(_readers(root, place), None)
        if at is not None:
            yield _clock_read(at, "")


def _filters_by_clock(source: Source) -> bool:
    return source.filter is not None and any(_is_clock(e) for e in walk(source.filter))


def _readers(node: Logical, place: Position) -> Iterator[Position]:
    """The places of nodes that read it, or of the nearest node above that has one."""
    at = getattr(node, "position", place)
    if _reads(node):
        yield at
    for input_ in inputs_of(node):
        yield from _readers(input_, at)


def _reads(node: Logical) -> bool:
    match node:
        case Filter(input=inner, condition=condition):
            return _read((condition,), facts(inner).times)
        case Project(input=inner, exprs=exprs):
            computed = [e for e in exprs if not isinstance(e, Column) and not _is_clock(e)]
            return _read(computed, facts(inner).times)
        case Join():
            return _joined(node)
        case Union():
            kept = facts(node).times
            below = (zip(facts(i).times, kept, strict=True) for i in node.inputs)
            return any(a == "proctime" != b for pairs in below for a, b in pairs)
        case Aggregate(input=inner, keys=keys, calls=calls):
            read = [e for c in calls for e in (c.argument, c.filter) if e is not None]
            return _read((*keys, *read), facts(inner).times)
        case Deduplicate(input=inner, partition=partition):
            return any(facts(inner).times[i] == "proctime" for i in partition)
        case Rank(input=inner, partition=partition, order=order):
            by = (*partition, *(key.column for key in order))
            return any(facts(inner).times[i] == "proctime" for i in by)
        case Unnest(collection=collection, condition=condition):
            return _read((collection, *conjuncts(condition)), facts(node).times)
        case Scan() | NoRows() | RowNumber() | Sink():
            return False
        case _:
            assert_never(node)


def _joined(join: Join) -> bool:
    """Whether a join reads a processing time.

    A regular join does so by storing its columns; an interval join only compares its two times.
    """
    below = (*facts(join.left).times, *facts(join.right).times)
    if is_versioned(join):
        return join.condition is not None and _read((join.condition,), below)
    found = facts(join).interval
    if found is None:
        return "proctime" in below
    width = len(join.left.fields)
    keys = found.condition.keys
    return (
        _read(found.condition.residual, below)
        or _read([k.left for k in keys], below[:width])
        or _read([k.right for k in keys], below[width:])
    )


def _read(exprs: Sequence[Expr], below: Sequence[TimeAttribute]) -> bool:
    return any(below[i] == "proctime" for i in columns(exprs)) or any(map(_computes, exprs))


def _computes(expr: Expr) -> bool:
    """Whether PROCTIME() is part of what the expression computes."""
    return not _is_clock(expr) and any(_is_clock(e) for e in walk(expr))


def _is_clock(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "PROCTIME"


def _clock_read(at: Position, what: str) -> PositionedError:
    return unsupported(
        "PROCESSING_TIME",
        f"the query reads the processing time (PROCTIME()){what}, which is not supported",
        at,
        "leave it out, or use a timestamp of the record: METADATA FROM 'timestamp'",
    )

"""What cannot be planned: what Flink rejects, and what rejoin cannot run.

Each problem is named with its place and a way out; all problems of a query are found at once.
docs/errors.md has the table of them.
"""

from collections.abc import Iterator
from typing import assert_never

from spark_jobs.errors import PositionedError
from spark_jobs.options.settings import NOTHING_SET, DeclaredSettings
from spark_jobs.plan.check.clock_refusals import clock_refusals
from spark_jobs.plan.check.lookup_refusals import lookup_refusals, scan_refusals
from spark_jobs.plan.check.problems import unsupported, why_updating, wrong
from spark_jobs.plan.check.sink_refusals import sink_refusals
from spark_jobs.plan.check.temporal_refusals import JOIN_NAMES, kind_refusals, temporal_refusals
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import compares_different_times, facts
from spark_jobs.plan.facts.lookups import looked_up
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.rules.deduplication import keeps_first_rank, orders_by_time
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Project,
    RowNumber,
    Scan,
    Sink,
    Union,
    inputs_of,
    nodes,
)
from spark_jobs.sql.types.expr import Expr, columns


def refusals(
    bound: Logical, optimized: Logical, settings: DeclaredSettings = NOTHING_SET
) -> Iterator[PositionedError]:
    """Every reason not to run the query; `optimized` is `bound` after the rules."""
    kind = [p for n in nodes(bound) if isinstance(n, Join) for p in kind_refusals(n)]
    found = [*kind, *(problem for n in nodes(optimized) for problem in _node(n))]
    found += scan_refusals(optimized)
    found += [p for n, condition in _numbered(optimized) for p in _row_number(n, condition)]
    yield from found
    if not found:
        yield from clock_refusals(optimized)
    if isinstance(optimized, Sink):
        yield from sink_refusals(optimized, settings)


def _node(node: Logical) -> Iterator[PositionedError]:
    match node:
        case Join() if is_versioned(node):
            table = looked_up(node)
            yield from temporal_refusals(node) if table is None else lookup_refusals(node, table)
        case Join():
            yield from _interval_join(node)
        case Deduplicate():
            yield from _deduplicate(node)
        case Scan() | Filter() | Project() | Union() | RowNumber() | Aggregate() | Sink():
            return
        case _:
            assert_never(node)


def _interval_join(join: Join) -> Iterator[PositionedError]:
    if facts(join).interval is None:
        if compares_different_times(join):
            yield wrong(
                "INTERVAL_JOIN_TIMES",
                "the join condition compares an event time with a processing time",
                join.position,
                "compare two event times, or two processing times",
            )
        return
    for input_ in (join.left, join.right):
        if facts(input_).kinds != INSERT:
            side = "left" if input_ is join.left else "right"
            yield wrong(
                "INTERVAL_JOIN_UPDATES",
                f"an interval {JOIN_NAMES[join.kind]} takes insertions only, but its {side} input"
                f" is updated: {why_updating(input_)}",
                join.position,
                "leave out one bound to get a regular join, which keeps its rows for ever, or"
                " read the input as an append-only table",
            )


def _deduplicate(node: Deduplicate) -> Iterator[PositionedError]:
    if facts(node.input).kinds != INSERT:
        yield unsupported(
            "DEDUPLICATE_UPDATES",
            "the first or last row of a key can be kept of insertions only, but the input is"
            f" updated: {why_updating(node.input)}",
            node.position,
            "declare the key as the PRIMARY KEY of the table: it then has one row per key",
        )


def _numbered(node: Logical) -> Iterator[tuple[RowNumber, Expr | None]]:
    """All row numbers with the filter above them."""
    match node:
        case Filter(input=RowNumber() as numbered, condition=condition):
            yield numbered, condition
            yield from _numbered(numbered.input)
            return
        case RowNumber():
            yield node, None
    for input_ in inputs_of(node):
        yield from _numbered(input_)


def _row_number(node: RowNumber, condition: Expr | None) -> Iterator[PositionedError]:
    rank = len(node.fields) - 1
    if condition is None or rank not in columns((condition,)):
        yield wrong(
            "ROW_NUMBER_UNBOUNDED",
            "ROW_NUMBER() without a condition on its value numbers rows without end",
            node.position,
            "keep one row per key: WHERE rownum = 1 in the query around it",
        )
    elif not keeps_first_rank(condition, rank):
        yield unsupported(
            "TOP_N",
            "ROW_NUMBER() is supported as deduplication only, which keeps row number 1",
            node.position,
            "write WHERE rownum = 1",
        )
    elif not orders_by_time(node):
        names = ", ".join(node.input.fields[i].name for i, _ in node.order)
        yield unsupported(
            "DEDUPLICATE_ORDER",
            f"ROW_NUMBER() is ordered by {names or 'nothing'}, which is not one time attribute of"
            " its input",
            node.position,
            "order by one column that has a WATERMARK, or by one that is PROCTIME()",
        )

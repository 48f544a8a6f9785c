"""What cannot be planned: what Flink rejects, and what rejoin cannot run.

Each problem is named with its place and a way out; all problems of a query are found at once.
docs/errors.md has the table of them.
"""

from collections.abc import Iterator
from typing import assert_never

from spark_jobs.errors import PositionedError
from spark_jobs.options.settings import NOTHING_SET, DeclaredSettings
from spark_jobs.plan.check.clock_refusals import clock_refusals
from spark_jobs.plan.check.early_fire import early_fire_refusals
from spark_jobs.plan.check.function_refusals import function_refusals
from spark_jobs.plan.check.lookup_refusals import lookup_refusals, scan_refusals
from spark_jobs.plan.check.problems import unsupported, why_updating, wrong
from spark_jobs.plan.check.sink_refusals import sink_refusals
from spark_jobs.plan.check.temporal_refusals import JOIN_NAMES, kind_refusals, temporal_refusals
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import compares_different_times, facts
from spark_jobs.plan.facts.lookups import looked_up
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.rules.top_n import taken_range
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
    Union,
    Unnest,
    inputs_of,
    nodes,
)
from spark_jobs.sql.types.expr import Expr

_UNORDERED = ("ROW", "ARRAY", "MAP", "BYTES")


def refusals(
    bound: Logical, optimized: Logical, settings: DeclaredSettings = NOTHING_SET
) -> Iterator[PositionedError]:
    """Every reason not to run the query; `optimized` is `bound` after the rules."""
    kind = [p for n in nodes(bound) if isinstance(n, Join) for p in kind_refusals(n)]
    found = [*kind, *(problem for n in nodes(optimized) for problem in _node(n))]
    found += [*scan_refusals(optimized), *_constant_query(bound), *function_refusals(optimized)]
    found += [p for n, condition in _numbered(optimized) for p in _row_number(n, condition)]
    yield from found
    if not found:
        yield from clock_refusals(optimized)
    if isinstance(optimized, Sink):
        yield from sink_refusals(optimized, settings)


def _constant_query(bound: Logical) -> Iterator[PositionedError]:
    """A stream has no end, and a query without one has nothing to wait for."""
    read = [n for n in nodes(bound) if isinstance(n, Scan | NoRows)]
    if read and not any(isinstance(n, Scan) for n in read):
        yield unsupported(
            "CONSTANT_QUERY",
            "the query reads no table: all its rows are constants",
            read[0].position,
            "read a table beside them, with UNION ALL or a join",
        )


def _node(node: Logical) -> Iterator[PositionedError]:
    match node:
        case Join() if is_versioned(node):
            table = looked_up(node)
            yield from temporal_refusals(node) if table is None else lookup_refusals(node, table)
        case Join():
            yield from _interval_join(node)
            yield from early_fire_refusals(node)
        case Deduplicate():
            yield from _deduplicate(node)
        case Rank():
            yield from _rank(node)
        case Scan() | Filter() | Project() | Union() | RowNumber() | Aggregate():
            return
        case NoRows() | Unnest() | Sink():
            return
        case _:
            assert_never(node)


def _interval_join(join: Join) -> Iterator[PositionedError]:
    interval = facts(join).interval
    if interval is None:
        if compares_different_times(join):
            yield wrong(
                "INTERVAL_JOIN_TIMES",
                "the join condition compares an event time with a processing time",
                join.position,
                "compare two event times, or two processing times",
            )
        return
    for input_ in (join.left, join.right):
        if facts(input_).kinds != INSERT and interval.time == "proctime":
            side = "left" if input_ is join.left else "right"
            yield wrong(
                "INTERVAL_JOIN_UPDATES",
                f"an interval {JOIN_NAMES[join.kind]} by processing time takes insertions only, but"
                f" its {side} input is updated: {why_updating(input_)}",
                join.position,
                "compare event times, which a row and its retraction share; or leave out one bound"
                " to get a regular join, which keeps its rows for ever",
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
    """What no rule has made a deduplication or a Top-N of."""
    place = len(node.fields) - 1
    _, first, last = (None, 1, None) if condition is None else taken_range(condition, place)
    if last is None:
        yield wrong(
            "ROW_NUMBER_UNBOUNDED",
            "ROW_NUMBER() without a constant above which it is not wanted numbers rows without end",
            node.position,
            "keep the first rows of each partition: WHERE rownum <= 10 in the query around it",
        )
    else:
        yield wrong(
            "TOP_N",
            f"no row number is at least {first} and at most {last}",
            node.position,
            "row numbers count from 1: WHERE rownum <= 10",
        )


def _rank(node: Rank) -> Iterator[PositionedError]:
    for key in node.order:
        ordered = node.input.fields[key.column]
        if ordered.type.name in _UNORDERED:
            yield wrong(
                "TOP_N",
                f"{ordered.name} is of type {ordered.type.sql()}, whose values have no order",
                node.position,
                "order by numbers, texts, times or BOOLEAN",
            )

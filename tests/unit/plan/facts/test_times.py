"""Which operators keep time attributes, and which change kinds they produce."""

from collections.abc import Callable
from typing import get_args

import pytest

from spark_jobs.plan.facts.changelog import ALL, INSERT, mode_text
from spark_jobs.plan.facts.facts import as_of_time, facts, waits_for_watermark
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Field,
    Join,
    JoinType,
    Logical,
    Position,
    Project,
    Scan,
    Snapshot,
    Union,
)
from spark_jobs.sql.types.data_types import BIGINT, INTERVAL_DAY, timestamp
from spark_jobs.sql.types.expr import Call, Column, Literal

Scans = Callable[..., Scan]
Joins = Callable[..., Join]
Refs = Callable[[Logical, str], Column]
Calls = Callable[..., Call]

AT = Position(1, 1)
UPSERT = {"key": "x", "changelog": "upsert"}


def timed(node: Logical) -> list[str]:
    """The names of the fields that are still times."""
    return [f.name for f, time in zip(node.fields, facts(node).times, strict=True) if time]


def count(node: Logical, keys: int = 1) -> Aggregate:
    exprs = tuple(Column(i, f.name, f.type) for i, f in enumerate(node.fields))[:keys]
    call = AggregateCall("COUNT", None, False, None, BIGINT)
    fields = (*node.fields[:keys], Field("n", BIGINT))
    return Aggregate(node, exprs, (call,), fields, AT)


def distinct(node: Logical) -> Aggregate:
    counted = count(node)
    return Aggregate(node, counted.keys, (), counted.fields[:1], AT)


@pytest.fixture
def left(scan: Scans) -> Scan:
    return scan("l", "a b", rowtime="t")


@pytest.fixture
def right(scan: Scans) -> Scan:
    return scan("r", "x y", rowtime="u")


@pytest.fixture
def equal_times(call: Calls) -> Call:
    return call("=", Column(2, "t", timestamp(3)), Column(5, "u", timestamp(3)))


@pytest.mark.parametrize("kind", get_args(JoinType))
def test_regular_joins_keep_no_time(
    kind: JoinType, left: Scan, right: Scan, join: Joins, call: Calls
) -> None:
    on = call("=", Column(0, "a", BIGINT), Column(3, "x", BIGINT))
    assert timed(join(left, right, kind, on)) == []


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
def test_interval_joins_keep_both_times(
    kind: JoinType, left: Scan, right: Scan, join: Joins, equal_times: Call
) -> None:
    found = join(left, right, kind, equal_times)
    assert timed(found) == ["t", "u"]
    assert facts(found).kinds == INSERT


def test_versioned_joins_keep_the_left_time(left: Scan, right: Scan, join: Joins) -> None:
    as_of = join(left, right, "left", None, Column(2, "t", timestamp(3)))
    snapshot = Join(left, right, "inner", None, None, AT, Snapshot(0))
    assert timed(as_of) == timed(snapshot) == ["t"]
    assert as_of_time(as_of) == "rowtime"
    assert as_of_time(snapshot) is None


def test_other_nodes(left: Scan, right: Scan) -> None:
    assert timed(Union((left, left), left.fields, AT)) == ["t"]
    reordered = Project(left, tuple(Column(i, "", BIGINT) for i in (2, 0, 1)), left.fields)
    assert timed(Union((left, reordered), left.fields, AT)) == []
    assert timed(Deduplicate(left, (0,), 2, "last", AT)) == ["t"]
    assert timed(count(left, 3)) == []
    hour = Literal(3_600_000, INTERVAL_DAY)
    later = Call("+", (Column(2, "t", timestamp(3)), hour), timestamp(3))
    clock = Call("PROCTIME", (), timestamp(3))
    exprs = (later, Column(2, "t", timestamp(3)), clock)
    moved = Project(left, exprs, tuple(Field(n, timestamp(3)) for n in ("later", "t", "now")))
    assert facts(moved).times == (None, "rowtime", "proctime")


def test_version_time_is_what_the_rows_are_ordered_by(left: Scan) -> None:
    last = Deduplicate(left, (0,), 2, "last", AT)
    renamed = Project(last, (Column(2, "t", timestamp(3)), Column(0, "a", BIGINT)), left.fields[:2])
    dropped = Project(last, (Column(0, "a", BIGINT),), left.fields[:1])
    assert facts(left).version_time == facts(last).version_time == 2
    assert facts(renamed).version_time == 0
    assert facts(dropped).version_time is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("inner", INSERT), ("semi", INSERT), ("left", ALL), ("right", ALL), ("full", ALL),
     ("anti", ALL)],
)  # fmt: skip
def test_kinds_of_regular_joins(
    kind: JoinType, expected: frozenset[str], scan: Scans, join: Joins
) -> None:
    append, upsert = scan("l", "a b"), scan("r", "x y", **UPSERT)
    assert facts(join(append, append, kind)).kinds == expected
    assert facts(join(append, upsert, kind)).kinds == ALL
    assert facts(join(upsert, append, kind)).kinds == ALL


def test_kinds_of_temporal_joins_are_the_left_ones(scan: Scans, join: Joins) -> None:
    append, upsert = scan("l", "a", rowtime="t"), scan("r", "x", rowtime="t", **UPSERT)
    as_of = Column(1, "t", timestamp(3))
    assert facts(join(append, upsert, "left", None, as_of)).kinds == INSERT
    assert facts(join(upsert, append, "left", None, as_of)).kinds == ALL


def test_kinds_of_other_nodes(scan: Scans) -> None:
    append, upsert = scan("l", "a", rowtime="t"), scan("r", "x", **UPSERT)
    first, last = (Deduplicate(append, (0,), 1, keep, AT) for keep in ("first", "last"))  # type: ignore[arg-type]
    assert facts(first).kinds == INSERT
    assert waits_for_watermark(first)
    assert not waits_for_watermark(last)
    assert mode_text(facts(last).kinds, update_before=True) == "I,UB,UA"
    assert mode_text(facts(count(append)).kinds, update_before=True) == "I,UB,UA"
    assert facts(count(upsert)).kinds == ALL
    assert facts(distinct(append)).kinds == INSERT
    assert mode_text(facts(distinct(upsert)).kinds, update_before=True) == "I,D"
    assert facts(Union((append, append), append.fields, AT)).kinds == INSERT
    both = Union((scan("l", "a"), upsert), append.fields[:1], AT)
    assert facts(both).kinds == ALL

"""Whatever the rules do to a query, its rows stay the same: an interpreter decides, not a plan."""

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.options.connectors import table_options
from spark_jobs.plan.rules.order import optimize
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.catalog import TableColumn as Declared
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Field,
    Filter,
    Join,
    Logical,
    Position,
    Project,
    RowNumber,
    Scan,
    SortKey,
    Union,
    inputs_of,
)
from spark_jobs.sql.types.data_types import BIGINT, BOOLEAN
from spark_jobs.sql.types.expr import Call, Column, Expr, Literal, transform
from tests.unit.plan.interpreter import COMPARISONS, Data, Row, run

pytestmark = pytest.mark.service  # it takes long


def table(name: str, key: tuple[str, ...] = ()) -> Scan:
    """Three columns and an event time."""
    columns = tuple(Declared(f"{name}{i}", BIGINT) for i in range(4))
    options = {"connector": "kafka", "topic": name, "format": "json"}
    fields = tuple(Field(c.name, c.type, "rowtime" if c.name[1:] == "3" else None) for c in columns)
    return Scan(Table(name, columns, table_options(options), key), fields, Position(1, 1))


def ref(index: int) -> Column:
    return Column(index, f"c{index}", BIGINT)


TABLES = ("a", "b", "c", "v")
DATA_SETS = 8
"""Row sets tried per query: most queries let few rows through."""


def data_sets(seed: int) -> list[Data]:
    rng = Random(seed)  # noqa: S311
    return [{name: some_rows(rng) for name in TABLES} for _ in range(DATA_SETS)]


def some_rows(rng: Random) -> list[Row]:
    """Few values, so that keys meet; the time is different in every row."""
    values = (None, 0, 1, 1, 1, 2)
    return [(*rng.choices(values, k=3), time) for time in range(rng.randint(0, 7))]


@cache
def terms(width: int) -> st.SearchStrategy[Expr]:
    column = st.integers(0, width - 1).map(ref)
    number = st.integers(0, 2).map(lambda n: Literal(n, BIGINT))
    total = st.tuples(column, column).map(lambda pair: Call("+", pair, BIGINT))
    return column | column | number | total


@cache
def predicates(width: int) -> st.SearchStrategy[Expr]:
    pair = st.tuples(terms(width), terms(width))
    compared = st.tuples(st.sampled_from(sorted(COMPARISONS)), pair).map(
        lambda p: Call(p[0], p[1], BOOLEAN)
    )
    is_null = st.tuples(
        st.sampled_from(["IS NULL", "IS NOT NULL"]), st.integers(0, width - 1).map(ref)
    ).map(lambda p: Call(p[0], (p[1],), BOOLEAN))
    null_safe = pair.map(
        lambda p: Call(
            "OR",
            (
                Call("=", p, BOOLEAN),
                Call("AND", tuple(Call("IS NULL", (e,), BOOLEAN) for e in p), BOOLEAN),
            ),
            BOOLEAN,
        )
    )
    either = st.tuples(compared, is_null).map(lambda p: Call("OR", p, BOOLEAN))
    single = compared | compared | is_null | null_safe | either
    return st.lists(single, min_size=1, max_size=2).map(
        lambda ps: ps[0] if len(ps) == 1 else Call("AND", tuple(ps), BOOLEAN)
    )


@st.composite
def inputs(draw: st.DrawFn, name: str) -> Logical:
    node: Logical = table(name)
    if draw(st.booleans()):
        node = Filter(node, draw(predicates(4)))
    if draw(st.integers(0, 3)) == 0:
        node = draw(first_or_last(node))
    if draw(st.booleans()):
        node = draw(projected(node, name))
    return node


@st.composite
def first_or_last(draw: st.DrawFn, node: Logical) -> Logical:
    """ROW_NUMBER() = 1, with more in the same WHERE."""
    width = len(node.fields)
    partition = tuple(draw(st.sets(st.integers(0, 2), max_size=2)))
    fields = (*node.fields, Field("rn", BIGINT))
    order = SortKey(3, descends := draw(st.booleans()), not descends)
    numbered = RowNumber(node, partition, (order,), fields, Position(1, 1))
    one = Call("=", (ref(width), Literal(1, BIGINT)), BOOLEAN)
    more = draw(st.none() | predicates(width + 1))
    condition = one if more is None else Call("AND", (one, more), BOOLEAN)
    return Filter(numbered, condition)


@st.composite
def projected(draw: st.DrawFn, node: Logical, name: str) -> Project:
    exprs = tuple(draw(st.lists(terms(len(node.fields)), min_size=1, max_size=3)))
    return Project(node, exprs, tuple(Field(f"{name}x{i}", BIGINT) for i in range(len(exprs))))


@st.composite
def joins(draw: st.DrawFn, left: Logical, right: Logical) -> Logical:
    on = draw(st.none() | predicates(len(left.fields) + len(right.fields)))
    kind = draw(st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]))
    return Join(left, right, kind, on, None, Position(1, 1))


@st.composite
def unions(draw: st.DrawFn, left: Logical, right: Logical) -> Logical:
    width = min(len(left.fields), len(right.fields))
    narrowed = [Project(n, tuple(map(ref, range(width))), n.fields[:width]) for n in (left, right)]
    again = draw(st.booleans())
    one = Union(tuple(narrowed), narrowed[0].fields, Position(1, 1))
    return Union((one, narrowed[0]), one.fields, Position(1, 1)) if again else one


@st.composite
def aggregates(draw: st.DrawFn, node: Logical) -> Logical:
    width = len(node.fields)
    keys = tuple(draw(st.lists(terms(width), max_size=2)))
    functions = draw(st.lists(st.sampled_from(["COUNT", "SUM", "MAX"]), max_size=2))
    calls = [
        AggregateCall(f, draw(terms(width)), False, None, BIGINT)  # type: ignore[arg-type]
        for f in functions
    ]
    if not keys:
        calls.append(AggregateCall("COUNT", None, False, None, BIGINT))
    fields = tuple(Field(f"g{i}", BIGINT) for i in range(len(keys) + len(calls)))
    return Aggregate(node, keys, tuple(calls), fields, Position(1, 1))


@st.composite
def operators(draw: st.DrawFn, left: Logical, right: Logical) -> Logical:
    shape = draw(st.sampled_from(["join", "join", "join", "union", "aggregate"]))
    if shape == "union":
        return draw(unions(left, right))
    if shape == "aggregate":
        return draw(aggregates(draw(joins(left, right))))
    return draw(joins(left, right))


@st.composite
def queries(draw: st.DrawFn) -> Logical:
    node = draw(operators(draw(inputs("a")), draw(inputs("b"))))
    if draw(st.booleans()):
        other = draw(inputs("c"))
        node = draw(operators(*((node, other) if draw(st.booleans()) else (other, node))))
    if draw(st.booleans()):
        node = Filter(node, draw(predicates(len(node.fields))))
    if draw(st.booleans()):
        node = draw(projected(node, "y"))
        if draw(st.booleans()):
            node = Filter(node, draw(predicates(len(node.fields))))
    return node


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(query=queries(), seed=st.integers(0, 1 << 32))
def test_optimized_query_gives_the_same_rows(query: Logical, seed: int) -> None:
    optimized = optimize(query)
    for data in data_sets(seed):
        assert Counter(run(optimized, data)) == Counter(run(query, data))
    assert [f.name for f in optimized.fields] == [f.name for f in query.fields]
    assert isinstance(optimized, Project)
    assert has_shape(optimized)
    assert optimize(optimized) == optimized


@st.composite
def temporal_joins(draw: st.DrawFn) -> Logical:
    """ON compares the primary key of the versions; what it asks besides may be anything."""
    probe, versions = draw(probes()), table("v", ("v0",))
    key = Call("=", (ref(0), ref(4)), BOOLEAN)
    of_versions = predicates(4).map(lambda p: transform(p, lambda c: ref(c.index + 4)))
    more = draw(st.none() | of_versions | of_versions | predicates(8))
    on = key if more is None else Call("AND", (key, *parts(more)), BOOLEAN)
    kind = draw(st.sampled_from(["inner", "left"]))
    node: Logical = Join(probe, versions, kind, on, ref(3), Position(1, 1))  # type: ignore[arg-type]
    if draw(st.booleans()):
        node = Filter(node, draw(of_versions | predicates(8)))
    return draw(projected(node, "y")) if draw(st.booleans()) else node


@st.composite
def probes(draw: st.DrawFn) -> Logical:
    node: Logical = table("a")
    return Filter(node, draw(predicates(4))) if draw(st.booleans()) else node


def parts(condition: Expr) -> tuple[Expr, ...]:
    is_and = isinstance(condition, Call) and condition.op == "AND"
    return condition.args if is_and and isinstance(condition, Call) else (condition,)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(query=temporal_joins(), seed=st.integers(0, 1 << 32))
def test_optimized_temporal_join_takes_the_same_versions(query: Logical, seed: int) -> None:
    optimized = optimize(query)
    for data in data_sets(seed):
        assert Counter(run(optimized, data)) == Counter(run(query, data))
    assert has_shape(optimized)


def has_shape(node: Logical) -> bool:
    """Project?(Filter?(X)) above each X that is a table, a union or keeps state."""
    if isinstance(node, Project):
        node = node.input
    if isinstance(node, Filter):
        node = node.input
        if isinstance(node, Union):
            return False
    return isinstance(node, (Scan, Join, Aggregate, Deduplicate, Union)) and all(
        map(has_shape, inputs_of(node))
    )


def test_rules_reach_one_shape_in_one_pass() -> None:
    join = Join(
        table("a"), table("b"), "inner", Call("=", (ref(0), ref(4)), BOOLEAN), None, Position(1, 1)
    )
    once = optimize(Project(join, (ref(1),), (Field("a1", BIGINT),)))
    assert optimize(once) == once

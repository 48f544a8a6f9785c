"""Key facts: equalities taken out of conditions, unique keys through every node, state layouts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.strategy.join_sides import input_spec, unique_names
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Field,
    Filter,
    Join,
    Logical,
    Position,
    Project,
    Scan,
    Union,
)
from spark_jobs.sql.types.data_types import BIGINT, INT, STRING, DataType, decimal, timestamp
from spark_jobs.sql.types.expr import Call, Column, Literal

Scans = Callable[..., Scan]
Joins = Callable[..., Join]
Refs = Callable[[Logical, str], Column]
Calls = Callable[..., Call]

AT = Position(1, 1)


def keys_by_name(node: Logical) -> set[frozenset[str]]:
    return {frozenset(node.fields[i].name for i in key) for key in facts(node).unique_keys}


def names(*keys: str) -> set[frozenset[str]]:
    return {frozenset(key.split()) for key in keys}


def test_scan_is_unique_by_its_primary_key(scan: Scans) -> None:
    assert keys_by_name(scan("t", "a b c", key="b a")) == names("a b")
    assert keys_by_name(scan("t", "a b c")) == set()


def test_projection_keeps_keys_whose_columns_it_keeps(scan: Scans, ref: Refs) -> None:
    table = scan("t", "a b", key="a")
    total = Call("+", (ref(table, "a"), ref(table, "b")), BIGINT)

    def project(**exprs: Call | Column) -> Project:
        return Project(table, tuple(exprs.values()), tuple(Field(n, BIGINT) for n in exprs))

    assert keys_by_name(project(x=ref(table, "a"), y=total)) == names("x")
    assert keys_by_name(project(x=ref(table, "b"), y=total)) == set()
    assert keys_by_name(project(x=ref(table, "a"), y=ref(table, "a"))) == names("x", "y")


def test_filter_keeps_keys(scan: Scans, ref: Refs, call: Calls) -> None:
    table = scan("t", "a b", key="a")
    assert keys_by_name(Filter(table, call("IS NULL", ref(table, "b")))) == names("a")


@pytest.mark.parametrize(
    ("left_key", "right_key", "kind", "expected"),
    [
        ("", "", "inner", set()),
        ("a", "", "inner", set()),
        # either side unique by the join key: the other side's keys survive
        ("a", "x", "inner", {"a", "x", "a x"}),
        ("b", "x", "inner", {"b", "b x"}),
        ("b", "y", "inner", {"b y"}),
        # unmatched left rows show, so right keys alone are not unique
        ("a", "x", "left", {"a", "a x"}),
        ("b", "x", "left", {"b", "b x"}),
        ("a", "y", "left", {"a y"}),
        ("a", "x", "right", {"x", "a x"}),
        ("a", "x", "full", {"a x"}),
        ("a", "x", "anti", {"a"}),
    ],
)
def test_join_keys(
    left_key: str,
    right_key: str,
    kind: str,
    expected: set[str],
    scan: Scans,
    join: Joins,
    ref: Refs,
    call: Calls,
) -> None:
    left, right = scan("l", "a b", key=left_key), scan("r", "x y", key=right_key)
    both = join(left, right)
    on = call("=", ref(both, "a"), ref(both, "x"))
    assert keys_by_name(join(left, right, kind, on)) == names(*expected)


def test_temporal_join_keeps_the_left_key(scan: Scans, join: Joins, ref: Refs, call: Calls) -> None:
    left = scan("l", "id currency", key="id", rowtime="at")
    right = scan("r", "code rate", key="code", rowtime="since")
    both = join(left, right)
    on = call("=", ref(both, "currency"), ref(both, "code"))
    temporal = join(left, right, "left", on, ref(left, "at"))
    assert names("id") <= keys_by_name(temporal)


def test_equalities_of_both_sides_are_keys(
    scan: Scans, join: Joins, ref: Refs, call: Calls
) -> None:
    left, right = scan("l", "a b"), scan("r", "x y")
    both = join(left, right)
    a, b, x, y = (ref(both, n) for n in "abxy")
    total = Call("+", (x, y), BIGINT)
    on = call(
        "AND",
        call("=", x, a),
        call("IS NOT DISTINCT FROM", b, total),
        call("=", a, b),
        call("<", a, y),
        call("=", Call("+", (a, x), BIGINT), y),
    )
    found = facts(replace(both, condition=on)).condition
    assert [k.null_safe for k in found.keys] == [False, True]
    assert found.keys[0].left == a
    assert found.keys[0].right == replace(x, index=0)
    assert found.columns_of(0) == {0, 1}
    assert found.columns_of(1) == {0}
    assert found.columns_read(1) == {0, 1}
    assert len(found.residual) == 3


def test_values_of_different_bytes_are_no_key(
    scan: Scans, join: Joins, ref: Refs, call: Calls
) -> None:
    both = join(scan("l", "a"), scan("r", "x"))
    a, x = ref(both, "a"), ref(both, "x")
    for left, right in (
        (INT, BIGINT),
        (decimal(10, 2), decimal(20, 2)),
        (decimal(9, 2), decimal(9, 3)),
    ):
        on = call("=", replace(a, type=left), replace(x, type=right))
        assert facts(replace(both, condition=on)).condition.keys == ()
    on = call("=", replace(a, type=replace(INT, nullable=False)), replace(x, type=INT))
    assert len(facts(replace(both, condition=on)).condition.keys) == 1


def test_constant_fixes_a_temporal_key(scan: Scans, join: Joins, ref: Refs, call: Calls) -> None:
    left = scan("l", "id currency", rowtime="at")
    right = scan("r", "code land rate", key="code land", rowtime="since")
    both = join(left, right)
    one = Literal(1, BIGINT)
    on = call(
        "AND",
        call("=", ref(both, "currency"), ref(both, "code")),
        call("=", ref(both, "land"), one),
        call("=", ref(both, "rate"), one),
    )
    found = facts(join(left, right, "inner", on, ref(left, "at"))).condition
    assert [k.left for k in found.keys] == [ref(left, "currency"), one]
    assert found.columns_of(1) == {0, 1}
    assert len(found.residual) == 1
    regular = facts(join(left, right, "inner", on)).condition
    assert len(regular.keys) == 1


def test_layout_follows_the_unique_key() -> None:
    one, two = frozenset({1}), frozenset({0, 2})
    assert input_spec(frozenset(), one) == ("no-unique-key", None)
    assert input_spec(frozenset({one, two}), frozenset({1, 3})) == (
        "join-key-contains-unique-key",
        one,
    )
    assert input_spec(frozenset({two}), frozenset({0, 1})) == ("has-unique-key", two)
    assert input_spec(frozenset({one, two}), frozenset()) == ("has-unique-key", one)


def test_names_are_made_different() -> None:
    assert unique_names(["a", "b", "a", "a0", "", "A", ""]) == ("a", "b", "a0", "a00", "", "A1", "")


def upsert_names(node: Logical) -> set[frozenset[str]]:
    return {frozenset(node.fields[i].name for i in key) for key in facts(node).upsert_keys}


@pytest.mark.parametrize(
    ("left_key", "right_key", "kind", "expected"),
    [
        # both keys are the join key: either tells the rows apart, in order
        ("a", "x", "inner", {"a", "x", "a x"}),
        ("a", "x", "left", {"a", "a x"}),
        # a key without the join key: its changes may come from two tasks
        ("b", "x", "left", set()),
        ("b", "x", "inner", set()),
        ("a b", "x", "left", {"a b", "a b x"}),
        ("a", "y", "inner", set()),
        ("b", "x", "semi", set()),
        ("a", "x", "anti", {"a"}),
    ],
)
def test_upsert_keys_contain_the_join_key(
    left_key: str,
    right_key: str,
    kind: str,
    expected: set[str],
    scan: Scans,
    join: Joins,
    ref: Refs,
    call: Calls,
) -> None:
    left, right = scan("l", "a b", key=left_key), scan("r", "x y", key=right_key)
    both = join(left, right)
    on = call("=", ref(both, "a"), ref(both, "x"))
    assert upsert_names(join(left, right, kind, on)) == names(*expected)


def test_keys_of_groups_and_versions(scan: Scans, ref: Refs) -> None:
    table = scan("t", "a b c", key="c")
    keys = (ref(table, "a"), ref(table, "b"))
    grouped = Aggregate(table, keys, (), table.fields[:2], AT)
    whole = Aggregate(table, (), (), (), AT)
    kept = Deduplicate(table, (1,), 0, "last", AT)
    both = Union((table, table), table.fields, AT)
    assert keys_by_name(grouped) == upsert_names(grouped) == names("a b")
    assert keys_by_name(whole) == upsert_names(whole) == names("")
    assert keys_by_name(kept) == upsert_names(kept) == names("b")
    assert keys_by_name(both) == upsert_names(both) == set()
    assert input_spec(facts(whole).unique_keys, frozenset()) == (
        "join-key-contains-unique-key",
        frozenset(),
    )


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        (INT, BIGINT, True),
        (BIGINT, INT, False),
        (timestamp(3), timestamp(6), True),
        (timestamp(6), timestamp(3), False),
        (INT, STRING, False),
    ],
)
def test_keys_survive_casts_that_widen(
    source: DataType, target: DataType, kept: bool, scan: Scans
) -> None:
    cast = Call("CAST", (Column(0, "a", source),), target)
    project = Project(scan("t", "a", key="a"), (cast,), (Field("a", target),))
    assert bool(facts(project).unique_keys) is kept


def test_processing_time_lookup_takes_any_constant(
    scan: Scans, join: Joins, ref: Refs, call: Calls
) -> None:
    clocked = scan("l", "a", rowtime="p")
    left = replace(clocked, fields=(clocked.fields[0], replace(clocked.fields[1], time="proctime")))
    right = scan("r", "x y")
    both = join(left, right)
    on = call("AND", call("=", ref(both, "y"), Literal(1, BIGINT)), call("<", *both_columns(both)))
    found = facts(join(left, right, "inner", on, ref(left, "p"))).condition
    assert [k.left for k in found.keys] == [Literal(1, BIGINT)]
    assert found.columns_of(1) == {1}
    assert len(found.residual) == 1


def both_columns(node: Join) -> tuple[Column, Column]:
    return Column(0, "a", BIGINT), Column(len(node.left.fields), "x", BIGINT)

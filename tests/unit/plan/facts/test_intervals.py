"""Interval joins out of every spelling of their bounds; what only looks like one is none."""

import pytest

from spark_jobs.plan.facts.bounds import Interval
from spark_jobs.plan.facts.facts import compares_different_times, facts
from spark_jobs.plan.rules.order import optimize
from spark_jobs.plan.text.flink_expr import by_name, expr_text, field_names
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Join, Logical, Project

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"
TABLES = f"""
CREATE TABLE o (k INT, v INT, t TIMESTAMP(3), p AS PROCTIME(), u TIMESTAMP(3),
  WATERMARK FOR t AS t) WITH ({KAFKA}, 'topic' = 'o');
CREATE TABLE s (k INT, v INT, t TIMESTAMP(3), p AS PROCTIME(), u TIMESTAMP(3),
  WATERMARK FOR t AS t) WITH ({KAFKA}, 'topic' = 's');
CREATE TABLE coarse (k INT, v INT, t TIMESTAMP(0), WATERMARK FOR t AS t)
  WITH ({KAFKA}, 'topic' = 'c');
"""
HOUR = 3_600_000
H = "INTERVAL '1' HOUR"


def optimized(sql: str) -> Logical:
    return optimize(bind_query(TABLES + sql).query)


def join_of(node: Logical) -> Join:
    while not isinstance(node, Join):
        assert isinstance(node, Project)
        node = node.input
    return node


def joined(condition: str, kind: str = "JOIN", tables: str = "o {} s") -> Join:
    from_ = tables.format(kind)
    return join_of(optimized(" ".join(("SELECT o.v, s.v FROM", from_, "ON", condition))))


def bounds(condition: str, kind: str = "JOIN") -> tuple[int, int] | None:
    """Of `o.t` by `s.t`, in milliseconds."""
    found = facts(joined(condition, kind)).interval
    return found and (found.lower_ms, found.upper_ms)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"o.t BETWEEN s.t - {H} AND s.t", (-HOUR, 0)),
        (f"s.t BETWEEN o.t AND o.t + {H}", (-HOUR, 0)),
        (f"o.t >= s.t - {H} AND o.t <= s.t", (-HOUR, 0)),
        (f"s.t - {H} <= o.t AND s.t >= o.t", (-HOUR, 0)),
        (f"o.t + {H} >= s.t AND s.t >= o.t", (-HOUR, 0)),
        (f"NOT (o.t < s.t - {H}) AND NOT o.t > s.t", (-HOUR, 0)),
        ("o.t BETWEEN s.t + INTERVAL '-1' HOUR AND s.t", (-HOUR, 0)),
        ("o.t BETWEEN s.t - INTERVAL '30' MINUTE - INTERVAL '30' MINUTE AND s.t", (-HOUR, 0)),
        ("o.t BETWEEN s.t - INTERVAL '30' MINUTE * 2 AND s.t", (-HOUR, 0)),
        ("o.t BETWEEN s.t - (INTERVAL '30' MINUTE + INTERVAL '30' MINUTE) AND s.t", (-HOUR, 0)),
        (f"o.t BETWEEN CAST(s.t AS TIMESTAMP(6)) - {H} AND s.t", (-HOUR, 0)),
        (f"o.t > s.t - {H} AND o.t < s.t", (1 - HOUR, -1)),
        (f"s.t < o.t + {H} AND s.t > o.t", (1 - HOUR, -1)),
        (f"o.t > s.t AND o.t <= s.t + {H}", (1, HOUR)),
        ("o.t = s.t", (0, 0)),
        (f"s.t = o.t - {H}", (HOUR, HOUR)),
        (f"o.t - {H} = s.t + {H}", (2 * HOUR, 2 * HOUR)),
        # the tightest of several bounds
        (f"o.t BETWEEN s.t - {H} AND s.t + {H} AND o.t >= s.t AND o.t < s.t + {H}", (0, HOUR - 1)),
        (f"o.t = s.t AND o.t <= s.t + {H}", (0, 0)),
        # bounds that no time meets
        (f"o.t BETWEEN s.t + {H} AND s.t", (HOUR, 0)),
        ("o.t > s.t AND o.t < s.t", (1, -1)),
    ],
)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_bounds_in_every_spelling(condition: str, kind: str, expected: tuple[int, int]) -> None:
    assert bounds(f"o.k = s.k AND {condition}", kind) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "o.k = s.k",
        "o.t >= s.t",
        f"o.t <= s.t + {H} AND o.t < s.t",
        # not time attributes
        f"o.u BETWEEN s.t - {H} AND s.t",
        f"o.u BETWEEN s.u - {H} AND s.u",
        f"s.u BETWEEN s.t - {H} AND s.t",
        # the time is not what is compared
        f"CAST(o.t AS TIMESTAMP(0)) BETWEEN s.t - {H} AND s.t",
        "CAST(o.t AS STRING) >= CAST(s.t AS STRING) AND o.t <= s.t",
        # a month has no length
        "o.t BETWEEN s.t - INTERVAL '1' MONTH AND s.t",
        f"o.t >= s.t - {H} OR o.t <= s.t",
    ],
)
def test_regular_joins(condition: str) -> None:
    assert facts(joined(condition)).interval is None


def test_semi_and_anti_joins_are_regular() -> None:
    for word in ("EXISTS", "NOT EXISTS"):
        sql = f"SELECT o.v FROM o WHERE {word} (SELECT 1 FROM s WHERE o.t = s.t)"  # noqa: S608
        assert facts(join_of(optimized(sql))).interval is None


def test_comma_join_is_recognised() -> None:
    where = f"WHERE o.k = s.k AND o.t BETWEEN s.t AND s.t + {H}"
    join = join_of(optimized(f"SELECT o.v, s.v FROM o, s {where}"))  # noqa: S608
    assert facts(join).interval is not None


def test_coarse_times_keep_their_milliseconds() -> None:
    join = joined("o.t = s.t", tables="o {} coarse AS s")
    assert facts(join).interval is not None


def test_processing_time() -> None:
    found = facts(joined("o.k = s.k AND o.p BETWEEN s.p - INTERVAL '5' SECOND AND s.p")).interval
    assert found is not None
    assert (found.time, found.lower_ms, found.upper_ms) == ("proctime", -5000, 0)


def test_times_of_different_kinds() -> None:
    join = joined("o.k = s.k AND CAST(o.t AS TIMESTAMP_LTZ(3)) = s.p")
    assert facts(join).interval is None
    assert not compares_different_times(join)


def parts(found: Interval, join: Join) -> tuple[list[str], list[str]]:
    names = by_name(field_names(join))
    sides = (by_name(field_names(join.left)), by_name(field_names(join.right)))
    keys = [
        f"{expr_text(k.left, sides[0])} = {expr_text(k.right, sides[1])}"
        for k in found.condition.keys
    ]
    return keys, [expr_text(p, names) for p in found.condition.residual]


def test_what_else_the_condition_says() -> None:
    join = joined(f"o.k = s.k AND o.t BETWEEN s.t - {H} AND s.t AND o.v < s.v AND o.u = s.u")
    found = facts(join).interval
    assert found is not None
    assert join.left.fields[found.left].name == "t"
    assert join.right.fields[found.right].name == "t"
    assert parts(found, join) == (["k = k", "u = u"], ["<(v, v0)"])


def test_equal_times_are_no_key() -> None:
    join = joined("o.t = s.t AND o.k = s.k")
    found = facts(join).interval
    assert found is not None
    assert parts(found, join) == (["k = k"], [])


@pytest.mark.parametrize("second", ["o.t", "s.t"])
def test_interval_join_keeps_both_times(second: str) -> None:
    node = optimized(
        f"SELECT o.v, s.v, c.v FROM o LEFT JOIN s ON o.k = s.k AND o.t = s.t"  # noqa: S608
        f" JOIN coarse AS c ON c.k = o.k AND c.t BETWEEN {second} AND {second} + {H}"
    )
    join = join_of(node)
    assert facts(join).interval is not None
    assert facts(join).times.count("rowtime") == 2

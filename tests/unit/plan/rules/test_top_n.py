"""ROW_NUMBER() <= n in its spellings, and what of it is needed."""

import pytest

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.rules.order import optimize
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Filter, Logical, Rank, SortKey, nodes

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 'h'"
TABLES = f"""
CREATE TABLE h (k STRING, r INT, x DOUBLE) WITH ({KAFKA}, 'format' = 'json');
CREATE TABLE u (id INT, k STRING, r INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({KAFKA}, 'format' = 'debezium-json');
"""
NUMBERED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY r DESC) AS rn FROM {}) AS x"


def planned(select: str, source: str, rest: str) -> Logical:
    text = " ".join(("SELECT", select, "FROM", source, rest))
    return optimize(bind_query(TABLES + text).query)


def ranked(where: str, select: str = "k, r, rn", table: str = "h") -> Rank:
    root = planned(select, NUMBERED.format(table), f"WHERE {where}")
    [rank] = [node for node in nodes(root) if isinstance(node, Rank)]
    return rank


@pytest.mark.parametrize(
    ("where", "first", "last"),
    [
        ("rn <= 3", 1, 3),
        ("4 > rn", 1, 3),
        ("rn < 4 AND rn <= 9", 1, 3),
        ("rn BETWEEN 2 AND 3", 2, 3),
        ("rn > 1 AND 3 >= rn", 2, 3),
        ("rn = 2", 2, 2),
        ("rn = 1", 1, 1),
        ("rn >= 0 AND rn < CAST(3 AS BIGINT)", 1, 2),
    ],
)
def test_range(where: str, first: int, last: int) -> None:
    found = ranked(where)
    assert (found.first, found.last) == (first, last)
    assert found.order == (SortKey(1, descends=True, nulls_first=False),)
    assert (found.number is None) == (first == last)


def test_number_that_is_not_read_is_left_out() -> None:
    assert ranked("rn <= 3", "k, r").number is None
    assert ranked("rn <= 3 AND rn <> 2", "k, r").number is not None


def test_conditions_on_the_partition_go_below_and_others_stay() -> None:
    found = ranked("rn <= 3 AND k = 'a' AND r > 0")
    assert any(isinstance(node, Filter) for node in nodes(found.input))
    root = planned("k", NUMBERED.format("h"), "WHERE rn <= 3 AND r > 0")
    above = [node for node in nodes(root) if isinstance(node, Filter)]
    assert [type(node.input) for node in above] == [Rank]


def test_keys() -> None:
    several = facts(ranked("rn <= 3", "*", "u"))
    assert several.unique_keys == {frozenset({0}), frozenset({1, 3})}
    assert several.upsert_keys == {frozenset({1, 3})}
    assert facts(ranked("rn = 1", "*", "u")).unique_keys == {frozenset({0}), frozenset({1})}


@pytest.mark.parametrize(
    ("clauses", "first", "last", "order"),
    [
        ("ORDER BY r LIMIT 2", 1, 2, (SortKey(1, False, True),)),
        ("ORDER BY 2 DESC LIMIT 2 OFFSET 3", 4, 5, (SortKey(1, True, False),)),
        ("ORDER BY x * 2, k FETCH FIRST 1 ROWS ONLY", 1, 1, None),
        ("LIMIT 7", 1, 7, ()),
    ],
)
def test_limit(clauses: str, first: int, last: int, order: tuple[SortKey, ...] | None) -> None:
    root = planned("k, r", "h", clauses)
    [found] = [node for node in nodes(root) if isinstance(node, Rank)]
    assert (found.first, found.last, found.partition) == (first, last, ())
    assert order is None or found.order == order
    assert [field.name for field in root.fields] == ["k", "r"]

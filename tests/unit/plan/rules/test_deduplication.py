"""ROW_NUMBER() = 1 in its spellings, where it stands in a query and what else is asked."""

import pytest

from spark_jobs.options.settings import NOTHING_SET, DeclaredSettings, declared_settings
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.rules.order import optimize
from spark_jobs.plan.text.flink import draw, flink_physical_tree
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import (
    Deduplicate,
    Filter,
    Logical,
    Project,
    RowNumber,
    inputs_of,
    nodes,
)
from spark_jobs.sql.types.expr import Literal

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"
TABLES = f"""
CREATE TABLE h (k STRING, r INT, t TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR t AS t)
  WITH ({KAFKA}, 'topic' = 'h');
"""


def ranked(
    order: str,
    where: str,
    select: str = "k, r, t, rn",
    settings: DeclaredSettings = NOTHING_SET,
) -> Logical:
    rank = f"ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS rn"
    text = " ".join(("SELECT", select, "FROM (SELECT *,", rank, "FROM h) AS x WHERE", where))
    return optimize(bind_query(TABLES + text).query, settings)


def found(root: Logical) -> Deduplicate | None:
    return next((n for n in nodes(root) if isinstance(n, Deduplicate)), None)


@pytest.mark.parametrize(
    "where", ["rn = 1", "1 = rn", "rn <= 1", "1 >= rn", "rn < 2", "2 > rn", "rn = 1 AND rn > 0"]
)
def test_rank_one_in_every_spelling(where: str) -> None:
    assert found(ranked("t DESC", where)) is not None


@pytest.mark.parametrize("where", ["rn >= 1", "rn <> 1", "rn = 1 OR r = 2"])
def test_other_ranks_are_none(where: str) -> None:
    root = ranked("t DESC", where)
    assert found(root) is None
    assert any(isinstance(n, RowNumber) for n in nodes(root))


@pytest.mark.parametrize(
    ("order", "keep", "time"),
    [
        ("t", "first", "t"),
        ("t ASC", "first", "t"),
        ("t DESC", "last", "t"),
        ("p DESC", "last", "p"),
    ],
)
def test_order_decides_which_row_is_kept(order: str, keep: str, time: str) -> None:
    node = found(ranked(order, "rn = 1"))
    assert node is not None
    assert (node.keep, node.input.fields[node.order].name) == (keep, time)


def test_row_number_is_the_constant_one() -> None:
    root = ranked("t", "rn = 1")
    assert isinstance(root, Project)
    assert isinstance(root.exprs[3], Literal)
    assert root.exprs[3].value == 1


def test_only_what_the_key_says_goes_below() -> None:
    root = ranked("t DESC", "rn = 1 AND k <> 'x' AND r > 5", select="k")
    node = found(root)
    assert node is not None
    assert isinstance(root, Project)
    above, below = root.input, node.input
    assert isinstance(above, Filter)
    assert isinstance(below, Project)
    assert draw(flink_physical_tree(root)) == [
        "Calc(select=[k], where=[>(r, 5)])",
        "+- Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])",
        "   +- Exchange(distribution=[hash[k]])",
        "      +- Calc(select=[k, r, t], where=[<>(k, 'x')])",
        "         +- TableSourceScan(table=[[h, source: [KafkaTableSource(k, r, t, p)]]],"
        " fields=[k, r, t, p])",
    ]
    assert inputs_of(node) == (below,)


@pytest.mark.parametrize(
    ("order", "corrects"), [("t", True), ("t DESC", False), ("p", False), ("p DESC", False)]
)
def test_mini_batches_correct_first_rows_by_event_time(order: str, corrects: bool) -> None:
    on = declared_settings({"table.exec.mini-batch.enabled": "true"})
    early, late = (found(ranked(order, "rn = 1", settings=s)) for s in (on, NOTHING_SET))
    assert early is not None
    assert late is not None
    assert early.corrects is corrects
    assert not late.corrects
    if corrects:
        assert (facts(early).kinds, facts(late).kinds) == (INSERT | {"U"}, INSERT)

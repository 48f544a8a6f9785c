"""VALUES and SELECT without FROM: joins with them are planned without state."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.plan.rules.constant_rows import MOST_ROWS
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.unit.sql.texts import script

TABLES = script("CREATE TABLE t (id INT, k INT, s STRING) <append>;")
CODES = "(VALUES (1, 'a'), (2, 'b')) AS v (k, name)"


def kinds(text: str) -> list[str]:
    query = bind_query(TABLES + text.replace("<codes>", CODES)).query
    return [node.kind for node in stateful_nodes(plan_query(query).root)]


@pytest.mark.parametrize(
    ("query", "operators"),
    [
        ("SELECT t.id, v.name FROM t JOIN <codes> ON t.k = v.k", ["unnest"]),
        ("SELECT t.id, v.name FROM <codes> JOIN t ON t.k = v.k", ["unnest"]),
        ("SELECT t.id, v.name FROM t LEFT JOIN <codes> ON t.k = v.k", ["unnest"]),
        ("SELECT t.id, v.x FROM t, (SELECT 1 AS x) AS v WHERE t.k > v.x", []),
        ("SELECT id FROM t WHERE k IN (VALUES (1), (2))", []),
        ("SELECT id FROM t WHERE k NOT IN (SELECT 1 UNION ALL SELECT 2)", []),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1)", []),
        ("SELECT id FROM t WHERE NOT EXISTS (SELECT 1)", []),
        ("SELECT id, (SELECT 'x') FROM t", []),
    ],
)
def test_a_join_with_constants_keeps_no_state(query: str, operators: list[str]) -> None:
    assert kinds(query) == operators


def test_a_join_with_many_constants_keeps_them() -> None:
    values = ", ".join(f"({i})" for i in range(MOST_ROWS + 1))
    many = "SELECT id FROM t JOIN (VALUES <values>) AS v (k) ON t.k = v.k"
    assert kinds(many.replace("<values>", values))[0] == "regular-join"


def test_elsewhere_they_are_an_input() -> None:
    assert kinds("SELECT v.name, t.id FROM <codes> LEFT JOIN t ON t.k = v.k") == [
        "regular-join",
        "unnest",
        "aggregate",
    ]


@pytest.mark.parametrize("query", ["VALUES (1, 2, 'x')", "SELECT 1, 2, 'x' FROM (SELECT 1) AS v"])
def test_a_query_of_constants_alone_is_refused(query: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        plan(bind(f"{TABLES}INSERT INTO t {query};"))
    assert caught.value.codes == ("CONSTANT_QUERY",)

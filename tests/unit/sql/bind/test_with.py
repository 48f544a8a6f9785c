"""WITH: its queries are views of the query behind it alone."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.unit.sql.shapes import shape
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE A (a INT, s STRING) <append>;", "CREATE TABLE B (b INT, t STRING) <append>;"
)
A1 = "Project([$0], Scan(A))"


def plan(query: str) -> str:
    return shape(bind_query(script(TABLES, query)).query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WITH w AS (SELECT a FROM A) SELECT a FROM w", f"Project([$0], {A1})"),
        ("WITH w (x) AS (SELECT a FROM A) SELECT x FROM w", f"Project([$0], Project([$0], {A1}))"),
        (
            "WITH v AS (SELECT a FROM A), w AS (SELECT a FROM v) SELECT v.a FROM v, w",
            f"Project([$0], Join(inner, TRUE, {A1}, Project([$0], {A1})))",
        ),
        # its name hides the table's from the next query on
        ("WITH A AS (SELECT a FROM A) SELECT * FROM A", f"Project([$0], {A1})"),
        (
            "SELECT a FROM (WITH w AS (SELECT a FROM A) SELECT a FROM w) AS x",
            f"Project([$0], Project([$0], {A1}))",
        ),
        (
            "SELECT a FROM A WHERE a IN (WITH w AS (SELECT b FROM B) SELECT b FROM w)",
            "Project([$0], Join(semi, =($0, $2), Scan(A), Project([$0], Scan(B))))",
        ),
        (
            "WITH w AS (SELECT a FROM A UNION ALL SELECT b FROM B) SELECT a FROM w",
            f"Project([$0], Union({A1}, Project([$0], Scan(B))))",
        ),
        (
            "WITH w AS (SELECT a FROM A) SELECT a FROM w UNION ALL SELECT a FROM w",
            f"Union(Project([$0], {A1}), Project([$0], {A1}))",
        ),
    ],
)
def test_plan(query: str, expected: str) -> None:
    assert plan(query) == expected


def test_in_a_view_and_below_insert() -> None:
    text = script(
        TABLES,
        "CREATE VIEW V AS WITH w AS (SELECT a FROM A) SELECT a FROM w;",
        "INSERT INTO B (b) WITH w AS (SELECT a FROM V) SELECT a FROM w;",
    )
    (sink,) = bind(text).inserts
    assert "Scan(A)" in shape(sink)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("WITH w AS (SELECT a FROM A) SELECT x FROM w", "no column x"),
        ("WITH w AS (SELECT x FROM A) SELECT a FROM w", "no column x"),
        (
            "WITH w AS (SELECT a FROM v), v AS (SELECT a FROM A) SELECT a FROM w",
            "no table or view v",
        ),
        (
            "SELECT a FROM (WITH w AS (SELECT a FROM A) SELECT a FROM w) AS x, w",
            "no table or view w",
        ),
        (
            "SELECT a FROM A WHERE a IN (WITH w AS (SELECT a FROM A WHERE a = s) SELECT a FROM w)",
            "INT",
        ),
        ("WITH w (x, y) AS (SELECT a FROM A) SELECT x FROM w", "2 names for 1 columns"),
        ("WITH w AS SELECT a FROM A SELECT a FROM w", "SQL_SYNTAX"),
        ("WITH w AS (INSERT INTO A SELECT b FROM B) SELECT 1 FROM w", "SQL_SYNTAX"),
    ],
)
def test_problem(query: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, query))
    assert says in caught.value.render()
    assert len(caught.value.errors) == 1

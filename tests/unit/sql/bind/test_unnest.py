"""UNNEST: the columns of the elements, their names, and what it takes."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.rules.order import optimize
from spark_jobs.sql.bind.binder import bind_query
from tests.unit.sql.shapes import shape
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE B (ts TIMESTAMP(3), tags ARRAY<STRING>, WATERMARK FOR ts AS ts) <append>;",
    "CREATE TABLE A (a INT, tags ARRAY<STRING>, items ARRAY<ROW<f STRING, g INT NOT NULL>>,"
    " ones ARRAY<ROW<f INT>>, m MAP<STRING, INT>) <append>;",
)


def bound(query: str) -> list[str]:
    """The columns of a query as `name TYPE`."""
    fields = bind_query(script(TABLES, query)).query.fields
    return [f"{field.name} {field.type.sql()}" for field in fields]


def problem(query: str) -> str:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, query))
    return caught.value.render()


# what a real Flink 2.3 calls the columns, and their types
@pytest.mark.parametrize(
    ("unnest", "columns"),
    [
        ("UNNEST(tags) AS u", ["u STRING"]),
        ("UNNEST(A.tags) AS u (x)", ["x STRING"]),
        ("LATERAL UNNEST(tags) AS u (x)", ["x STRING"]),
        ("UNNEST(tags) WITH ORDINALITY AS u", ["u STRING", "ORDINALITY INT NOT NULL"]),
        ("UNNEST(tags) WITH ORDINALITY AS u (x, n)", ["x STRING", "n INT NOT NULL"]),
        ("UNNEST(items) AS u", ["f STRING", "g INT NOT NULL"]),
        ("UNNEST(items) AS u (p, q)", ["p STRING", "q INT NOT NULL"]),
        ("UNNEST(ones) AS u", ["u INT"]),
        ("UNNEST(m) AS u", ["KEY STRING", "VALUE INT"]),
        ("UNNEST(m) WITH ORDINALITY AS u", ["KEY STRING", "VALUE INT", "ORDINALITY INT NOT NULL"]),
        ("UNNEST(SPLIT(tags[1], ',')) AS u", ["u STRING"]),
    ],
)
def test_elements_become_columns(unnest: str, columns: list[str]) -> None:
    assert bound("SELECT u.* FROM A CROSS JOIN " + unnest) == columns  # noqa: S608


def test_without_an_alias_elements_have_names_of_their_own() -> None:
    assert bound("SELECT * FROM A, UNNEST(tags)")[-1] == "EXPR$0 STRING"
    assert bound("SELECT `KEY`, `VALUE` FROM A, UNNEST(m)") == ["KEY STRING", "VALUE INT"]
    assert bound("SELECT f FROM A, UNNEST(ones)") == ["f INT"]


def test_times_of_the_row_go_on() -> None:
    query = bind_query(script(TABLES, "SELECT ts, tag FROM B, UNNEST(tags) AS tag")).query
    assert facts(optimize(query)).times == ("rowtime", None)


def test_elements_of_a_left_join_may_be_null() -> None:
    query = "SELECT u.* FROM A LEFT JOIN UNNEST(items) WITH ORDINALITY AS u (x, y, n) ON TRUE"
    assert bound(query) == ["x STRING", "y INT", "n INT"]


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        ("A, UNNEST(tags) AS x", "Unnest(inner, $1, TRUE, Scan(A))"),
        ("A LEFT JOIN UNNEST(tags) AS x ON TRUE", "Unnest(left, $1, TRUE, Scan(A))"),
        ("A LEFT JOIN UNNEST(tags) AS x ON x > 'b'", "Unnest(left, $1, >($5, 'b'), Scan(A))"),
        (
            "A JOIN UNNEST(tags) AS x ON x > 'b'",
            "Filter(>($5, 'b'), Unnest(inner, $1, TRUE, Scan(A)))",
        ),
        (
            "A, UNNEST(tags) AS x, UNNEST(m) AS e",
            "Unnest(inner, $4, TRUE, Unnest(inner, $1, TRUE, Scan(A)))",
        ),
    ],
)
def test_joins_with_elements(query: str, plan: str) -> None:
    found = shape(bind_query(script(TABLES, "SELECT a FROM " + query)).query)  # noqa: S608
    assert found == f"Project([$0], {plan})"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("A, UNNEST(a) AS x", "INCOMPATIBLE_TYPES UNNEST takes an ARRAY or a MAP, not INT"),
        ("A, UNNEST(tags) AS u (x, y)", "COLUMN_COUNT 2 names for 1 columns"),
        ("A, UNNEST(items) AS u (x)", "COLUMN_COUNT 1 names for 2 columns"),
        ("A, UNNEST(tags, items) AS u (x, y, z)", "UNNEST of several collections"),
        ("A RIGHT JOIN UNNEST(tags) AS x ON TRUE", "RIGHT JOIN UNNEST is not supported"),
        ("A FULL JOIN UNNEST(tags) AS x ON TRUE", "FULL JOIN UNNEST is not supported"),
        ("A LEFT JOIN UNNEST(tags) AS x", "JOIN_WITHOUT_ON"),
        ("A NATURAL JOIN UNNEST(tags) AS x", "UNNEST with USING or NATURAL is not supported"),
        ("UNNEST(ARRAY[1]) AS x", "UNNEST at the beginning of FROM is not supported"),
        ("A, UNNEST(nothing) AS x", "UNKNOWN_COLUMN no column nothing"),
    ],
)
def test_what_it_does_not_take(query: str, words: str) -> None:
    assert words in problem("SELECT 1 FROM " + query)  # noqa: S608

"""GROUPING SETS, ROLLUP and CUBE: one aggregate for each set, united; GROUPING(...) tells them."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Project
from tests.unit.sql.shapes import shape
from tests.unit.sql.texts import script

TABLE = "CREATE TABLE A (a INT NOT NULL, b STRING, c INT, x INT NOT NULL) <append>;"


def grouped(items: str, by: str) -> str:
    """The rows below the select list."""
    query = bind_query(script(TABLE, "SELECT", items, "FROM A GROUP BY", by)).query
    assert isinstance(query, Project)
    return shape(query.input)


def sets(by: str) -> list[str]:
    """The keys of each aggregate, as their places in the table."""
    found = grouped("COUNT(*)", by).split("Aggregate([")[1:]
    return [part.split("]")[0] for part in found]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("GROUPING SETS ((a, b), (a), ())", ["$0, $1", "$0", ""]),
        ("GROUPING SETS (a, (b))", ["$0", "$1"]),
        ("ROLLUP (a, b)", ["$0, $1", "$0", ""]),
        ("ROLLUP ((a, b), c)", ["$0, $1, $2", "$0, $1", ""]),
        ("CUBE (a, b)", ["$0, $1", "$0", "$1", ""]),
        ("a, ROLLUP (b)", ["$0, $1", "$0"]),
        ("GROUPING SETS (a, ROLLUP (b, c))", ["$0", "$1, $2", "$1", ""]),
        ("GROUPING SETS (a, b), GROUPING SETS (b, c)", ["$0, $1", "$0, $2", "$1", "$1, $2"]),
        ("GROUPING SETS ((b, a), (a, b))", ["$1, $0", "$1, $0"]),
        ("(a, b), c", ["$0, $1, $2"]),
    ],
)
def test_sets(by: str, expected: list[str]) -> None:
    assert sorted(sets(by)) == sorted(expected)


def test_keys_that_a_set_lacks_are_null() -> None:
    assert grouped("a, b, COUNT(*)", "GROUPING SETS ((a, b), (b))") == (
        "Union(Project([$0, $1, $2], Aggregate([$0, $1], [COUNT(*)], Scan(A))),"
        " Project([None, $0, $1], Aggregate([$1], [COUNT(*)], Scan(A))))"
    )


def test_types_say_what_may_be_null() -> None:
    items = "a, b, SUM(x), MIN(x), GROUPING(a)"
    by_two = bind_query(script(TABLE, "SELECT", items, "FROM A GROUP BY ROLLUP (a, b)")).query
    assert [f.type.nullable for f in by_two.fields] == [True, True, True, True, False]
    plain = bind_query(script(TABLE, "SELECT", items, "FROM A GROUP BY a, b")).query
    assert [f.type.nullable for f in plain.fields] == [False, True, False, False, False]


def test_grouping_tells_the_sets() -> None:
    """The first argument is the highest bit."""
    assert grouped("GROUPING(a), GROUPING_ID(b, a)", "CUBE (a, b)") == (
        "Union(Project([$0, $1, 0, 0], Aggregate([$0, $1], [], Scan(A))),"
        " Project([$0, None, 0, 2], Aggregate([$0], [], Scan(A))),"
        " Project([None, $0, 1, 1], Aggregate([$1], [], Scan(A))),"
        " Project([None, None, 1, 3], Aggregate([], [], Scan(A))))"
    )


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT c FROM A GROUP BY ROLLUP (a)", "c is neither in GROUP BY"),
        ("SELECT GROUPING(c) FROM A GROUP BY ROLLUP (a)", "GROUPING takes what GROUP BY names"),
        ("SELECT GROUPING() FROM A GROUP BY ROLLUP (a)", "GROUPING needs an argument"),
        ("SELECT a FROM A GROUP BY ROLLUP (1)", "a is neither in GROUP BY"),
        ("SELECT a FROM A GROUP BY CUBE (a, b, c, x, a + 1, a + 2, a + 3)", "of so many sets"),
        (
            "SELECT a FROM A WHERE a IN (SELECT x FROM A AS r WHERE r.b = A.b GROUP BY ROLLUP (x))",
            "several sets in a correlated subquery",
        ),
    ],
)
def test_problem(query: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLE, query))
    assert says in caught.value.render()

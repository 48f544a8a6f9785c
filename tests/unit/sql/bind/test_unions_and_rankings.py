"""UNION, INTERSECT and EXCEPT, and ROW_NUMBER() OVER in a select list."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind, bind_query
from spark_jobs.sql.logical import RowNumber, Union, inputs_of
from tests.unit.sql.shapes import shape
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE A (a INT, s STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts)"
    " <append>;",
    "CREATE TABLE B (b BIGINT NOT NULL, t STRING, us TIMESTAMP(3), WATERMARK FOR us AS us)"
    " <append>;",
)


def plan(query: str) -> str:
    return shape(bind_query(script(TABLES, query)).query)


def problem(query: str) -> str:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, query))
    return caught.value.render()


A_S, B_T = "Project([$1], Scan(A))", "Project([$1], Scan(B))"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT s FROM A UNION ALL SELECT t FROM B", f"Union({A_S}, {B_T})"),
        ("(SELECT s FROM A) UNION ALL (SELECT t FROM B)", f"Union({A_S}, {B_T})"),
        (
            "SELECT s FROM A UNION ALL SELECT t FROM B UNION ALL SELECT s FROM A",
            f"Union({A_S}, {B_T}, {A_S})",
        ),
        (
            "SELECT s FROM A UNION ALL (SELECT t FROM B UNION ALL SELECT s FROM A)",
            f"Union({A_S}, {B_T}, {A_S})",
        ),
        (
            "SELECT DISTINCT s FROM (SELECT s FROM A UNION ALL SELECT t FROM B) AS x",
            f"Aggregate([$0], [], Project([$0], Union({A_S}, {B_T})))",
        ),
        (
            "SELECT a FROM A UNION ALL SELECT b FROM B",
            "Union(Project([CAST($0 AS BIGINT)], Project([$0], Scan(A))), Project([$0], Scan(B)))",
        ),
        (
            "SELECT s FROM A UNION SELECT t FROM B",
            f"Aggregate([$0], [], Union({A_S}, {B_T}))",
        ),
        (
            "SELECT s FROM A UNION ALL SELECT t FROM B UNION DISTINCT SELECT s FROM A",
            f"Aggregate([$0], [], Union({A_S}, {B_T}, {A_S}))",
        ),
        (
            "SELECT s FROM A UNION SELECT t FROM B UNION ALL SELECT s FROM A",
            f"Union(Aggregate([$0], [], Union({A_S}, {B_T})), {A_S})",
        ),
        (
            "SELECT s FROM A INTERSECT SELECT t FROM B",
            f"Aggregate([$0], [], Join(semi, IS NOT DISTINCT FROM($0, $1), {A_S}, {B_T}))",
        ),
        (
            "SELECT s FROM A EXCEPT SELECT t FROM B INTERSECT SELECT s FROM A",
            f"Aggregate([$0], [], Join(anti, IS NOT DISTINCT FROM($0, $1), {A_S},"
            f" Aggregate([$0], [], Join(semi, IS NOT DISTINCT FROM($0, $1), {B_T}, {A_S}))))",
        ),
        (
            "SELECT a FROM A WHERE s IN (SELECT s FROM A UNION ALL SELECT t FROM B)",
            f"Project([$0], Join(semi, =($1, $4), Scan(A), Union({A_S}, {B_T})))",
        ),
    ],
)
def test_union_plan(query: str, expected: str) -> None:
    assert plan(query) == expected


def test_union_fields() -> None:
    first = "SELECT a, ts, ts AS x FROM A"
    second = "SELECT b, us, CAST(us AS TIMESTAMP(3)) + INTERVAL '1' SECOND FROM B"
    query = bind_query(script(TABLES, first, "UNION ALL", second)).query
    assert isinstance(query, Union)
    assert [f.name for f in query.fields] == ["a", "ts", "x"]
    assert [f.type.sql() for f in query.fields] == ["BIGINT", "TIMESTAMP(3)", "TIMESTAMP(3)"]
    assert [f.time for f in query.fields] == [None, "rowtime", None]


def test_union_in_a_view_and_over_insert() -> None:
    text = script(
        TABLES,
        "CREATE TABLE S (x BIGINT) <append>;",
        "CREATE VIEW V (v) AS SELECT s FROM A UNION ALL SELECT t FROM B;",
        "INSERT INTO S SELECT a FROM A UNION ALL SELECT a + 1 FROM A JOIN V ON s = v;",
    )
    (sink,) = bind(text).inserts
    assert [f.type.sql() for f in sink.fields] == ["BIGINT"]
    (union,) = inputs_of(sink.input)
    assert isinstance(union, Union)


@pytest.mark.parametrize(
    ("operation", "times"),
    [("INTERSECT", "CASE(<($1, $2), $1, $2)"), ("EXCEPT", "-($1, $2)")],
)
def test_all_repeats_a_row_as_often_as_its_counts_say(operation: str, times: str) -> None:
    sides = f"Union(Project([$0, True], {A_S}), Project([$0, False], {B_T}))"
    counts = "COUNT(*) WHERE $1, COUNT(*) WHERE NOT($1)"
    copies = f"Unnest(inner, REPEAT_ROW({times}), TRUE, Aggregate([$0], [{counts}], {sides}))"
    query = f"SELECT s FROM A {operation} ALL SELECT t FROM B"  # noqa: S608
    assert plan(query) == f"Project([$0], {copies})"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT s, a FROM A INTERSECT ALL SELECT t FROM B", "of INTERSECT ALL has 2 columns"),
        ("SELECT MAP[1, s] FROM A EXCEPT ALL SELECT MAP[1, t] FROM B", "cannot be compared"),
        ("SELECT s, a FROM A INTERSECT SELECT t FROM B", "of INTERSECT has 2 columns"),
        ("SELECT s FROM A EXCEPT SELECT b FROM B", "column s of EXCEPT is STRING"),
        ("SELECT MAP[1, s] FROM A EXCEPT SELECT MAP[1, t] FROM B", "cannot be compared"),
        ("SELECT s FROM A UNION ALL SELECT t FROM B ORDER BY s", "ORDER BY is not supported"),
        ("SELECT s, a FROM A UNION ALL SELECT t FROM B", "has 2 columns, this one 1"),
        ("SELECT s FROM A UNION ALL SELECT b FROM B", "column s of UNION ALL is STRING"),
        ("SELECT x FROM A UNION ALL SELECT y FROM B", "no column y"),
    ],
)
def test_union_problem(query: str, says: str) -> None:
    assert says in problem(query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY ts DESC) AS rn FROM A",
            "Project([$0, $1, $2, $3, $4], RowNumber([1], [2 DESC], Scan(A)))",
        ),
        (
            "SELECT ROW_NUMBER() OVER (PARTITION BY s, a, s ORDER BY p ASC, a), a FROM A",
            "Project([$4, $0], RowNumber([1, 0], [3, 0], Scan(A)))",
        ),
        (
            "SELECT ROW_NUMBER() OVER (ORDER BY ts) FROM A WHERE a > 1",
            "Project([$4], RowNumber([], [2], Filter(>($0, 1), Scan(A))))",
        ),
        # what is no column is projected first, once
        (
            "SELECT a, ROW_NUMBER() OVER (PARTITION BY UPPER(s) ORDER BY ts) AS r,"
            " ROW_NUMBER() OVER (PARTITION BY a + 1, UPPER(s) ORDER BY ts) + 1 FROM A",
            "Project([$0, $6, +($7, 1)], RowNumber([5, 4], [2], RowNumber([4], [2],"
            " Project([$0, $1, $2, $3, UPPER($1), +($0, 1)], Scan(A)))))",
        ),
        (
            "SELECT a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY ts) AS rn FROM A)"
            " AS x WHERE rn = 1",
            "Project([$0], Filter(=($4, 1), Project([$0, $1, $2, $3, $4],"
            " RowNumber([1], [2], Scan(A)))))",
        ),
    ],
)
def test_row_number_plan(query: str, expected: str) -> None:
    assert plan(query) == expected


def test_row_number_fields() -> None:
    text = "SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY ts) AS rn FROM A"
    query = bind_query(script(TABLES, text)).query
    (ranked,) = inputs_of(query)
    assert isinstance(ranked, RowNumber)
    for fields in (query.fields, ranked.fields):
        assert [f.name for f in fields] == ["a", "s", "ts", "p", "rn"]
        assert fields[4].type.sql() == "BIGINT NOT NULL"
        assert [f.time for f in fields] == [None, None, "rowtime", "proctime", None]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT SUM(a) OVER (PARTITION BY s ORDER BY ts) FROM A", "SUM OVER is not supported"),
        ("SELECT RANK() OVER (PARTITION BY s ORDER BY ts) FROM A", "RANK OVER is not supported"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY s) FROM A", "ROW_NUMBER() needs ORDER BY"),
        (
            "SELECT ROW_NUMBER() OVER (ORDER BY a ROWS UNBOUNDED PRECEDING) FROM A",
            "OVER with a frame",
        ),
        ("SELECT ROW_NUMBER() FROM A", "ROW_NUMBER"),
        ("SELECT a FROM A WHERE ROW_NUMBER() OVER (ORDER BY ts) = 1", "OVER is not supported"),
        (
            "SELECT s, COUNT(*), ROW_NUMBER() OVER (ORDER BY s) FROM A GROUP BY s",
            "OVER beside aggregates",
        ),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY x ORDER BY ts) FROM A", "no column x"),
    ],
)
def test_row_number_problem(query: str, says: str) -> None:
    assert says in problem(query)

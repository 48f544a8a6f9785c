"""GROUP BY, HAVING, DISTINCT and aggregate functions, with Flink's result types."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Aggregate, Project
from tests.unit.sql.shapes import shape
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE T (a INT, b STRING, n INT NOT NULL, p DECIMAL(10, 2), f FLOAT, r ROW<x INT>,"
    " ts TIMESTAMP(3), WATERMARK FOR ts AS ts) <append>;"
)


def plan(query: str) -> str:
    return shape(bind_query(script(TABLES, query)).query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT COUNT(*) FROM T", "Project([$0], Aggregate([], [COUNT(*)], Scan(T)))"),
        (
            "SELECT b, SUM(a) + 1 FROM T GROUP BY b",
            "Project([$0, +($1, 1)], Aggregate([$1], [SUM($0)], Scan(T)))",
        ),
        (
            "SELECT SUM(a), b, COUNT(DISTINCT a), SUM(a) * 2 FROM T WHERE n > 1 GROUP BY b, n",
            "Project([$2, $0, $3, *($2, 2)],"
            " Aggregate([$1, $2], [SUM($0), COUNT(DISTINCT $0)], Filter(>($2, 1), Scan(T))))",
        ),
        (
            "SELECT COUNT(a) FILTER (WHERE n > 1), MIN(DISTINCT b) FROM T",
            "Project([$0, $1], Aggregate([], [COUNT($0) WHERE >($2, 1), MIN($1)], Scan(T)))",
        ),
        # an expression is a key as well, wherever it stands again
        (
            "SELECT UPPER(b), (a + 1) * 2, MAX(n) FROM T GROUP BY UPPER(b), a + 1",
            "Project([$0, *($1, 2), $2], Aggregate([UPPER($1), +($0, 1)], [MAX($2)], Scan(T)))",
        ),
        ("SELECT r.x FROM T GROUP BY r", "Project([$0.x], Aggregate([$5], [], Scan(T)))"),
        ("SELECT r.x FROM T GROUP BY r.x", "Project([$0], Aggregate([$5.x], [], Scan(T)))"),
        ("SELECT COUNT(*) FROM T GROUP BY ()", "Project([$0], Aggregate([], [COUNT(*)], Scan(T)))"),
        (
            "SELECT b FROM T GROUP BY b HAVING COUNT(*) > 1 AND b <> 'x'",
            "Project([$0], Filter(AND(>($1, 1), <>($0, 'x')),"
            " Aggregate([$1], [COUNT(*)], Scan(T))))",
        ),
        # other names of the same function, which are one call
        (
            "SELECT VARIANCE(a), VAR_SAMP(a), STDDEV(a) FROM T",
            "Project([$0, $0, $1], Aggregate([], [VAR_SAMP($0), STDDEV_SAMP($0)], Scan(T)))",
        ),
        (
            "SELECT LISTAGG(b), LISTAGG(DISTINCT b, '; ') FILTER (WHERE n > 1) FROM T",
            "Project([$0, $1], Aggregate([], [LISTAGG($1, ','),"
            " LISTAGG(DISTINCT $1, '; ') WHERE >($2, 1)], Scan(T)))",
        ),
        # no NULL comes of a column that is NOT NULL
        (
            "SELECT ARRAY_AGG(b), ARRAY_AGG(b) IGNORE NULLS, ARRAY_AGG(DISTINCT b RESPECT NULLS),"
            " ARRAY_AGG(n), ARRAY_AGG(b IGNORE NULLS) FROM T",
            "Project([$0, $1, $2, $3, $1], Aggregate([], [ARRAY_AGG($1) RESPECT NULLS,"
            " ARRAY_AGG($1), ARRAY_AGG(DISTINCT $1) RESPECT NULLS, ARRAY_AGG($2)], Scan(T)))",
        ),
        (
            "SELECT 1 FROM T HAVING COUNT(*) > 1",
            "Project([1], Filter(>($0, 1), Aggregate([], [COUNT(*)], Scan(T))))",
        ),
        ("SELECT DISTINCT b, a FROM T", "Aggregate([$0, $1], [], Project([$1, $0], Scan(T)))"),
        (
            "SELECT CASE WHEN b = 'x' THEN SUM(a) ELSE 0 END FROM T GROUP BY b",
            "Project([CASE(=($0, 'x'), $1, 0)], Aggregate([$1], [SUM($0)], Scan(T)))",
        ),
        (
            "SELECT SUM(s) FROM (SELECT SUM(a) AS s FROM T GROUP BY b) AS x",
            "Project([$0], Aggregate([], [SUM($0)],"
            " Project([$1], Aggregate([$1], [SUM($0)], Scan(T)))))",
        ),
    ],
)
def test_plan(query: str, expected: str) -> None:
    assert plan(query) == expected


@pytest.mark.parametrize(
    ("item", "global_type", "grouped_type"),
    [
        ("COUNT(*)", "BIGINT NOT NULL", "BIGINT NOT NULL"),
        ("VAR_POP(n)", "INT", "INT"),
        ("STDDEV(f)", "FLOAT", "FLOAT"),
        ("VARIANCE(p)", "DECIMAL(38, 6)", "DECIMAL(38, 6)"),
        ("FIRST_VALUE(n)", "INT", "INT"),
        ("LAST_VALUE(r)", "ROW<x INT>", "ROW<x INT>"),
        ("LISTAGG(b)", "STRING", "STRING"),
        ("LISTAGG(UPPER('x'), '; ')", "STRING", "STRING NOT NULL"),
        ("ARRAY_AGG(n)", "ARRAY<INT NOT NULL>", "ARRAY<INT NOT NULL> NOT NULL"),
        ("ARRAY_AGG(b) IGNORE NULLS", "ARRAY<STRING>", "ARRAY<STRING>"),
        ("COUNT(a)", "BIGINT NOT NULL", "BIGINT NOT NULL"),
        ("SUM(a)", "INT", "INT"),
        ("SUM(n)", "INT", "INT NOT NULL"),
        ("SUM(n) FILTER (WHERE a > 1)", "INT", "INT"),
        ("SUM(p)", "DECIMAL(38, 2)", "DECIMAL(38, 2)"),
        ("AVG(n)", "INT", "INT NOT NULL"),
        ("AVG(p)", "DECIMAL(38, 6)", "DECIMAL(38, 6)"),
        ("AVG(f)", "FLOAT", "FLOAT"),
        ("MAX(b)", "STRING", "STRING"),
        ("MIN(ts)", "TIMESTAMP(3)", "TIMESTAMP(3)"),
    ],
)
def test_types(item: str, global_type: str, grouped_type: str) -> None:
    (field,) = bind_query(script(TABLES, "SELECT", item, "FROM T")).query.fields
    assert field.type.sql() == global_type
    (field,) = bind_query(script(TABLES, "SELECT", item, "FROM T GROUP BY b")).query.fields
    assert field.type.sql() == grouped_type


def test_time_attributes_stay_in_keys_and_end_in_calls() -> None:
    query = bind_query(script(TABLES, "SELECT ts, MAX(ts) FROM T GROUP BY ts")).query
    assert [f.time for f in query.fields] == ["rowtime", None]


def test_names() -> None:
    query = bind_query(
        script(TABLES, "SELECT b, COUNT(*), SUM(a) AS s, a + 1 FROM T GROUP BY b, a + 1")
    ).query
    assert [f.name for f in query.fields] == ["b", "EXPR$1", "s", "EXPR$3"]
    assert isinstance(query, Project)
    assert isinstance(query.input, Aggregate)
    assert [f.name for f in query.input.fields] == ["b", "EXPR$1", "EXPR$2", "EXPR$3"]


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ("SELECT a, COUNT(*) FROM T", "NOT_GROUPED", "a is neither in GROUP BY"),
        ("SELECT a + 1 FROM T GROUP BY b", "NOT_GROUPED", "add a to GROUP BY"),
        ("SELECT * FROM T GROUP BY a", "NOT_GROUPED", "b is neither"),
        ("SELECT a FROM T GROUP BY 1", "NOT_GROUPED", "a is neither in GROUP BY"),
        ("SELECT a AS x FROM T GROUP BY x", "UNKNOWN_COLUMN", "no column x"),
        ("SELECT b FROM T GROUP BY b HAVING a > 1", "NOT_GROUPED", "a is neither"),
        ("SELECT SUM(COUNT(*)) FROM T", "MISPLACED_AGGREGATE", "not inside another"),
        ("SELECT a FROM T WHERE COUNT(*) > 1", "MISPLACED_AGGREGATE", "COUNT"),
        ("SELECT a FROM T GROUP BY SUM(a)", "MISPLACED_AGGREGATE", "SUM"),
        ("SELECT SUM(b) FROM T", "WRONG_ARGUMENT", "SUM does not take STRING"),
        ("SELECT MAX(r) FROM T", "WRONG_ARGUMENT", "MAX does not take ROW"),
        ("SELECT SUM(*) FROM T", "WRONG_ARGUMENT", "SUM does not take *"),
        ("SELECT COUNT(a, b) FROM T", "WRONG_ARGUMENT", "COUNT takes one argument, not 2"),
        ("SELECT COUNT() FROM T", "WRONG_ARGUMENT", "COUNT takes one argument, not 0"),
        ("SELECT LISTAGG(a) FROM T", "WRONG_ARGUMENT", "LISTAGG does not take INT"),
        ("SELECT LISTAGG(b, b) FROM T", "WRONG_ARGUMENT", "LISTAGG must be a constant text"),
        ("SELECT LISTAGG(b, ',', ',') FROM T", "WRONG_ARGUMENT", "one or two arguments, not 3"),
        ("SELECT VAR_POP(b) FROM T", "WRONG_ARGUMENT", "VAR_POP does not take STRING"),
        (
            "SELECT LISTAGG(b) WITHIN GROUP (ORDER BY a) FROM T",
            "UNSUPPORTED_EXPRESSION",
            "WITHIN GROUP",
        ),
        (
            "SELECT ARRAY_AGG(b ORDER BY a) FROM T",
            "UNSUPPORTED_EXPRESSION",
            "ORDER BY in ARRAY_AGG",
        ),
        (
            "SELECT LAST_VALUE(b) IGNORE NULLS FROM T",
            "UNSUPPORTED_EXPRESSION",
            "NULL is a value to ARRAY_AGG alone",
        ),
        ("SELECT UPPER(b) IGNORE NULLS FROM T", "UNSUPPORTED_EXPRESSION", "IGNORE NULLS"),
        ("SELECT COLLECT(b) FROM T", "UNSUPPORTED_EXPRESSION", "COLLECT"),
        (
            "SELECT JSON_ARRAYAGG(DISTINCT b NULL ON NULL) FROM T",
            "UNSUPPORTED_SYNTAX",
            "JSON_STRING(ARRAY_AGG(x) IGNORE NULLS)",
        ),
        (
            "SELECT a, JSON_OBJECTAGG(KEY b VALUE n) FILTER (WHERE a > 1) FROM T GROUP BY a",
            "UNSUPPORTED_SYNTAX",
            "the aggregate function JSON_OBJECTAGG",
        ),
        ("SELECT COUNT(*) FILTER (WHERE a) FROM T", "NOT_A_CONDITION", "FILTER needs a BOOLEAN"),
        ("SELECT b FROM T GROUP BY ALL", "UNSUPPORTED_EXPRESSION", "GROUP BY with ALL"),
        (
            "SELECT b FROM T GROUP BY TUMBLE(ts, INTERVAL '1' DAY)",
            "UNSUPPORTED_EXPRESSION",
            "TUMBLE",
        ),
        ("SELECT UPPER(b) FILTER (WHERE a > 1) FROM T", "UNSUPPORTED_EXPRESSION", "FILTER"),
    ],
)
def test_problem(query: str, code: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, query))
    assert code in caught.value.codes, caught.value.render()
    assert says in caught.value.render()

"""Wrong and unsupported job files: code, place and hint of every problem."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.unit.sql.texts import TABLES, problems, script


def query_problems(text: str) -> list[PositionedError]:
    with pytest.raises(SqlErrors) as caught:
        bind_query(TABLES + text, "job.sql")
    return list(caught.value.errors)


QUERIES = [
    ("SELECT a11 FROM A", "UNKNOWN_COLUMN", "a11", "did you mean 'a1'?"),
    ("SELECT X.a1 FROM A", "UNKNOWN_TABLE", "X.a1", "FROM has A"),
    ("SELECT a1 FROM AA", "UNKNOWN_TABLE", "AA", "did you mean 'A'?"),
    ("SELECT a2 FROM A JOIN B ON a1 = b1", "AMBIGUOUS_COLUMN", "a2", "write A.a2"),
    ("SELECT A.r.y FROM A", "UNKNOWN_FIELD", "y", None),
    ("SELECT A.a1.y FROM A", "NOT_A_ROW", "y", None),
    ("SELECT a1 = a3 FROM A", "INCOMPATIBLE_TYPES", "a1 = a3", "CAST one side"),
    ("SELECT m = m FROM B", "INCOMPATIBLE_TYPES", "m = m", None),
    ("SELECT a1 + a3 FROM A", "INCOMPATIBLE_TYPES", "a1 + a3", None),
    ("SELECT ts - ts FROM A", "INCOMPATIBLE_TYPES", "ts - ts", "TIMESTAMPDIFF"),
    ("SELECT ts = 'x' FROM A", "BAD_LITERAL", "ts = 'x'", None),
    ("SELECT CAST(a2 AS TIMESTAMP(3)) FROM A", "INCOMPATIBLE_TYPES", "a2 AS", "TO_TIMESTAMP_LTZ"),
    ("SELECT a1 || a3 FROM A", "INCOMPATIBLE_TYPES", "a1 ||", "CAST it to STRING"),
    ("SELECT a1 FROM A WHERE a1", "NOT_A_CONDITION", "a1\n", None),
    ("SELECT a1 FROM A JOIN B ON b1", "NOT_A_CONDITION", "b1", None),
    ("SELECT a1 FROM A LEFT JOIN B", "JOIN_WITHOUT_ON", "B", None),
    ("SELECT UPPR(a3) FROM A", "UNKNOWN_FUNCTION", "UPPR", "did you mean 'UPPER'?"),
    ("SELECT UPPER(a1) FROM A", "WRONG_ARGUMENT", "a1)", None),
    ("SELECT UPPER(a3, a3) FROM A", "WRONG_ARGUMENT", "UPPER", None),
    ("SELECT EXTRACT(WEEK FROM a3) FROM A", "WRONG_ARGUMENT", "a3", None),
    ("SELECT DATE '2020-13-01' FROM A", "BAD_LITERAL", "DATE", None),
    ("SELECT INTERVAL 'x' SECOND + ts FROM A", "BAD_LITERAL", "INTERVAL", None),
    ("SELECT CASE WHEN TRUE THEN 1 ELSE 'a' END FROM A", "INCOMPATIBLE_TYPES", "CASE", None),
    # refused by name
    ("SELECT COLLECT(a3) FROM A", "UNSUPPORTED_EXPRESSION", "COLLECT", "use one of COUNT, SUM"),
    ("SELECT a1 FROM A ORDER BY a1", "UNSUPPORTED_CLAUSE", "a1\n", "ORDER BY"),
    ("SELECT a1 FROM A LIMIT 0", "UNSUPPORTED_CLAUSE", "0", "at least one row"),
    ("SELECT a1 FROM A LIMIT 1 + 1", "UNSUPPORTED_CLAUSE", "1 + 1", "LIMIT 10"),
    ("SELECT a1 FROM A ORDER BY 2 LIMIT 5", "UNSUPPORTED_CLAUSE", "2", "name the column"),
    ("SELECT DISTINCT a1 FROM A ORDER BY a3 LIMIT 5", "UNSUPPORTED_CLAUSE", "a3", "of the result"),
    ("SELECT a1 FROM A OFFSET 5", "UNSUPPORTED_CLAUSE", "5", "add LIMIT"),
    ("SELECT x FROM UNNEST(ARRAY[1]) AS u (x)", "UNSUPPORTED_CLAUSE", "UNNEST", "behind a table"),
    (
        "SELECT a1 FROM A LEFT JOIN B ON EXISTS (SELECT 1 FROM B AS x WHERE x.b1 = A.a1)",
        "UNSUPPORTED_EXPRESSION",
        "EXISTS",
        "EXISTS",
    ),
    ("SELECT a1 FROM A LEFT SEMI JOIN B ON TRUE", "UNSUPPORTED_CLAUSE", "B ON", "LEFT SEMI JOIN"),
    ("SELECT SUM(a1) OVER (ORDER BY ts) FROM A", "UNSUPPORTED_EXPRESSION", "SUM", "OVER"),
    ("SELECT CURRENT_TIMESTAMP FROM A", "UNSUPPORTED_EXPRESSION", "CURRENT_TIMESTAMP", "METADATA"),
    ("SELECT CURRENT_WATERMARK(ts) FROM A", "UNSUPPORTED_EXPRESSION", "CURRENT_WATERMARK", ""),
    ("SELECT a1 FROM TABLE(TUMBLE(TABLE A))", "UNSUPPORTED_SYNTAX", "TABLE(", "TUMBLE"),
    ("SELECT a1 FROM A, LATERAL TABLE(f(a1)) AS t", "UNSUPPORTED_CLAUSE", "LATERAL", "F"),
    ("SELECT /*+ BROADCAST(A) */ a1 FROM A", "UNSUPPORTED_SYNTAX", "BROADCAST", "hint"),
    ("SELECT a1 FROM A /*+ OPTIONS('a' = 'b') */", "UNSUPPORTED_SYNTAX", "/*+ OPT", "hint"),
    ("WITH RECURSIVE w AS (SELECT a1 FROM A) SELECT * FROM w", "UNSUPPORTED_CLAUSE", "w AS", ""),
    (
        "WITH w AS (SELECT a1 FROM A), w AS (SELECT a1 FROM A) SELECT * FROM w",
        "TABLE_TWICE",
        "w AS (SELECT a1 FROM A) S",
        None,
    ),
    ("SELECT *", "UNSUPPORTED_CLAUSE", "", "without FROM"),
    ("SELECT x FROM (VALUES (1, 2), (3)) AS t (x, y)", "COLUMN_COUNT", "3)", "2 values"),
    ("SELECT x FROM (VALUES (1), (TRUE)) AS t (x)", "INCOMPATIBLE_TYPES", "1)", "INT NOT NULL"),
    ("SELECT x FROM (VALUES (a1)) AS t (x)", "UNKNOWN_COLUMN", "a1)", None),
    ("SELECT a1 FROM A RIGHT JOIN LATERAL (SELECT 1) ON TRUE", "UNSUPPORTED_CLAUSE", "LAT", "LEFT"),
    (
        "SELECT a1 FROM A LEFT JOIN LATERAL (SELECT b1 FROM B) AS v ON v.b1 = a1",
        "UNSUPPORTED_CLAUSE",
        "LATERAL",
        "write ON TRUE",
    ),
    (
        "SELECT a1 FROM A, LATERAL (SELECT b1 FROM B WHERE B.b1 < A.a1 ORDER BY b1 LIMIT 1) AS v",
        "UNSUPPORTED_EXPRESSION",
        "",
        "only by =",
    ),
    ("SELECT v.x FROM A, LATERAL (SELECT b1 FROM B) AS v (x, y)", "COLUMN_COUNT", "x, y", None),
    ("SHOW TABLES", "UNSUPPORTED_SYNTAX", "SHOW", "SHOW"),
    ("SELECT CAST(a3 AS ROW<x CHAR(3)>) FROM A", "UNSUPPORTED_EXPRESSION", "a3 AS", "length out"),
    ("SELECT CAST(a3 AS BINARY(3)) FROM A", "UNSUPPORTED_EXPRESSION", "a3 AS", "use BYTES"),
    ("SELECT a1 FROM x.A", "UNSUPPORTED_CLAUSE", "x.A", "name alone"),
    # syntax
    ("SELEC a1 FROM A", "SQL_SYNTAX", "SELEC", "did you mean 'SELECT'?"),
    ("SELECT a1 + FROM A", "SQL_SYNTAX", "FROM A", None),
    ("SELECT CAST( AS INT) FROM A", "SQL_SYNTAX", "AS INT", None),
    ("SELECT a1 & 1 FROM A", "SQL_SYNTAX", "& 1", None),
    ('SELECT "a1" FROM A', "SQL_SYNTAX", '"a1', "backticks"),
    ("SELECT a1 FROM A WHERE a3 = 'x", "SQL_SYNTAX", "'x", "close the quote"),
    ("SELECT a1 FROM A /* open", "SQL_SYNTAX", "/* open", "close the comment"),
    ("SELECT a1 FROM A JOIN", "SQL_SYNTAX", "", None),
    ("SELECT (a1 FROM A", "SQL_SYNTAX", "FROM", None),
]


@pytest.mark.parametrize(("text", "code", "at", "hint"), QUERIES, ids=[q[0] for q in QUERIES])
def test_query_problem(text: str, code: str, at: str, hint: str | None) -> None:
    text += "\n"
    (problem,) = query_problems(text)
    assert problem.code == code, problem.render()
    if at:
        lines = (TABLES + text).splitlines(keepends=True)
        assert lines[problem.line - 1][problem.column - 1 :].startswith(at), problem.render()
    if hint:
        assert hint in problem.render()
    assert problem.render().startswith("job.sql:2:")


DEFINITIONS = [
    ("CREATE TABLE t (a INT)", "OPTION_MISSING", "t (", "'connector' = 'kafka'"),
    ("CREATE TABLE t (a INT, a INT) <append>", "COLUMN_TWICE", "a INT)", None),
    ("CREATE TABLE t (a INT, b AS c) <append>", "UNKNOWN_COLUMN", "c)", None),
    ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) <append>", "UNKNOWN_COLUMN", "b)", None),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a)) <append>", "SQL_SYNTAX", "PRIMARY", "NOT ENFORCED"),
    (
        "CREATE TABLE t (a INT, b AS a + 1, PRIMARY KEY (b) NOT ENFORCED) <append>",
        "KEY_NOT_PHYSICAL",
        "b) NOT",
        None,
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED) <append>",
        "KEY_TWICE",
        "PRIMARY KEY (a)",
        None,
    ),
    (
        "CREATE TABLE t (a INT, WATERMARK FOR a AS a) <append>",
        "ROWTIME_TYPE",
        "a AS",
        "TIMESTAMP(3)",
    ),
    (
        "CREATE TABLE t (a TIMESTAMP(6), WATERMARK FOR a AS a) <append>",
        "ROWTIME_TYPE",
        "a AS",
        None,
    ),
    (
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR b AS a) <append>",
        "UNKNOWN_COLUMN",
        "b AS",
        None,
    ),
    (
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS 1) <append>",
        "WATERMARK_TYPE",
        "1)",
        None,
    ),
    (
        "CREATE TABLE t (a INT METADATA FROM 'offst') <append>",
        "UNKNOWN_METADATA",
        "'offst'",
        "offset",
    ),
    ("CREATE TABLE t (a INT METADATA FROM 'offset') <append>", "METADATA_TYPE", "a INT", "BIGINT"),
    (
        "CREATE TABLE t (a INT METADATA FROM 'leader-epoch', b INT) <append>",
        "UNSUPPORTED_METADATA",
        "'leader",
        None,
    ),
    ("CREATE TABLE t (a TIMESTAMP(9)) <append>", "UNSUPPORTED_SYNTAX", "TIMESTAMP(9)", "precision"),
    ("CREATE TABLE t (a CHAR(0)) <append>", "SQL_SYNTAX", "CHAR(0)", "a length is 1 to"),
    ("CREATE TABLE t (a INT) <append> AS SELECT 1", "UNSUPPORTED_SYNTAX", "AS SELECT", None),
    (
        "CREATE TABLE t (a INT) PARTITIONED BY (a) <append>",
        "UNSUPPORTED_SYNTAX",
        "PARTITIONED",
        None,
    ),
    ("CREATE TABLE A (a INT) <append>", "TABLE_TWICE", "A (", None),
    ("CREATE FUNCTION f AS 'x'", "UNSUPPORTED_SYNTAX", "'x'", "LANGUAGE PYTHON"),
    (
        "SET 'rejoin.checkpont' = 'x'",
        "UNKNOWN_SETTING",
        "'rejoin",
        "did you mean 'rejoin.checkpoint'?",
    ),
    ("SET 'rejoin.key-groups' = '0'", "SETTING_VALUE", "'0'", None),
    ("SET 'rejoin.mode' = 'continuous'", "SETTING_VALUE", "'con", None),
    ("SET 'table.local-time-zone' = 'Mars'", "SETTING_VALUE", "'Mars'", None),
    ("SET table.local-time-zone=Mars", "SETTING_VALUE", "Mars", None),
    ("SET 'execution.checkpointing.dir' = '/c'", "UNSUPPORTED_SETTING", "'exec", None),
    ("SET 'execution.runtime-mode' = 'batch'", "UNSUPPORTED_SETTING", "'batch'", None),
    ("SET 'table.exec.state.ttl' = 'long'", "SETTING_VALUE", "'long'", "such as '10 s'"),
    (
        "SET 'spark.speculation' = 'true'",
        "SPARK_PROPERTY_REFUSED",
        "'spark.speculation'",
        None,
    ),
    ("SET 'spark.master' = 'local[4]'", "SPARK_PROPERTY_REFUSED", "'spark.master'", None),
    (
        "SET 'spark.sql.catalogImplementation' = 'hive'",
        "SPARK_PROPERTY_REFUSED",
        "'spark.sql.catalogImplementation'",
        "tables are those of the job's file",
    ),
    (
        "SET 'spark.hadoop.fs.s3a.secret.key' = 'abc'",
        "SPARK_PROPERTY_REFUSED",
        "'spark.hadoop",
        None,
    ),
    (
        "INSERT INTO C SELECT a1 FROM A",
        "COLUMN_COUNT",
        "a1 FROM",
        "sink: [c1 INT NOT NULL, c2 STRING]",
    ),
    ("INSERT INTO C SELECT a3, a3 FROM A", "INCOMPATIBLE_TYPES", "a3, a3", "CAST it"),
    ("INSERT INTO C (c2) SELECT a3 FROM A", "NOT_NULL", "C (", None),
    ("INSERT INTO C (c3, c1) SELECT a3, a1 FROM A", "UNKNOWN_COLUMN", "c3", None),
    ("INSERT INTO D SELECT a1 FROM A", "UNKNOWN_TABLE", "D ", None),
    ("INSERT OVERWRITE C SELECT a1, a3 FROM A", "UNSUPPORTED_SYNTAX", "INSERT", None),
    ("CREATE VIEW v (x) AS SELECT a1, a2 FROM A", "COLUMN_COUNT", "x)", None),
    ("SELECT a1 FROM A", "SELECT_WITHOUT_SINK", "SELECT", "INSERT INTO"),
]


@pytest.mark.parametrize(
    ("text", "code", "at", "hint"), DEFINITIONS, ids=[d[0][:70] for d in DEFINITIONS]
)
def test_statement_problem(text: str, code: str, at: str, hint: str | None) -> None:
    found = [p for p in problems(TABLES + text + ";") if p.code == code]
    assert len(found) == 1, [p.render() for p in problems(TABLES + text + ";")]
    (problem,) = found
    assert script(text)[problem.column - 1 :].startswith(at), problem.render()
    if hint is not None:
        assert hint in problem.render()


def test_all_problems_of_a_file_at_once() -> None:
    text = """CREATE TABLE t (a INT, a INT, b MULTISET<INT>) <append>;
CREATE TABLE u (a INT) WITH ('conector' = 'kafka');
SET 'x' = 'y';
INSERT INTO u SELECT x, COUNT(a) FROM t WHERE a;
INSERT INTO w SELECT a1, zz, yy FROM A GROUP BY a1;
"""
    found = problems(TABLES.strip() + "\n" + text)
    assert [(p.code, p.line) for p in found] == [
        ("UNSUPPORTED_SYNTAX", 2),
        ("OPTION_MISSING", 3),
        ("UNKNOWN_SETTING", 4),
        ("UNKNOWN_TABLE", 6),
        ("UNKNOWN_COLUMN", 6),
        ("UNKNOWN_COLUMN", 6),
    ]


TEXT = """
    SELECT FROM WHERE JOIN LEFT ON AS AND OR NOT IN IS NULL CASE WHEN THEN END CAST INSERT
    INTO CREATE TABLE VIEW SET WITH PRIMARY KEY ENFORCED WATERMARK FOR SYSTEM_TIME OF INTERVAL
    SECOND TIMESTAMP ROW ARRAY MAP STRING INT A B C a1 b1 m r ts ( ) [ ] , . ; = <> < > + - * / %
    || ' ` " 1 2.5 'x' x.y /*+ */ -- EXECUTE BEGIN UNION ALL EXISTS ANY GROUP BY HAVING DISTINCT
    COUNT(*) SUM(a1) FILTER ROW_NUMBER() OVER PARTITION ORDER LATERAL TABLE( SNAPSHOT( input =>
    TEMPORAL FUNCTION TIME ATTRIBUTE CONFLICT DO NOTHING (SELECT F(ts) F STATE_TTL('A'='1d')"""
WORDS = st.sampled_from([*TEXT.split(), "\n"])


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=25))
def test_nonsense_is_a_clean_error(words: list[str]) -> None:
    assert is_clean(TABLES + " ".join(words))


INSERT = """INSERT INTO C
SELECT A.a1, CAST(B.b1 AS STRING) || CASE WHEN m['a'] > 1 THEN 'x' ELSE '' END
FROM A LEFT JOIN B ON A.a1 = B.b1 AND A.ts BETWEEN A.ts - INTERVAL '1' DAY AND A.ts
WHERE a3 LIKE 'x%' AND r.x NOT IN (1, 2) OR SUBSTRING(a3 FROM 2) IS NOT DISTINCT FROM NULL;"""
JOINS = """CREATE TABLE W (a1 INT, a3 STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) <append>;
CREATE TEMPORAL TABLE FUNCTION F FOR W TIME ATTRIBUTE ts PRIMARY KEY (a1);
INSERT INTO C
SELECT /*+ STATE_TTL('x' = '1d', 'B' = '2h') */
  CAST(COUNT(x.a1) FILTER (WHERE b1 > 1) AS INT), MAX(a3)
FROM W AS x JOIN (B JOIN C ON b1 = c1) ON x.a1 = c1, LATERAL TABLE (F(x.ts)) AS f (p, q, r)
WHERE NOT (x.a1 IN (SELECT c1 FROM C AS d WHERE d.c2 = x.a3) OR NOT EXISTS (SELECT 1 FROM B AS e))
AND (SELECT COUNT(*) FROM C AS g WHERE g.c1 = b1) > 0 GROUP BY a3, x.a1 HAVING SUM(b1) > 2
UNION ALL SELECT DISTINCT CAST(rn AS INT), y.a3 FROM (
SELECT *, ROW_NUMBER() OVER (PARTITION BY a1 + 1 ORDER BY ts DESC) AS rn FROM W ) AS y
JOIN LATERAL TABLE(SNAPSHOT(input => TABLE W, state_ttl => INTERVAL '1' DAY)) AS z ON z.a1 = y.a1
ON CONFLICT DO NOTHING;"""
PIECES = script(TABLES, INSERT, JOINS).split(" ")


def is_clean(text: str) -> bool:
    """Whether a text is a job or a list of problems; any other exception is a defect."""
    try:
        bind(text)
    except SqlErrors as problem:
        return bool(problem.render())
    return True


def test_the_job_that_is_broken_below_is_whole() -> None:
    assert len(bind(" ".join(PIECES)).inserts) == 2


@pytest.mark.service
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_broken_job_is_a_clean_error(data: st.DataObject) -> None:
    pieces = list(PIECES)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(pieces) - 1))
        pieces[at : at + 1] = data.draw(st.lists(WORDS, max_size=2))
    assert is_clean(" ".join(pieces))

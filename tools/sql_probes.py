"""Small jobs that ask the planner one question each: does it take this, and what comes out?"""

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'x:1'"
UPSERT = (
    "'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'x:1', "
    "'key.format' = 'json', 'value.format' = 'json'"
)
CHANGELOGS = {
    "append": f"{KAFKA}, 'format' = 'json'",
    "upsert": UPSERT,
    "retract": f"{KAFKA}, 'format' = 'changelog-json'",
}
_TABLE = """CREATE TABLE {name} (id INT, k INT, s STRING, t TIMESTAMP(3), p AS PROCTIME(),
  PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR t AS t) WITH ({options}, 'topic' = '{name}');
"""
SINK = f"CREATE TABLE sink (id INT) WITH ({CHANGELOGS['retract']}, 'topic' = 'sink');\n"


def table(name: str, changelog: str = "append") -> str:
    return _TABLE.format(name=name, options=CHANGELOGS[changelog])


TABLES = table("a") + table("b") + SINK
INSERT = "INSERT INTO sink SELECT a.id FROM a"


def verdict(text: str) -> tuple[str, str]:
    """The changelog mode of what the job's first query gives, or the code of the refusal."""
    try:
        first = plan(bind(text))[0]
    except SqlErrors as refused:
        return "", refused.codes[0]
    return first.root.inputs[0].changelog_mode.strip("[]"), ""


_ONE_HOUR = "a.k = b.k AND a.{t} BETWEEN b.{t} - INTERVAL '1' HOUR AND b.{t}"
_SNAPSHOT = "JOIN LATERAL TABLE (SNAPSHOT(input => TABLE b)) AS v ON a.k = v.id"
_TIMES = ("t", "p")  # event time, processing time


def _temporal(*kinds: str) -> list[str]:
    on = "JOIN b FOR SYSTEM_TIME AS OF a.{t} ON a.k = b.id"
    return [f"{kind} {on.format(t=t)}" for kind in kinds for t in _TIMES]


# families of joins that answer alike
JOINS = {
    "`[INNER] JOIN`, `CROSS JOIN`": ["JOIN b ON a.k = b.k", "CROSS JOIN b"],
    "`LEFT`, `RIGHT`, `FULL JOIN`": [
        f"{kind} JOIN b ON a.k = b.k" for kind in ("LEFT", "RIGHT", "FULL")
    ],
    "`IN`, `EXISTS` (semi join)": [
        "WHERE k IN (SELECT k FROM b)",
        "WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ],
    "`NOT IN`, `NOT EXISTS` (anti join)": [
        "WHERE k NOT IN (SELECT k FROM b)",
        "WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ],
    **{
        f"interval join, all kinds, {time} time": [
            f"{kind} JOIN b ON {_ONE_HOUR.format(t=t)}"
            for kind in ("INNER", "LEFT", "RIGHT", "FULL")
        ]
        for time, t in zip(("event", "processing"), _TIMES, strict=True)
    },
    "temporal join `INNER`, `LEFT`, both times": _temporal("INNER", "LEFT"),
    "temporal join `RIGHT`, `FULL`": _temporal("RIGHT", "FULL"),
    "`[LEFT] JOIN LATERAL TABLE (SNAPSHOT(...))`": [_SNAPSHOT, f"LEFT {_SNAPSHOT}"],
}

SINKS = {
    "`kafka`, `json`": f"id INT) WITH ({CHANGELOGS['append']}",
    "`upsert-kafka`": f"id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}",
    "`kafka`, `changelog-json`": f"id INT) WITH ({CHANGELOGS['retract']}",
    "`kafka`, `debezium-json`": f"id INT) WITH ({KAFKA}, 'format' = 'debezium-json'",
}
QUERIES = {
    "only inserts": "SELECT id FROM a",
    "updates, known by the sink's key": "SELECT a.id FROM a LEFT JOIN b ON a.k = b.id",
    "updates, by another key": "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k",
}

ANY_INSERT = "INSERT INTO sink SELECT id FROM a;"
STATEMENTS = {
    "CREATE TABLE": "",
    "CREATE TEMPORARY TABLE": table("c").replace("TABLE", "TEMPORARY TABLE"),
    "CREATE TABLE IF NOT EXISTS": table("a").replace("TABLE", "TABLE IF NOT EXISTS"),
    "CREATE TABLE ... LIKE": "CREATE TABLE c LIKE a;",
    "CREATE TABLE ... AS SELECT": ""
    "CREATE TABLE c WITH ('connector' = 'kafka') AS SELECT id FROM a;",
    "CREATE VIEW": "CREATE VIEW v AS SELECT id FROM a; INSERT INTO sink SELECT id FROM v;",
    "CREATE TEMPORARY VIEW": "CREATE TEMPORARY VIEW v AS SELECT id FROM a;",
    "CREATE TEMPORAL TABLE FUNCTION": "CREATE TEMPORAL TABLE FUNCTION F FOR b TIME ATTRIBUTE t "
    "PRIMARY KEY (id); INSERT INTO sink SELECT a.id FROM a, LATERAL TABLE (F(a.t)) AS r "
    "WHERE a.k = r.id;",
    "CREATE FUNCTION ... LANGUAGE PYTHON": "CREATE FUNCTION f AS "
    "'spark_jobs.options.spark.is_property' LANGUAGE PYTHON;",
    "CREATE FUNCTION ... LANGUAGE JAVA": "CREATE FUNCTION f AS 'x.Y';",
    "CREATE CATALOG": "CREATE CATALOG c WITH ('type' = 'hive');",
    "CREATE DATABASE": "CREATE DATABASE d;",
    "ALTER TABLE": "ALTER TABLE a RENAME TO c;",
    "DROP TABLE": "DROP TABLE a;",
    "SET": "SET 'pipeline.name' = 'x';",
    "RESET": "RESET 'pipeline.name';",
    "USE": "USE d;",
    "SHOW TABLES": "SHOW TABLES;",
    "DESCRIBE": "DESCRIBE a;",
    "EXPLAIN": "EXPLAIN SELECT id FROM a;",
    "INSERT INTO": "",
    "INSERT OVERWRITE": "INSERT OVERWRITE sink SELECT id FROM a;",
    "EXECUTE STATEMENT SET": f"EXECUTE STATEMENT SET BEGIN {ANY_INSERT} END;",
    "BEGIN STATEMENT SET": f"BEGIN STATEMENT SET; {ANY_INSERT} END;",
    "UPDATE": "UPDATE a SET id = 1;",
    "DELETE": "DELETE FROM a;",
    "ADD JAR": "ADD JAR 'x.jar';",
}
CLAUSES = {
    "SELECT DISTINCT": "SELECT DISTINCT id FROM a",
    "WHERE": "SELECT id FROM a WHERE k > 1",
    "GROUP BY": "SELECT CAST(COUNT(*) AS INT) FROM a GROUP BY k",
    "HAVING": "SELECT k FROM a GROUP BY k HAVING COUNT(*) > 1",
    "COUNT(DISTINCT x)": "SELECT CAST(COUNT(DISTINCT k) AS INT) FROM a",
    "FILTER (WHERE ...)": "SELECT CAST(COUNT(*) FILTER (WHERE k > 1) AS INT) FROM a",
    "UNION ALL": "SELECT id FROM a UNION ALL SELECT id FROM b",
    "UNION": "SELECT id FROM a UNION SELECT id FROM b",
    "INTERSECT": "SELECT id FROM a INTERSECT SELECT id FROM b",
    "EXCEPT": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "ORDER BY": "SELECT id FROM a ORDER BY t",
    "LIMIT": "SELECT id FROM a LIMIT 5",
    "ORDER BY ... LIMIT": "SELECT id FROM a ORDER BY k DESC LIMIT 5",
    "FETCH FIRST": "SELECT id FROM a ORDER BY k FETCH FIRST 5 ROWS ONLY",
    "OFFSET": "SELECT id FROM a OFFSET 5",
    "WITH (a common table expression)": "WITH c AS (SELECT id FROM a) SELECT id FROM c",
    "VALUES": "SELECT id FROM a JOIN (VALUES (1), (2)) AS c (x) ON k = x",
    "SELECT without FROM": "SELECT id FROM a UNION ALL SELECT 1",
    "LATERAL (SELECT ...)": "SELECT c.id FROM a, LATERAL (SELECT id FROM b WHERE b.k = a.k "
    "ORDER BY t DESC LIMIT 1) AS c",
    "USING": "SELECT id FROM a JOIN b USING (id)",
    "NATURAL JOIN": "SELECT id FROM a NATURAL JOIN (SELECT id FROM b) AS c",
    "GROUPING SETS": "SELECT id FROM a GROUP BY GROUPING SETS ((id), ())",
    "CUBE": "SELECT id FROM a GROUP BY CUBE (id)",
    "ROLLUP": "SELECT id FROM a GROUP BY ROLLUP (id)",
    "TUMBLE, HOP, ... (window tables)": "SELECT id FROM TABLE (TUMBLE(TABLE a, DESCRIPTOR(t), "
    "INTERVAL '1' HOUR))",
    "CROSS JOIN UNNEST": "SELECT id FROM a CROSS JOIN UNNEST(SPLIT(s, ',')) AS c (x)",
    "LEFT JOIN UNNEST": "SELECT id FROM a LEFT JOIN UNNEST(SPLIT(s, ',')) AS c (x) ON TRUE",
    "UNNEST ... WITH ORDINALITY": "SELECT n FROM a, UNNEST(SPLIT(s, ',')) WITH ORDINALITY "
    "AS c (x, n)",
    "UNNEST at the beginning of FROM": "SELECT x FROM UNNEST(ARRAY[1]) AS c (x)",
    "MATCH_RECOGNIZE": "SELECT m.x FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY t "
    "MEASURES X.id AS x ONE ROW PER MATCH PATTERN (X) DEFINE X AS X.k > 1) AS m",
    "QUALIFY": "SELECT id FROM a QUALIFY ROW_NUMBER() OVER (ORDER BY t) = 1",
    "PIVOT": "SELECT * FROM a PIVOT (SUM(k) FOR s IN ('x'))",
    "TABLESAMPLE": "SELECT id FROM a TABLESAMPLE BERNOULLI (5)",
    "ROW_NUMBER() ... = 1 by time": "SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k "
    "ORDER BY t DESC) AS n FROM a) WHERE n = 1",
    "ROW_NUMBER() ... <= n": "SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k "
    "ORDER BY t DESC) AS n FROM a) WHERE n <= 3",
    "RANK()": "SELECT id FROM (SELECT id, RANK() OVER (PARTITION BY k ORDER BY t) AS n FROM a) "
    "WHERE n = 1",
    "SUM(...) OVER (...)": "SELECT SUM(k) OVER (PARTITION BY id ORDER BY t) FROM a",
    "INTERSECT ALL": "SELECT id FROM a INTERSECT ALL SELECT id FROM b",
    "EXCEPT ALL": "SELECT id FROM a EXCEPT ALL SELECT id FROM b",
    "(a, b) IN ((1, 2), ...)": "SELECT id FROM a WHERE (id, k) IN ((1, 2), (3, 4))",
    "a subquery below OR": "SELECT id FROM a WHERE k = 1 OR k IN (SELECT k FROM b)",
    "a subquery in CASE": "SELECT id FROM a WHERE CASE WHEN k IN (SELECT k FROM b) THEN TRUE END",
    "a subquery in the select list": "SELECT (SELECT MAX(k) FROM b) FROM a",
    "a subquery in HAVING": "SELECT k FROM a GROUP BY k HAVING k > (SELECT MAX(k) FROM b)",
    "a subquery with another condition than =": "SELECT id FROM a WHERE id > (SELECT MAX(id) FROM "
    "b WHERE b.k < a.k)",
    "a subquery of LIMIT 1": "SELECT (SELECT id FROM b WHERE b.k = a.k ORDER BY t LIMIT 1) FROM a",
    "GROUP BY a constant": "SELECT CAST(COUNT(*) AS INT) FROM a GROUP BY 'x'",
    "a subquery in ON of a left join": "SELECT a.id FROM a LEFT JOIN b ON a.k = b.k AND b.id IN "
    "(SELECT id FROM a AS c)",
    "a subquery in ON": "SELECT a.id FROM a JOIN b ON a.k = b.k AND a.k IN (SELECT k FROM b)",
    "/*+ STATE_TTL(...) */": "SELECT /*+ STATE_TTL('a' = '1 d') */ a.id FROM a JOIN b ON a.k = b.k",
    "/*+ EARLY_FIRE(...) */": "SELECT /*+ EARLY_FIRE('delay' = '1 s') */ a.id FROM a LEFT JOIN b "
    "ON a.k = b.k AND a.t BETWEEN b.t AND b.t",
    "/*+ OPTIONS(...) */": "SELECT id FROM a /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */",
    "/*+ BROADCAST(...) */": "SELECT /*+ BROADCAST(b) */ a.id FROM a JOIN b ON a.k = b.k",
}
TYPES = (
    "STRING", "VARCHAR", "VARCHAR(2147483647)", "CHAR(5)", "VARCHAR(5)", "BOOLEAN", "TINYINT",
    "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(39, 2)", "DATE",
    "TIME", "TIME(6)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(3) WITH TIME ZONE", "BYTES", "VARBINARY(5)",
    "BINARY(5)", "ROW<x INT, y STRING>", "ARRAY<INT>", "MAP<STRING, INT>", "MULTISET<INT>",
    "RAW('x', 'y')", "INTERVAL DAY TO SECOND", "NULL",
)  # fmt: skip

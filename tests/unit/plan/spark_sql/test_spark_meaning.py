"""What expressions give when Spark evaluates their rendering: Flink's results.

Every row of the table of differences in docs/functions.md has its cases here.
"""

import datetime
import math
import re
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_jobs.plan.spark_sql.expressions import render
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Project
from spark_jobs.sql.types.data_types import DataType, spark_struct, with_nullable

TABLE = """
CREATE TABLE t (
  i INT, j INT, l BIGINT, ti TINYINT, si SMALLINT, f FLOAT, d DOUBLE, z DOUBLE, n INT,
  dec DECIMAL(10, 4), big DECIMAL(38, 10), tiny DECIMAL(10, 8), s STRING, num STRING, b BOOLEAN,
  dt DATE, tm TIME(3), ts TIMESTAMP(3), ts0 TIMESTAMP(0), ts6 TIMESTAMP(6), ltz TIMESTAMP_LTZ(3),
  arr ARRAY<INT>, m MAP<STRING, INT>, r ROW<a INT, q ROW<c STRING>>, raw BYTES
) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json',
        'properties.bootstrap.servers' = 'unused');
"""
UTC = datetime.UTC
ROW = {
    "i": 7,
    "j": -2,
    "l": 9_223_372_036_854_775_807,
    "ti": 100,
    "si": 5,
    "f": 1.5,
    "d": 2.5,
    "z": 0.0,
    "n": None,
    "dec": Decimal("12.3450"),
    "big": Decimal("1234567890.1234567890"),
    "tiny": Decimal("0.00000012"),
    "s": "Straße",
    "num": " 42 ",
    "b": True,
    "dt": datetime.date(2020, 8, 15),
    "tm": 36_061_007,
    "ts": datetime.datetime(2020, 8, 15, 10, 1, 1, 500_000),
    "ts0": datetime.datetime(2020, 8, 15, 10, 1, 1),
    "ts6": datetime.datetime(2020, 8, 15, 10, 1, 1, 123_456),
    "ltz": datetime.datetime(2020, 8, 15, 8, 1, 1, 500_000, tzinfo=UTC),
    "arr": [1, 2, 3],
    "m": {"a": 1},
    "r": (5, ("x",)),
    "raw": b"ab",
}
INFINITY = math.inf


def bound(expression: str) -> Project:
    query = bind_query(" ".join((TABLE, "SELECT", expression, "AS v FROM t"))).query
    assert isinstance(query, Project)
    return query


def frame(spark: SparkSession) -> DataFrame:
    fields = bound("i").input.fields
    schema = StructType.fromJson(spark_struct((f.name, f.type) for f in fields))
    return spark.createDataFrame([tuple(ROW[f.name] for f in fields)], schema)


def rendered(expression: str) -> str:
    query = bound(expression)
    return render(query.exprs[0], [f.name for f in query.input.fields])


def _nullable(type_: DataType) -> object:
    return with_nullable(type_, True).spark_json()


CASES = [
    # arithmetic
    ("i / j", -3),
    ("j / i", 0),
    ("ti / si", 20),
    ("i % j", 1),
    ("j % i", -2),
    ("l % i", 9_223_372_036_854_775_807 % 7),
    ("MOD(i, j)", 1),
    ("i + l", -9_223_372_036_854_775_802),
    ("ti + ti", -56),
    ("i + dec", Decimal("19.3450")),
    ("dec * dec", Decimal("152.39902500")),
    ("dec / 3", Decimal("4.115000000000000")),
    ("d / z", INFINITY),
    ("-d / z", -INFINITY),
    ("z / z", math.nan),
    ("d % z", math.nan),
    ("n / z", None),
    ("i * 2.5", Decimal("17.5")),
    ("f * 2", 3.0),
    ("-i", -7),
    ("i - -3", 10),
    ("NULL + i", None),
    # comparisons and logic
    ("i IN (1, NULL)", None),
    ("i IN (7, NULL)", True),
    ("i NOT IN (1, NULL)", None),
    ("i NOT IN (1, 2)", True),
    ("n IN (1)", None),
    ("i = 7.0", True),
    ("i > 6.5", True),
    ("l > 5", True),
    ("d = 2.5", True),
    ("dec = 12.345", True),
    ("dec BETWEEN 12 AND 12.5", True),
    ("n IS NULL", True),
    ("n IS NOT DISTINCT FROM NULL", True),
    ("i IS DISTINCT FROM n", True),
    ("(n = 1) IS TRUE", False),
    ("(n = 1) IS NOT TRUE", True),
    ("NOT (n = 1)", None),
    ("n = 1 OR b", True),
    ("ts > '2020-08-15 10:01:01'", True),
    ("ts = TIMESTAMP '2020-08-15 10:01:01.5'", True),
    ("dt = '2020-8-15'", True),
    ("tm = TIME '10:01:01.007'", True),
    ("ltz = CAST(ts AS TIMESTAMP_LTZ(3))", True),
    ("s LIKE 'Stra%'", True),
    ("s NOT LIKE '_tra_e'", False),
    ("'a\\b' LIKE 'a\\b'", True),
    ("'a%b' LIKE 'a!%b' ESCAPE '!'", True),
    ("'axb' LIKE 'a!%b' ESCAPE '!'", False),
    ("CASE WHEN n = 1 THEN 1 WHEN b THEN 2.5 END", Decimal("2.5")),
    ("CASE i WHEN 1 THEN 'a' WHEN 7 THEN 'b' ELSE 'c' END", "b"),
    # casts
    ("CAST(num AS INT)", 42),
    ("CAST(num AS DOUBLE)", 42.0),
    ("CAST(d AS INT)", 2),
    ("CAST(-2.7 AS INT)", -2),
    ("CAST(1e20 AS INT)", 2_147_483_647),
    ("CAST(l AS INT)", -1),
    ("CAST(300 AS TINYINT)", 44),
    ("CAST(dec AS DECIMAL(4, 1))", Decimal("12.3")),
    ("CAST(2.55 AS DECIMAL(4, 1))", Decimal("2.6")),
    ("CAST(big AS DECIMAL(5, 2))", None),
    ("CAST(b AS STRING)", "TRUE"),
    ("CAST(d AS STRING)", "2.5"),
    ("CAST(dec AS STRING)", "12.3450"),
    ("CAST(tiny AS STRING)", "0.00000012"),
    ("CAST(ts AS STRING)", "2020-08-15 10:01:01.500"),
    ("CAST(ts0 AS STRING)", "2020-08-15 10:01:01"),
    ("CAST(ts6 AS STRING)", "2020-08-15 10:01:01.123456"),
    ("CAST(CAST(ts0 AS TIMESTAMP(3)) AS STRING)", "2020-08-15 10:01:01.000"),
    ("CAST(ltz AS STRING)", "2020-08-15 10:01:01.500"),
    ("CAST(tm AS STRING)", "10:01:01.007"),
    ("CAST(dt AS STRING)", "2020-08-15"),
    ("CAST(i AS STRING)", "7"),
    ("CAST(raw AS STRING)", "ab"),
    ("CAST('true' AS BOOLEAN)", True),
    ("CAST(i AS BOOLEAN)", True),
    ("CAST(b AS INT)", 1),
    ("CAST(ts6 AS TIMESTAMP(3))", datetime.datetime(2020, 8, 15, 10, 1, 1, 123_000)),
    ("CAST(ts6 AS TIMESTAMP(0))", datetime.datetime(2020, 8, 15, 10, 1, 1)),
    ("CAST(ts AS DATE)", datetime.date(2020, 8, 15)),
    ("CAST(dt AS TIMESTAMP(3))", datetime.datetime(2020, 8, 15)),
    ("CAST(ts AS TIME(3))", 36_061_500),
    ("CAST(ts AS TIME)", 36_061_000),
    ("CAST('10:01:01' AS TIME)", 36_061_000),
    ("CAST(ltz AS TIMESTAMP(3))", datetime.datetime(2020, 8, 15, 10, 1, 1, 500_000)),
    ("CAST('2020-08-15 10:01:01.1239' AS TIMESTAMP(3))",
     datetime.datetime(2020, 8, 15, 10, 1, 1, 123_000)),
    ("TRY_CAST(s AS INT)", None),
    ("TRY_CAST(num AS INT)", 42),
    ("CAST(NULL AS INT)", None),
    # times
    ("ts + INTERVAL '5' SECOND", datetime.datetime(2020, 8, 15, 10, 1, 6, 500_000)),
    ("ts - INTERVAL '1 02:03' DAY TO MINUTE", datetime.datetime(2020, 8, 14, 7, 58, 1, 500_000)),
    ("ts - INTERVAL '1-2' YEAR TO MONTH", datetime.datetime(2019, 6, 15, 10, 1, 1, 500_000)),
    ("INTERVAL '1' DAY + ts", datetime.datetime(2020, 8, 16, 10, 1, 1, 500_000)),
    ("ts + INTERVAL '0.5' SECOND * 3", datetime.datetime(2020, 8, 15, 10, 1, 3)),
    ("dt + INTERVAL '1' DAY", datetime.date(2020, 8, 16)),
    ("dt - INTERVAL '1' MONTH", datetime.date(2020, 7, 15)),
    ("tm + INTERVAL '15' HOUR", 3_661_007),
    ("tm - INTERVAL '11' HOUR", 82_861_007),
    ("EXTRACT(YEAR FROM ts)", 2020),
    ("EXTRACT(SECOND FROM ts)", 1),
    ("EXTRACT(MILLISECOND FROM ts)", 500),
    ("EXTRACT(HOUR FROM ltz)", 10),
    ("EXTRACT(MINUTE FROM tm)", 1),
    ("EXTRACT(EPOCH FROM ts0)", 1_597_485_661),
    ("EXTRACT(EPOCH FROM ltz)", 1_597_478_461),
    ("DAYOFWEEK(dt)", 7),
    ("YEAR(dt)", 2020),
    ("TO_TIMESTAMP_LTZ(0, 3) = TO_TIMESTAMP_LTZ(0, 0)", True),
    ("CAST(TO_TIMESTAMP_LTZ(1597478461500, 3) AS STRING)", "2020-08-15 10:01:01.500"),
    ("TO_TIMESTAMP('2020-08-15 10:01:01')", datetime.datetime(2020, 8, 15, 10, 1, 1)),
    ("TO_TIMESTAMP('15.08.2020', 'dd.MM.yyyy')", datetime.datetime(2020, 8, 15)),
    ("TO_TIMESTAMP('nonsense')", None),
    ("TO_DATE('2020-08-15')", datetime.date(2020, 8, 15)),
    ("DATE_FORMAT(ts, 'yyyy/MM/dd HH:mm')", "2020/08/15 10:01"),
    ("FLOOR(ts TO HOUR)", datetime.datetime(2020, 8, 15, 10)),
    ("FLOOR(ts TO MONTH)", datetime.datetime(2020, 8, 1)),
    ("CAST(FLOOR(ltz TO DAY) AS STRING)", "2020-08-15 00:00:00.000"),
    ("TIMESTAMPADD(DAY, 2, ts0)", datetime.datetime(2020, 8, 17, 10, 1, 1)),
    ("TIMESTAMPADD(MONTH, i, dt)", datetime.date(2021, 3, 15)),
    ("TIMESTAMPDIFF(SECOND, ts0, ts0 + INTERVAL '90' SECOND)", 90),
    ("TIMESTAMPDIFF(MINUTE, ts0 + INTERVAL '90' SECOND, ts0)", -1),
    ("FROM_UNIXTIME(0)", "1970-01-01 01:00:00"),
    # texts
    ("UPPER('abc') || LOWER('DEF')", "ABCdef"),
    ("s || CAST(NULL AS STRING)", None),
    ("CONCAT(s, '-', num)", "Straße- 42 "),
    ("CONCAT_WS(',', 'a', CAST(NULL AS STRING), 'b')", "a,b"),
    ("CHAR_LENGTH(s)", 6),
    ("SUBSTR(s, 2, 3)", "tra"),
    ("SUBSTRING(s FROM 5)", "ße"),
    ("SUBSTR(s, 0, 2)", "St"),
    ("SUBSTR(s, -2)", "ße"),
    ("SUBSTR(s, -10, 7)", ""),
    ("SUBSTR(s, 2, -1)", None),
    ("TRIM(num)", "42"),
    ("TRIM(LEADING ' ' FROM num)", "42 "),
    ("TRIM(BOTH 'S' FROM s)", "traße"),
    ("LTRIM(num)", "42 "),
    ("RTRIM(num, ' ')", " 42"),
    ("REPLACE(s, 'ße', 'sse')", "Strasse"),
    ("REVERSE('abc')", "cba"),
    ("REPEAT('ab', 2)", "abab"),
    ("LPAD('7', 3, '0')", "007"),
    ("RPAD('7', 3, '')", None),
    ("LPAD('7', -1, '0')", None),
    ("LEFT(s, 2) || RIGHT(s, 2)", "Stße"),
    ("POSITION('ra' IN s)", 3),
    ("INSTR(s, 'ra')", 3),
    ("LOCATE('x', s)", 0),
    ("SPLIT_INDEX('a.b.c', '.', 1)", "b"),
    ("SPLIT_INDEX('a.b.c', '.', 5)", None),
    ("REGEXP_REPLACE('a1b2', '[0-9]', 'x')", "axbx"),
    ("REGEXP_EXTRACT('a1b2', 'b([0-9])', 1)", "2"),
    ("REGEXP_EXTRACT('a1b2', 'c')", None),
    ("REGEXP('a1', '[0-9]')", True),
    ("MD5('a')", "0cc175b9c0f1b6a831c399e269772661"),
    ("SHA256('a')", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ("'it''s' || '\\n'", "it's\\n"),
    # numbers
    ("ABS(j)", 2),
    ("ROUND(2.555, 2)", Decimal("2.56")),
    ("ROUND(d)", 3.0),
    ("ROUND(dec, 1)", Decimal("12.3")),
    ("FLOOR(d)", 2.0),
    ("CEIL(-2.5)", Decimal("-2")),
    ("FLOOR(i)", 7),
    ("FLOOR(1e300)", 1e300),
    ("FLOOR(dec)", Decimal("12")),
    ("POWER(i, 2)", 49.0),
    ("SQRT(dec - 3.345)", 3.0),
    ("EXP(z)", 1.0),
    ("LN(z)", -INFINITY),
    ("LN(-1)", math.nan),
    ("LOG10(100)", 2.0),
    ("SIGN(j)", -1),
    # choices
    ("COALESCE(n, i)", 7),
    ("IFNULL(n, 3)", 3),
    ("NULLIF(i, 7)", None),
    ("NULLIF(i, 8)", 7),
    ("IF(n = 1, 'a', 'b')", "b"),
    ("GREATEST(i, j, 3)", 7),
    ("GREATEST(i, n)", None),
    ("LEAST(i, 2.5)", Decimal("2.5")),
    # parts
    ("arr[1]", 1),
    ("arr[9]", None),
    ("m['a']", 1),
    ("m['b']", None),
    ("r.a", 5),
    ("t.r.q.c", "x"),
    ("ROW(1, 'a').EXPR$0", 1),
    ("ARRAY[i, 2][1]", 7),
    ("MAP['k', i]['k']", 7),
    ("CARDINALITY(arr)", 3),
    ("CARDINALITY(CAST(NULL AS ARRAY<INT>))", None),
    ("X'6162' = raw", True),
]  # fmt: skip


FAILING = [
    ("CAST(s AS INT)", "cannot cast to INT: Straße"),
    ("CAST(s AS TIME)", "cannot cast to TIME"),
    ("CAST(s AS TIMESTAMP(3))", "cannot cast to TIMESTAMP"),
    ("i / 0", "division by zero"),
    ("i / (i - 7)", "division by zero"),
    ("i % (i - 7)", "division by zero"),
    ("dec / (i - 7)", "division by zero"),
]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> dict[str, tuple[object, object]]:
    """Value and Spark type of every case, from one Spark job."""
    texts = [f"{rendered(e)} AS c{n}" for n, (e, _) in enumerate(CASES)]
    result = frame(spark).selectExpr(*texts)
    types = [f.dataType.jsonValue() for f in result.schema]
    row = result.first()
    assert row is not None
    return {e: (row[n], types[n]) for n, (e, _) in enumerate(CASES)}


@pytest.mark.parametrize(("expression", "expected"), CASES, ids=[c[0] for c in CASES])
def test_expression_has_flinks_result(
    results: dict[str, tuple[object, object]], expression: str, expected: object
) -> None:
    found, spark_type = results[expression]
    if isinstance(expected, float) and math.isnan(expected):
        assert isinstance(found, float)
        assert math.isnan(found)
    else:
        assert found == expected
    assert spark_type == _nullable(bound(expression).exprs[0].type)


@pytest.mark.parametrize(("expression", "message"), FAILING, ids=[c[0] for c in FAILING])
def test_expression_fails_as_in_flink(spark: SparkSession, expression: str, message: str) -> None:
    failing = frame(spark).selectExpr(f"{rendered(expression)} AS v")
    with pytest.raises(Exception, match=re.escape(message)):
        failing.collect()

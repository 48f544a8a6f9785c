"""PySpark's Columns as Flink SQL: real ones, made in a JVM that has no Spark session."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.functions import col, expr, lit

from spark_jobs.api.columns import conjunction, sql_text
from spark_jobs.errors import RejoinError, UnsupportedError

pytestmark = pytest.mark.usefixtures("pyspark_functions")

# made when a test runs: a Column needs its JVM
Make = Callable[[], Column]

TEXTS: list[tuple[str, Make]] = [
    ("o.id = p.id", lambda: col("o.id") == col("p.id")),
    ("`a b`.c", lambda: col("`a b`.c")),
    ("o.*", lambda: col("o.*")),
    ("a <> 1", lambda: col("a") != 1),
    ("a > 1 AND b IS NOT NULL OR c", lambda: (col("a") > 1) & ~col("b").isNull() | col("c")),
    ("a AND (b OR c)", lambda: col("a") & (col("b") | col("c"))),
    ("NOT (a AND b)", lambda: ~(col("a") & col("b"))),
    ("(a = 1) = (b = 2)", lambda: (col("a") == 1) == (col("b") == 2)),
    ("a IS NOT DISTINCT FROM b", lambda: col("a").eqNullSafe(col("b"))),
    ("a IS DISTINCT FROM b", lambda: ~col("a").eqNullSafe(col("b"))),
    ("a - (b - 1)", lambda: col("a") - (col("b") - 1)),
    ("(a + 1) * 2", lambda: (col("a") + 1) * 2),
    ("a - b - 1", lambda: col("a") - col("b") - 1),
    ("-(a + 1)", lambda: -(col("a") + 1)),
    ("a / 2 % 3", lambda: col("a") / 2 % 3),
    ("a - -1", lambda: col("a") - (-1)),
    ("a IN (1, 2)", lambda: col("a").isin(1, 2)),
    ("a NOT IN ('x')", lambda: ~col("a").isin("x")),
    ("a NOT LIKE 'x%'", lambda: ~col("a").like("x%")),
    ("a >= 1 AND a <= b", lambda: col("a").between(1, col("b"))),
    ("a['k']", lambda: col("a")["k"]),
    ("a = 'it''s'", lambda: col("a") == "it's"),
    ("a = X'6162'", lambda: col("a") == b"ab"),
    ("a = TRUE", lambda: col("a") == True),  # noqa: E712
    ("a = 1.50", lambda: col("a") == Decimal("1.50")),
    ("a = 1.5E0", lambda: col("a") == 1.5),
    ("a = DATE '2020-08-15'", lambda: col("a") == date(2020, 8, 15)),
    ("a - INTERVAL '4' HOUR", lambda: col("a") - timedelta(hours=4)),
    ("a + INTERVAL '1.5' SECOND", lambda: col("a") + timedelta(seconds=1.5)),
    ("CAST(a AS DECIMAL(10,2))", lambda: col("a").cast("decimal(10,2)")),
    ("TRY_CAST(a AS TIMESTAMP(6))", lambda: col("a").try_cast("timestamp_ntz")),
    ("CASE WHEN a THEN 'x' ELSE NULL END", lambda: F.when(col("a"), "x").otherwise(lit(None))),
    ("SUM(a * b) AS `sum of`", lambda: F.sum(col("a") * col("b")).alias("sum of")),
    ("COUNT(DISTINCT a)", lambda: F.count_distinct(col("a"))),
    ("COUNT(*)", lambda: F.count("*")),
    ("CONCAT(UPPER(a), '-', TRIM(b))", lambda: F.concat(F.upper("a"), lit("-"), F.trim("b"))),
    ("CHAR_LENGTH(a)", lambda: F.length("a")),
    ("(a OR b) AND c = 1", lambda: expr("a OR b") & (col("c") == 1)),
    ("SUBSTRING(a FROM 2) AS s", lambda: expr("SUBSTRING(a FROM 2)").alias("s")),
]  # fmt: skip

REFUSALS: list[tuple[str, Make]] = [
    ("a datetime", lambda: col("a") > datetime(2020, 8, 15)),
    ("an interval of 5 microseconds", lambda: lit(timedelta(microseconds=5))),
    ("PySpark's greatest", lambda: F.greatest("a", "b")),
    ("PySpark's substr", lambda: col("a").substr(1, 2)),
    ("PySpark's rand", lambda: F.rand()),
    ("trim with characters", lambda: F.trim("a", lit("x"))),
    ("LIKE with an escape", lambda: F.like("a", lit("x"), lit("/"))),
    ("an array index", lambda: col("a")[0]),
    ("isin() without values", lambda: col("a").isin([])),
    ("a cast to STRUCT", lambda: col("a").cast("struct<x:int>")),
    ("a constant of type float", lambda: lit(float("nan"))),
    ("an alias inside", lambda: col("a").alias("x") + 1),
    ("withField", lambda: col("a").withField("x", lit(1))),
    ("an order", lambda: col("a").desc()),
]


@pytest.mark.parametrize(("wanted", "make"), TEXTS, ids=[text for text, _ in TEXTS])
def test_a_column_as_sql(wanted: str, make: Make) -> None:
    assert sql_text(make()) == wanted


@pytest.mark.parametrize(("says", "make"), REFUSALS, ids=[says for says, _ in REFUSALS])
def test_what_sql_has_not_is_refused(says: str, make: Make) -> None:
    column = make()
    with pytest.raises(RejoinError) as refused:
        sql_text(column)
    assert refused.value.message.startswith(says)
    assert refused.value.hint


@pytest.mark.parametrize("value", [["id"], None, True, Path("x")], ids=repr)
def test_what_is_no_column_is_refused(value: Any) -> None:
    with pytest.raises(UnsupportedError, match="UNSUPPORTED_COLUMN"):
        sql_text(value)


def test_a_function_of_the_users_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="UNSUPPORTED_COLUMN"):
        sql_text(F.call_function("lower_case", "a"))


def test_conditions_beside_and() -> None:
    found = conjunction(col("a") == 1, expr("x OR y"), "z = 1 OR z = 2")
    assert found == "a = 1 AND (x OR y) AND (z = 1 OR z = 2)"

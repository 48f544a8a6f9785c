"""The lines of the Table API that seed 004 ends with run the operators of its SQL."""

from collections.abc import Callable

import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from rejoin import Changelog, Job
from spark_jobs.plan.text.explain import explain_text

TABLES = "".join(
    f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{name}',"
    " 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');\n"
    for name, columns in (
        ("Orders", "o_amount BIGINT, o_currency STRING, o_proctime AS PROCTIME()"),
        ("RatesHistory", "r_currency STRING, r_rate BIGINT, r_proctime AS PROCTIME()"),
    )
)
SQL = """
CREATE TEMPORAL TABLE FUNCTION Rates FOR RatesHistory
  TIME ATTRIBUTE r_proctime PRIMARY KEY (r_currency);
SELECT
  SUM(o_amount * r_rate) AS amount
FROM
  Orders,
  LATERAL TABLE (Rates(o_proctime))
WHERE
  r_currency = o_currency;
"""


def operators(text: str) -> str:
    """The plan that runs; the logical plans show the condition as it was written."""
    return text.partition("== Rejoin Plan ==")[2]


def in_java(job: Job) -> Changelog:
    rates = job.table("RatesHistory").create_temporal_table_function("r_proctime", "r_currency")
    job.register_function("rates", rates)
    orders = job.table("Orders")
    return orders.join_lateral("rates(o_proctime)", "o_currency = r_currency").select(
        "(o_amount * r_rate).sum as amount"
    )


def in_scala(job: Job) -> Changelog:
    rates = job.table("RatesHistory").create_temporal_table_function("r_proctime", "r_currency")
    orders = job.table("Orders")
    joined = orders.join_lateral(rates(col("o_proctime")), col("r_currency") == col("o_currency"))
    return joined.select(F.sum(col("o_amount") * col("r_rate")).alias("amount"))


@pytest.mark.parametrize("query", [in_java, in_scala])
@pytest.mark.usefixtures("pyspark_functions")
def test_both_notations_run_what_the_sql_runs(query: Callable[[Job], Changelog]) -> None:
    found = operators(query(Job.from_sql(TABLES)).explain())
    assert "Aggregate" in found
    assert found == operators(explain_text(TABLES + SQL))

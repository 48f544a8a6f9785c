"""Joins by Column expressions: each has the plan of the SQL that says the same."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import col, expr

from rejoin import Changelog, Job, interval_join, regular_join, temporal_join
from spark_jobs.plan.text.explain import explain_text

pytestmark = pytest.mark.usefixtures("pyspark_functions")

TABLES = "".join(
    f"CREATE TABLE {name} ({columns}) WITH ('connector' = '{connector}', 'topic' = '{name}',"
    f" 'properties.bootstrap.servers' = 'localhost:9092', {options});\n"
    for name, connector, columns, options in (
        (
            "orders", "kafka",
            "order_id INT, user_id INT, currency STRING, amount DECIMAL(10, 2), `time`"
            " TIMESTAMP(3), proctime AS PROCTIME(),"
            " WATERMARK FOR `time` AS `time` - INTERVAL '5' SECOND",
            "'format' = 'json', 'scan.startup.mode' = 'earliest-offset'",
        ),
        (
            "shipments", "kafka",
            "order_id INT, ship_time TIMESTAMP(3), WATERMARK FOR ship_time AS ship_time",
            "'format' = 'json', 'scan.startup.mode' = 'earliest-offset'",
        ),
        (
            "users", "upsert-kafka", "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
            "'key.format' = 'json', 'value.format' = 'json'",
        ),
        (
            "rates", "upsert-kafka",
            "currency STRING, rate DECIMAL(10, 4), `time` TIMESTAMP(3), PRIMARY KEY (currency) NOT"
            " ENFORCED, WATERMARK FOR `time` AS `time`",
            "'key.format' = 'json', 'value.format' = 'json'",
        ),
        (
            "history", "kafka",
            "r_currency STRING, r_rate INT, r_time TIMESTAMP(3), r_proctime AS PROCTIME(),"
            " WATERMARK FOR r_time AS r_time",
            "'format' = 'json', 'scan.startup.mode' = 'earliest-offset'",
        ),
    )
)  # fmt: skip

Query = Callable[[Job], Changelog]


def regular(job: Job) -> Changelog:
    o, u = job.table("orders").alias("o"), job.table("users").alias("u")
    joined = regular_join(o, u, on=o["user_id"] == u["id"], how="left_outer")
    return joined.select("o.order_id", F.coalesce(u["name"], F.lit("?")).alias("name"))


def residual_and_where(job: Job) -> Changelog:
    o, u = job.table("orders").alias("o"), job.table("users").alias("u")
    on = (col("o.user_id") == col("u.id")) & ((col("o.amount") + 1) * 2 > 10)
    joined = regular_join(o, u, on=on, how="full").where(~col("name").isin("x", "y"))
    return joined.where(col("order_id") >= 1).select("order_id", "name")


def chain(job: Job) -> Changelog:
    o, u = job.table("orders").alias("o"), job.table("users").alias("u")
    s = job.table("shipments").where("order_id > 5").alias("s")
    joined = regular_join(o, u, on=col("o.user_id") == col("u.id"))
    joined = regular_join(joined, s, on=col("s.order_id") == col("o.order_id"), how="left")
    return joined.select("o.order_id", "u.name", "s.ship_time")


def semi(job: Job) -> Changelog:
    o, u = job.table("orders"), job.table("users")
    on = (col("users.id") == col("orders.user_id")) & (col("users.name") != "x")
    return regular_join(o, u, on=on, how="left_semi").select("order_id")


def anti(job: Job) -> Changelog:
    o, u = job.table("orders"), job.table("users")
    return regular_join(o, u, on="users.id = orders.user_id", how="anti").select("order_id")


def interval(job: Job) -> Changelog:
    o, s = job.table("orders").alias("o"), job.table("shipments").alias("s")
    joined = interval_join(
        o, s, on=o["order_id"] == s["order_id"], left_time=o["time"], right_time="s.ship_time",
        upper=timedelta(hours=4), how="left",
    )  # fmt: skip
    return joined.select(o["order_id"], s["ship_time"])


def interval_by_condition(job: Job) -> Changelog:
    o, s = job.table("orders").alias("o"), job.table("shipments").alias("s")
    near = col("o.time").between(col("s.ship_time") - timedelta(hours=4), col("s.ship_time"))
    joined = interval_join(o, s, on=(col("o.order_id") == col("s.order_id")) & near)
    return joined.select("o.order_id")


def temporal(job: Job) -> Changelog:
    o, r = job.table("orders").alias("o"), job.table("rates").alias("r")
    joined = temporal_join(
        o, r, on=o["currency"] == r["currency"], as_of=o["time"], how="left"
    )  # fmt: skip
    return joined.select("o.order_id", (col("o.amount") * col("r.rate")).alias("yen"))


def temporal_over_a_view(job: Job) -> Changelog:
    latest = job.table("history").select(
        "*",
        expr("ROW_NUMBER() OVER (PARTITION BY r_currency ORDER BY r_time DESC)").alias("n"),
    )
    versions = job.create_view(
        "versions", latest.where(col("n") == 1).select("r_currency", "r_rate", "r_time")
    )
    o, v = job.table("orders").alias("o"), versions.alias("v")
    joined = temporal_join(
        o, v, on=col("o.currency") == col("v.r_currency"), as_of=col("o.time")
    )  # fmt: skip
    return joined.select("order_id", "r_rate")


def lateral(job: Job) -> Changelog:
    """The Table API's lines of seed 004, name by name."""
    rates = job.table("history").create_temporal_table_function("r_proctime", "r_currency")
    job.register_function("Rates", rates)
    return (
        job.table("orders")
        .join_lateral("Rates(proctime)", "currency = r_currency")
        .select("(user_id * r_rate).sum as amount")
    )


def lateral_by_columns(job: Job) -> Changelog:
    """The same lines in Scala, whose expressions PySpark's resemble."""
    rates = job.table("history").create_temporal_table_function("r_proctime", ["r_currency"])
    return (
        job.table("orders")
        .join_lateral(rates(col("proctime")), col("currency") == col("r_currency"))
        .select(F.sum(col("user_id") * col("r_rate")).alias("amount"))
    )


def grouped(job: Job) -> Changelog:
    o, u = job.table("orders").alias("o"), job.table("users").alias("u")
    joined = regular_join(o, u, on=o["user_id"] == u["id"])
    return joined.group_by("u.name").agg(F.count("*").alias("n"), F.sum("o.amount").alias("paid"))


RATES = """
    CREATE TEMPORAL TABLE FUNCTION Rates FOR history
    TIME ATTRIBUTE r_proctime PRIMARY KEY (r_currency);"""
SUMS = """
    SELECT SUM(user_id * r_rate) AS amount
    FROM orders JOIN LATERAL TABLE (Rates(proctime)) ON currency = r_currency"""
PAIRS: list[tuple[Query, str]] = [
    (regular, """
        SELECT o.order_id, COALESCE(u.name, '?') AS name
        FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id"""),
    (residual_and_where, """
        SELECT order_id, name
        FROM orders AS o FULL JOIN users AS u ON o.user_id = u.id AND (o.amount + 1) * 2 > 10
        WHERE name NOT IN ('x', 'y') AND order_id >= 1"""),
    (chain, """
        SELECT o.order_id, u.name, s.ship_time FROM orders AS o JOIN users AS u ON o.user_id = u.id
        LEFT JOIN (SELECT * FROM shipments WHERE order_id > 5) AS s ON s.order_id = o.order_id"""),
    (semi, """
        SELECT order_id FROM orders WHERE EXISTS (
          SELECT * FROM users WHERE users.id = orders.user_id AND users.name <> 'x')"""),
    (anti, """
        SELECT order_id FROM orders
        WHERE NOT EXISTS (SELECT * FROM users WHERE users.id = orders.user_id)"""),
    (interval, """
        SELECT o.order_id, s.ship_time FROM orders AS o LEFT JOIN shipments AS s
        ON o.order_id = s.order_id
        AND s.ship_time BETWEEN o.`time` AND o.`time` + INTERVAL '4' HOUR"""),
    (interval_by_condition, """
        SELECT o.order_id FROM orders AS o JOIN shipments AS s ON o.order_id = s.order_id
        AND o.`time` BETWEEN s.ship_time - INTERVAL '4' HOUR AND s.ship_time"""),
    (temporal, """
        SELECT o.order_id, o.amount * r.rate AS yen
        FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.`time` AS r
        ON o.currency = r.currency"""),
    (temporal_over_a_view, """
        SELECT order_id, r_rate FROM orders AS o JOIN versions FOR SYSTEM_TIME AS OF o.`time` AS v
        ON o.currency = v.r_currency"""),
    (lateral, SUMS),
    (lateral_by_columns, SUMS),
    (grouped, """
        SELECT u.name, COUNT(*) AS n, SUM(o.amount) AS paid
        FROM orders AS o JOIN users AS u ON o.user_id = u.id GROUP BY u.name"""),
]  # fmt: skip
VERSIONS = """
    CREATE VIEW versions AS SELECT r_currency, r_rate, r_time FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY r_currency ORDER BY r_time DESC) AS n FROM history)
    WHERE n = 1;"""


@pytest.mark.parametrize(("query", "sql"), PAIRS, ids=[query.__name__ for query, _ in PAIRS])
def test_the_plan_is_that_of_the_sql(query: Query, sql: str) -> None:
    assert query(Job.from_sql(TABLES)).explain() == explain_text(f"{TABLES}{RATES}{VERSIONS}{sql};")


def test_the_plan_of_an_insert_is_that_of_the_sql() -> None:
    sink = """CREATE TABLE named (order_id INT, name STRING) WITH ('connector' = 'kafka',
      'topic' = 'named', 'properties.bootstrap.servers' = 'localhost:9092',
      'format' = 'changelog-json');"""
    job = Job.from_sql(f"{TABLES}{sink}")
    regular(job).insert_into("named")
    assert job.explain() == explain_text(f"{TABLES}{sink} INSERT INTO named {PAIRS[0][1]};")
    assert Job.from_sql(job.text).explain() == job.explain()

"""What seeds 001, 002 and 004 claim of whole queries: times behind a join, and one join in two
spellings."""

from datetime import timedelta

import pytest

from rejoin import Job, interval_join, regular_join
from spark_jobs.errors import SqlError, SqlErrors
from spark_jobs.plan.text.explain import explain_text

JSON = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"
TABLES = f"""
CREATE TABLE Orders (id INT, ordertime TIMESTAMP(3), WATERMARK FOR ordertime AS ordertime)
  WITH ({JSON}, 'topic' = 'orders');
CREATE TABLE Shipments (id INT, orderId INT, shiptime TIMESTAMP(3),
  WATERMARK FOR shiptime AS shiptime) WITH ({JSON}, 'topic' = 'shipments');
CREATE TABLE Payments (orderId INT, paytime TIMESTAMP(3), WATERMARK FOR paytime AS paytime)
  WITH ({JSON}, 'topic' = 'payments');
CREATE TABLE Rates (currency INT, since TIMESTAMP(3), PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR since AS since) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates',
  'properties.bootstrap.servers' = 'b:9092', 'key.format' = 'json', 'value.format' = 'json');
"""
PAID = "(SELECT o.id, o.ordertime FROM Orders AS o JOIN Payments AS p ON o.id = p.orderId) AS paid"
NEAR = "s.shiptime BETWEEN paid.ordertime AND paid.ordertime + INTERVAL '4' HOUR"


def operators(query: str) -> str:
    return explain_text(f"{TABLES}{query};").partition("== Rejoin Plan ==")[2]


def test_the_two_spellings_of_the_interval_are_one_plan() -> None:
    query = """SELECT * FROM Orders o, Shipments s WHERE o.id = s.orderId AND """
    seed_002 = "s.shiptime BETWEEN o.ordertime AND o.ordertime + INTERVAL '4' HOUR"
    seed_004 = "o.ordertime BETWEEN s.shiptime - INTERVAL '4' HOUR AND s.shiptime"
    plan = operators(query + seed_002)
    assert "IntervalJoin" in plan
    assert plan == operators(query + seed_004)


def test_bounds_on_times_of_a_regular_join_make_another_regular_join() -> None:
    """Not refused, as in Flink; the warning says that the state grows."""
    plan = operators(
        f"SELECT paid.id, s.id FROM {PAID} JOIN Shipments AS s ON paid.id = s.orderId AND {NEAR}"  # noqa: S608
    )
    assert "IntervalJoin" not in plan
    assert "state grows without bound" in plan


def test_the_interval_join_of_python_refuses_the_times_of_a_regular_join() -> None:
    job = Job.from_sql(TABLES)
    orders, payments = job.table("Orders"), job.table("Payments")
    paid = regular_join(orders, payments, on="Orders.id = Payments.orderId")
    with pytest.raises(SqlError) as refused:
        interval_join(
            paid, job.table("Shipments"), on="Orders.id = Shipments.orderId",
            left_time="ordertime", right_time="shiptime", upper=timedelta(hours=4),
        )  # fmt: skip
    assert refused.value.code == "NOT_AN_INTERVAL_JOIN"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT r.currency FROM Rates FOR SYSTEM_TIME AS OF r.since AS r"
        " JOIN Orders AS o ON o.id = r.currency",
        "SELECT r.currency FROM Rates FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01 00:00:00' AS r"
        " JOIN Orders AS o ON o.id = r.currency",
    ],
)
def test_a_temporal_table_stands_on_the_right_only(query: str) -> None:
    with pytest.raises(SqlErrors) as refused:
        operators(query)
    [*_, problem] = refused.value.errors
    assert problem.code == "UNSUPPORTED_CLAUSE"
    assert "FOR SYSTEM_TIME AS OF outside of a JOIN" in problem.message

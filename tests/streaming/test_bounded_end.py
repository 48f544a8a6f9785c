"""A bounded query ends by itself: the end mark comes behind the last records, in the same run."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import rejoin
from spark_jobs.driver.launch import OpenQuery
from spark_jobs.embedded.broker import Broker
from spark_jobs.streaming.session import stop_session
from tests.harness.shop import Shop, text
from tests.harness.spark import forget_jvm

CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}
# two operators with a clock, and a scan that Spark asks after the first of the clocks
QUERY = """\
INSERT INTO priced_sink
SELECT o.id, p.price, s.day
FROM orders AS o
LEFT JOIN prices FOR SYSTEM_TIME AS OF o.`at` AS p ON o.item = p.item
LEFT JOIN shipments AS s ON o.id = s.id AND s.`at` BETWEEN o.`at` AND o.`at` + INTERVAL '1' HOUR;
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = rejoin.session("tests", CONF)
    yield session
    stop_session(session, 15)
    forget_jvm()


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Shop:
    return Shop(broker, tmp_path)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each start of a query was one that begins with the end mark."""
    found: list[bool] = []
    start = OpenQuery._start

    def noted(query: OpenQuery, ending: bool) -> StreamingQuery:
        found.append(ending)
        return start(query, ending)

    monkeypatch.setattr(OpenQuery, "_start", noted)
    return found


def priced(shop: Shop) -> str:
    ends = {"scan__bounded__mode": "latest-offset"}
    timed = "`at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`"
    return (
        "SET 'rejoin.parallelism' = '2';\n"
        "SET 'rejoin.max-offsets-per-trigger' = '3';\n"
        + shop.table("orders", f"id BIGINT, item STRING, {timed}", **ends)
        + shop.table(
            "prices",
            f"item STRING, price INT, {timed}, PRIMARY KEY (item) NOT ENFORCED",
            "upsert-kafka",
            **ends,
        )
        + shop.table("shipments", f"id BIGINT, day STRING, {timed}", **ends)
        + shop.table("priced_sink", "id BIGINT, price INT, day STRING")
        + QUERY
    )


def at(minute: int) -> str:
    return f"2024-01-01 10:{minute:02}:00"


def fill(shop: Shop, orders: int) -> None:
    shop.create("orders", "prices", "shipments", "priced_sink")
    shop.send("prices", [{"item": "a", "price": 1, "at": at(1)}], key="item")
    shop.send("orders", [{"id": n, "item": "a", "at": at(n)} for n in range(orders)])
    shop.send("shipments", [{"id": n, "day": "today", "at": at(n)} for n in range(0, orders, 2)])


def run(spark: SparkSession, sql: str, folder: Path) -> None:
    job = rejoin.Job.from_sql(sql)
    with job.start(spark, checkpoint=str(folder / "c"), status_dir=folder / "s") as running:
        assert running.await_termination(240)


def test_a_query_is_ended_in_the_run_that_reads_its_last_records(
    shop: Shop, spark: SparkSession, tmp_path: Path, runs: list[bool]
) -> None:
    fill(shop, 30)
    run(spark, priced(shop), tmp_path)
    expected = Counter(
        text({"id": n, "price": 1 if n else None, "day": None if n % 2 else "today"})
        for n in range(30)
    )
    assert shop.rows("priced_sink", 30) == expected
    assert runs == [False]
    offsets = sorted((tmp_path / "c" / "priced_sink" / "offsets").glob("[0-9]*"), key=_number)
    clocks = [_ended(file.read_text()) for file in offsets]
    assert clocks == [[False, False]] * (len(clocks) - 1) + [[True, True]]
    assert len(clocks) > 5, "three records of a table at a time"
    run(spark, priced(shop), tmp_path)  # it has ended, and stays so
    assert runs == [False, False]
    assert shop.rows("priced_sink", 30) == expected


def test_a_query_over_empty_topics_ends(
    shop: Shop, spark: SparkSession, tmp_path: Path, runs: list[bool]
) -> None:
    fill(shop, 0)
    run(spark, priced(shop), tmp_path)
    assert shop.rows("priced_sink", 0) == Counter()
    assert runs[0] is False


def _number(file: Path) -> int:
    return int(file.name)


def _ended(offsets: str) -> list[bool]:
    """Of each clock."""
    parsed = [json.loads(line) for line in offsets.splitlines()[2:] if line != "-"]
    return [offset["end"] for offset in parsed if isinstance(offset.get("end"), bool)]

"""Topics by a regular expression: found at starts and while the query runs, deleted, read once."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.plan.nodes.walk import scans
from tests.harness.drivers import WAIT_S, Drivers

_SQL = """\
CREATE TABLE orders (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic-pattern' = '{prefix}-orders-[a-z]+',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE payments (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic' = '{prefix}-payments',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE sink (id BIGINT, paid BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-out',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json');
INSERT INTO sink SELECT o.id, p.id FROM orders AS o LEFT JOIN payments AS p
ON o.id = p.id AND o.ts BETWEEN p.ts AND p.ts;
"""


class Orders(Drivers):
    """Orders and payments of the same second are joined; an order without one is padded."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        super().__init__(spark, servers, folder, _SQL)
        self.spark = spark
        self.create("out", "payments", "orders-a", "orders-0")

    def at(self, name: str, *seconds: int) -> None:
        """A record for each second, with its number as id."""
        rows = [{"id": s, "ts": f"2024-01-01 00:00:{s:02}"} for s in seconds]
        self.send(name, rows)

    def joined(self) -> Counter[tuple[int, int | None]]:
        found: Counter[tuple[int, int | None]] = Counter()
        for text, count in self.results().items():
            row = json.loads(text)
            found[row["id"], row["paid"]] += count
        return found

    def delete(self, name: str) -> None:
        self.admin.delete_topics([self.topic(name)])[self.topic(name)].result(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while self.topic(name) in self.admin.list_topics(timeout=WAIT_S).topics:
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def read(self) -> dict[str, int]:
        """The matched topics that the query reads, without their prefix, with their indexes."""
        scan = scans(self.launch.reading)[0]
        return {t.name.removeprefix(f"{self.prefix}-orders-"): t.index for t in scan.topics}


@pytest.fixture
def orders(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Orders]:
    made = Orders(spark, broker.bootstrap_servers, tmp_path)
    yield made
    made.end()


def test_topics_are_found_at_starts_and_while_the_query_runs(orders: Orders) -> None:
    orders.at("orders-a", 1, 2)
    orders.at("payments", 1, 9)
    orders.at("orders-0", 1)  # no name that the expression matches
    orders.driver()
    orders.until(lambda: (1, 1) in orders.joined())
    orders.end()

    # records that were deleted before the topic was found are not lost: they were never its own
    orders.create("orders-b")
    orders.at("orders-b", 3, 4, 5, 6)
    orders.delete_records("orders-b", 2)
    orders.at("orders-a", 9)
    life = orders.driver()
    assert orders.read() == {"a": 2, "b": 3}
    assert any("orders-b" in note for note in orders.launch.notes)
    orders.until_read("orders-b", 4)
    # the watermark of b holds those of a and of the payments back
    orders.until(lambda: (5, None) in orders.joined())
    assert orders.joined() == Counter([(1, 1), (2, None), (5, None), (9, 9)])

    orders.create("orders-c")
    assert orders.launch.has_new_topics()
    life.renew(orders.spark)
    orders.at("orders-c", 7, 9)
    orders.at("orders-b", 8)
    orders.until(lambda: (7, None) in orders.joined())
    assert orders.read() == {"a": 2, "b": 3, "c": 4}
    assert life.restarts.total == 0
    orders.end()

    # the same topics: the checkpoint goes on as it is
    orders.at("orders-c", 10)
    orders.driver()
    orders.until_read("orders-c", 3)
    expected = [(1, 1), (2, None), (5, None), (6, None), (7, None), (9, 9), (9, 9)]
    assert orders.joined() == Counter(expected)


def test_a_deleted_topic_stops_the_job_or_is_left_out(orders: Orders) -> None:
    orders.create("orders-b")
    orders.at("orders-a", 1)
    orders.at("orders-b", 1)
    orders.at("payments", 1)
    orders.driver()
    orders.until(lambda: orders.joined()[1, 1] == 2)
    orders.end()
    orders.delete("orders-b")
    error = orders.refusal()
    assert error.code == "TOPIC_DELETED"
    assert "orders-b" in error.message
    # its watermark holds nothing back any more
    orders.at("orders-a", 2, 9)
    orders.at("payments", 9)
    orders.driver(on_data_loss="continue")
    assert orders.read() == {"a": 2}
    orders.until(lambda: (2, None) in orders.joined())
    orders.end()
    # it comes back, under its old index, and is read from its beginning
    orders.create("orders-b")
    orders.at("orders-b", 9)
    orders.driver(on_data_loss="continue")
    assert orders.read() == {"a": 2, "b": 3}
    orders.until(lambda: orders.joined()[9, 9] == 2)


def test_a_pattern_without_topics_is_named(orders: Orders) -> None:
    orders.sql = orders.sql.replace("[a-z]+", "[A-Z]+")
    error = orders.refusal()
    assert error.code == "TOPIC_MISSING"
    assert "[A-Z]+" in error.message

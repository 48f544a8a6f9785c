"""From which input record the latency of a result counts, and how latencies are counted."""

import base64
import json
from typing import Any

from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from spark_jobs.status import LATENCY_BOUNDS_MS
from tests.harness.gateway import jvm

UNKNOWN_TIME = -(2**63)
KAFKA = "'properties.bootstrap.servers' = 'b:1'"
ORDERS = f"""\
CREATE TABLE orders (id INT, c INT, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'orders', {KAFKA}, 'format' = 'json');
"""
CUSTOMERS = f"""\
CREATE TABLE customers (c INT, name STRING, at TIMESTAMP(3), WATERMARK FOR at AS at,
  PRIMARY KEY (c) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'customers', {KAFKA}, 'key.format' = 'json',
  'value.format' = 'json');
"""
CITIES = f"""\
CREATE TABLE cities (name STRING, city STRING, PRIMARY KEY (name) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'cities', {KAFKA}, 'key.format' = 'json',
  'value.format' = 'json');
"""
SINK = f"""\
CREATE TABLE s (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 's', {KAFKA}, 'key.format' = 'json',
  'value.format' = 'json');
"""


class Query:
    """One INSERT in memory; records are given with their Kafka timestamps."""

    def __init__(self, select: str) -> None:
        package: Any = jvm().org.apache.spark.sql.rejoin
        [planned] = plan(bind(ORDERS + CUSTOMERS + CITIES + SINK + f"INSERT INTO s {select};"))
        described = json.dumps(to_json(planned.root))
        self._run = package.run.LocalRun(described, package.run.Counters())
        self._offset = 0

    def order(self, timestamp_ms: int, id_: int, customer: int, second: int = 0) -> None:
        at = f"2024-01-01 00:00:{second:02}"
        self._feed("orders", timestamp_ms, {}, {"id": id_, "c": customer, "at": at})

    def customer(self, timestamp_ms: int, customer: int, name: str, second: int = 0) -> None:
        at = f"2024-01-01 00:00:{second:02}"
        row = {"c": customer, "name": name, "at": at}
        self._feed("customers", timestamp_ms, {"c": customer}, row)

    def city(self, timestamp_ms: int, name: str) -> None:
        self._feed("cities", timestamp_ms, {"name": name}, {"name": name, "city": "x"})

    def step(self) -> dict[int, int]:
        """The timestamp behind each result, by order."""
        records = json.loads(self._run.step())["records"]
        return {json.loads(base64.b64decode(r["key"]))["id"]: r["recordMs"] for r in records}

    def _feed(self, table: str, timestamp_ms: int, key: object, value: object) -> None:
        self._offset += 1
        record = {
            "partition": 0,
            "offset": self._offset,
            "timestamp": timestamp_ms,
            "key": base64.b64encode(json.dumps(key).encode()).decode(),
            "value": base64.b64encode(json.dumps(value).encode()).decode(),
            "headers": [],
        }
        self._run.feed(table, json.dumps([record]))


def test_without_operators_each_record_is_its_own() -> None:
    query = Query("SELECT id, 'x' FROM orders WHERE id < 9")
    query.order(1_000, 1, 1)
    query.order(900, 2, 1)
    query.order(5_000, 9, 1)
    query.order(-1, 3, 1)
    assert query.step() == {1: 1_000, 2: 900, 3: UNKNOWN_TIME}


def test_the_newest_record_of_the_join_key_counts() -> None:
    query = Query("SELECT o.id, u.name FROM orders AS o LEFT JOIN customers AS u ON o.c = u.c")
    query.order(1_000, 1, 7)
    query.order(2_000, 2, 8)
    assert query.step() == {1: 1_000, 2: 2_000}
    query.customer(3_000, 7, "Ann")
    query.order(3_500, 3, 8)
    # both orders of customer 8 are rows of the key; only the one that is new has a result
    assert query.step() == {1: 3_000, 3: 3_500}
    query.customer(3_900, 8, "Bob")
    query.customer(3_800, 8, "Bob")
    assert query.step() == {2: 3_900, 3: 3_900}


def test_through_two_joins() -> None:
    query = Query(
        "SELECT o.id, x.city FROM orders AS o LEFT JOIN customers AS u ON o.c = u.c"
        " LEFT JOIN cities AS x ON u.name = x.name"
    )
    query.city(500, "Ann")
    query.order(1_000, 1, 7)
    assert query.step() == {1: 1_000}
    query.customer(4_000, 7, "Ann")
    assert query.step() == {1: 4_000}
    query.city(6_000, "Ann")
    query.order(6_500, 2, 9)
    assert query.step() == {2: 6_500}  # the same city again changes nothing


def test_rows_that_time_releases_count_from_what_moved_the_watermark() -> None:
    query = Query(
        "SELECT o.id, u.name FROM orders AS o"
        " LEFT JOIN customers FOR SYSTEM_TIME AS OF o.at AS u ON o.c = u.c"
    )
    query.customer(1_000, 7, "Ann")
    query.order(1_500, 1, 7, second=5)
    assert query.step() == {}
    query.order(8_000, 2, 8, second=9)
    query.customer(9_000, 6, "Cid", second=9)
    found = query.step()
    assert found[1] == 9_000  # no record of its key came: its group has heard of this one


def test_both_languages_have_the_same_bounds() -> None:
    package: Any = jvm().org.apache.spark.sql.rejoin
    assert package.sink.Latencies.BoundsMs().mkString(",") == ",".join(map(str, LATENCY_BOUNDS_MS))

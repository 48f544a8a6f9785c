"""Real-time mode with transactions, stopped amid its epochs again and again: each row comes once.

What is sent, how long epochs and steps are, and when a query is stopped is drawn by a seed. The
expected rows are computed here, from what was sent.
"""

import json
import random
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from tests.harness.real_time import EXACTLY_ONCE, THREADS, TIMED, Job, Row
from tests.harness.shop import PARTITIONS, Shop, text
from tests.harness.spark import spark_session

ROUND_S = 10
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
PAID = "INSERT INTO out_sink SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.id;"
PAID_IN_TIME = """\
INSERT INTO out_sink SELECT o.id, p.amount FROM orders o LEFT JOIN payments p
ON o.id = p.id AND p.`at` BETWEEN o.`at` AND o.`at` + INTERVAL '5' SECOND;
"""
RATED = """\
INSERT INTO out_sink SELECT o.id, r.rate
FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.`at` AS r ON o.currency = r.currency;
"""
COUNTED = """\
INSERT INTO out_sink SELECT o.customer, COUNT(*), SUM(CAST(p.amount AS BIGINT))
FROM orders o JOIN payments p ON o.id = p.id GROUP BY o.customer;
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark"), f"local[{THREADS}]") as session:
        yield session


def at(second: int) -> str:
    return (BEGIN + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%SZ")


class Shape(ABC):
    """A query over two tables, what was sent to them, and its rows so far.

    Rows of one round have one time, and each round reaches all partitions: no row is late.
    """

    tables: tuple[str, str]

    def __init__(self, shop: Shop, rng: random.Random) -> None:
        self.shop, self.rng = shop, rng
        self.sent: tuple[list[Row], list[Row]] = ([], [])

    @abstractmethod
    def sql(self) -> str: ...

    @abstractmethod
    def rows(self, number: int, count: int) -> tuple[list[Row], list[Row]]:
        """So many rows of a round for each table."""

    @abstractmethod
    def expected(self, number: int) -> Counter[str]:
        """The result once the rows of a round are read that reach all partitions."""

    def send(self, number: int, count: int) -> None:
        """Rows in any partition and, in front of them, one in each."""
        for name, sent, made in zip(self.tables, self.sent, self.rows(number, count), strict=True):
            sent += made
            for partition in range(PARTITIONS):
                self.shop.send(name, made[partition::PARTITIONS], partition=partition)

    def result(self, found: Counter[str], message: bytes) -> None:
        """Apply a record of the sink; here it is a row that is appended."""
        found[text(json.loads(message))] += 1


class Interval(Shape):
    """Payments within five seconds; an order without one is padded when time has passed it."""

    tables = ("orders", "payments")

    def sql(self) -> str:
        return (
            self.shop.table("orders", f"id BIGINT, {TIMED}")
            + self.shop.table("payments", f"id BIGINT, amount INT, {TIMED}")
            + self.shop.table("out_sink", "id BIGINT, amount INT", **EXACTLY_ONCE)
            + PAID_IN_TIME
        )

    def rows(self, number: int, count: int) -> tuple[list[Row], list[Row]]:
        first, second = len(self.sent[0]), number * ROUND_S
        ids = range(first, first + count)
        paid = [i for i in ids for _ in range(self.rng.choice((0, 1, 1, 2)))]
        paid += [-1, -2]  # of no order, for each partition
        return (
            [{"id": i, "at": at(second)} for i in ids],
            [{"id": i, "amount": n, "at": at(second + 3)} for n, i in enumerate(paid)],
        )

    def expected(self, number: int) -> Counter[str]:
        orders, payments = self.sent
        amounts: dict[object, list[object]] = {}
        for payment in payments:
            amounts.setdefault(payment["id"], []).append(payment["amount"])
        over = at(number * ROUND_S)
        return Counter(
            text({"id": order["id"], "amount": amount})
            for order in orders
            for amount in amounts.get(order["id"], [None] if str(order["at"]) < over else [])
        )


class Temporal(Shape):
    """The rate at the time of an order: results wait for the time of both tables."""

    tables = ("orders", "rates")
    currencies = ("a", "b", "c")

    def sql(self) -> str:
        rates = f"currency STRING, rate INT, {TIMED}, PRIMARY KEY (currency) NOT ENFORCED"
        return (
            self.shop.table("orders", f"id BIGINT, currency STRING, {TIMED}")
            + self.shop.table("rates", rates, key__format="json", key__fields="currency")
            + self.shop.table("out_sink", "id BIGINT, rate INT", **EXACTLY_ONCE)
            + RATED
        )

    def rows(self, number: int, count: int) -> tuple[list[Row], list[Row]]:
        first, second = len(self.sent[0]), number * ROUND_S
        named = [c for c in self.currencies if self.rng.random() < 0.5]
        rates = [{"currency": c, "rate": 100 * number, "at": at(second)} for c in named]
        others = [{"currency": f"x{p}", "rate": 0, "at": at(second)} for p in range(PARTITIONS)]
        orders: list[Row] = [
            {"id": i, "currency": self.rng.choice(self.currencies), "at": at(second + 1)}
            for i in range(first, first + count)
        ]
        return orders, [*rates, *others]

    def expected(self, number: int) -> Counter[str]:
        orders, rates = self.sent

        def rate(order: Row) -> object:
            known = [
                (str(r["at"]), r["rate"])
                for r in rates
                if r["currency"] == order["currency"] and str(r["at"]) <= str(order["at"])
            ]
            return max(known)[1] if known else None

        over = at(number * ROUND_S)
        return Counter(
            text({"id": o["id"], "rate": rate(o)}) for o in orders if str(o["at"]) < over
        )


class Expiring(Shape):
    """A regular join whose rows have a time to live, which is long."""

    tables = ("orders", "payments")
    ttl = "1 h"

    def sql(self) -> str:
        return (
            f"SET 'table.exec.state.ttl' = '{self.ttl}';\n"
            + self.shop.table("orders", "id BIGINT, customer STRING")
            + self.shop.table("payments", "id BIGINT, amount INT")
            + self.sink()
        )

    def sink(self) -> str:
        return self.shop.table("out_sink", "id BIGINT, amount INT", **EXACTLY_ONCE) + PAID

    def rows(self, number: int, count: int) -> tuple[list[Row], list[Row]]:
        first = len(self.sent[0])
        ids = range(first, first + count)
        orders: list[Row] = [{"id": i, "customer": f"c{self.rng.randrange(5)}"} for i in ids]
        paid = [self.rng.randrange(first + count) for _ in range(count)]  # old orders among them
        amounts = len(self.sent[1])
        return orders, [{"id": i, "amount": amounts + n} for n, i in enumerate(paid)]

    def expected(self, number: int) -> Counter[str]:
        return Counter(text(payment) for payment in self.sent[1])


class Counts(Expiring):
    """An aggregate over the join, whose changes are updates: barriers go through two operators.

    Both without a clock, which cannot meet the rows of an operator in real-time mode.
    """

    ttl = "0"

    def sink(self) -> str:
        columns = "customer STRING, n BIGINT, total BIGINT"
        return (
            self.shop.table("out_sink", columns, value__format="debezium-json", **EXACTLY_ONCE)
            + COUNTED
        )

    def expected(self, number: int) -> Counter[str]:
        customers = {order["id"]: order["customer"] for order in self.sent[0]}
        amounts: dict[object, list[int]] = {}
        for payment in self.sent[1]:
            amount = payment["amount"]
            assert isinstance(amount, int)
            amounts.setdefault(customers[payment["id"]], []).append(amount)
        return Counter(
            text({"customer": customer, "n": len(paid), "total": sum(paid)})
            for customer, paid in amounts.items()
        )

    def result(self, found: Counter[str], message: bytes) -> None:
        """A row is taken back once, and only while it is there."""
        change = json.loads(message)
        if change["before"] is not None:
            assert found[text(change["before"])] == 1, change
            del found[text(change["before"])]
        if change["after"] is not None:
            assert not any(json.loads(r)["customer"] == change["after"]["customer"] for r in found)
            found[text(change["after"])] += 1


class Results:
    """What a read_committed reader has seen of the sink."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.found = shape, Counter[str]()
        servers = {"bootstrap.servers": shape.shop.broker.bootstrap_servers}
        self._consumer = Consumer({**servers, "group.id": uuid.uuid4().hex})
        topic = shape.shop.topic("out_sink")
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])

    def are(self, expected: Counter[str]) -> bool:
        while (message := self._consumer.poll(0.1)) is not None:
            assert message.error() is None
            self.shape.result(self.found, message.value() or b"")
        return self.found == expected


def run(spark: SparkSession, shop: Shop, shape: Shape, rng: random.Random, rounds: int) -> None:
    shop.create(*shape.tables, "out_sink")
    job, results = Job(spark, shop, shape.sql()), Results(shape)
    job.given["rejoin.key-groups"] = "8"
    for number in range(rounds):
        job.given["rejoin.real-time.batch-interval"] = rng.choice(("1 h", "5 s"))
        job.given["rejoin.real-time.commit-interval"] = rng.choice(("10 ms", "50 ms", "1 s"))
        with job.crashes() as running:
            for _ in range(rng.randint(2, 6)):
                shape.send(number, rng.randint(2, 60))
                running.life.poll()
                time.sleep(rng.choice((0, 0.02, 0.3)))
            if rng.random() < 0.5:
                running.until_true(lambda: results.are(shape.expected(number)))  # noqa: B023
    with job.runs() as running:
        shape.send(rounds, 2)
        running.until_true(lambda: results.are(shape.expected(rounds)))
    assert results.are(shape.expected(rounds))


@pytest.mark.parametrize("shape", [Interval, Counts])
def test_each_row_comes_once(
    spark: SparkSession, broker: Broker, tmp_path: Path, shape: type[Shape]
) -> None:
    shop, rng = Shop(broker, tmp_path), random.Random(1)  # noqa: S311
    run(spark, shop, shape(shop, rng), rng, rounds=2)


@pytest.mark.long
@pytest.mark.parametrize("shape", [Interval, Temporal, Expiring, Counts])
def test_each_row_comes_once_in_many_rounds(
    spark: SparkSession, broker: Broker, tmp_path: Path, shape: type[Shape]
) -> None:
    shop, rng = Shop(broker, tmp_path), random.Random(2)  # noqa: S311
    run(spark, shop, shape(shop, rng), rng, rounds=6)

"""Real-time mode beside partitions that are idle: which rows are late, and that no other is lost.

Rows of one round have one time, each round a later one. So by the rule of docs/semantics.md a row
is late only where a case says so, however slowly a machine reads.

Event time stands still where all partitions are idle. So while a case waits, one partition gets a
row again and again, which changes no result.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.kernel.calls import Kernel
from tests.harness.real_time import (
    EXACTLY_ONCE,
    THREADS,
    TIMED,
    UPSERTS,
    Job,
    Reader,
    Row,
    at,
    texts,
)
from tests.harness.shop import Shop, wait_until
from tests.harness.spark import spark_session

IDLE_S = 5
RATED = """\
INSERT INTO priced SELECT o.id, r.rate
FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.`at` AS r ON o.currency = r.currency;
"""
PAID = """\
INSERT INTO paid SELECT o.id, p.amount FROM orders o LEFT JOIN payments p ON o.id = p.id
AND p.`at` BETWEEN o.`at` AND o.`at` + INTERVAL '5' SECOND;
"""
SHORT_EPOCHS = """\
SET 'rejoin.mode' = 'real-time';
SET 'rejoin.real-time.batch-interval' = '10 s';
SET 'rejoin.real-time.warm-up-epochs' = '5';
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark"), f"local[{THREADS}]") as session:
        yield session


@pytest.fixture(
    params=[{}, pytest.param(EXACTLY_ONCE, marks=pytest.mark.long)],
    ids=["at-least-once", "exactly-once"],
)
def shop(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Shop:
    return Shop(broker, tmp_path, delivery=request.param)


def grow(shop: Shop, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": shop.broker.bootstrap_servers})
    for made in admin.create_partitions([NewPartitions(shop.topic(name), partitions)]).values():
        made.result(30)


def rated(shop: Shop) -> str:
    """Orders of four partitions and the rates of their times; of the rates one has no record."""
    shop.create("orders", partitions=4)
    shop.create("rates", "priced")
    idle = {"scan__watermark__idle_timeout": f"{IDLE_S} s"}
    rates = f"currency STRING, rate INT, {TIMED}, PRIMARY KEY (currency) NOT ENFORCED"
    return (
        shop.table("orders", f"id BIGINT, currency STRING, {TIMED}", **idle)
        + shop.table("rates", rates, "upsert-kafka", **idle)
        + shop.table("priced", UPSERTS.format(column="rate INT"), "upsert-kafka", **shop.delivery)
        + RATED
    )


def send_rate(shop: Shop, rate: int, second: int) -> None:
    row: Row = {"currency": "EUR", "rate": rate, "at": at(second)}
    shop.send("rates", [row], key="currency", partition=0)


def send_orders(shop: Shop, ids: range, second: int, partition: int) -> None:
    rows: list[Row] = [{"id": i, "currency": "EUR", "at": at(second)} for i in ids]
    shop.send("orders", rows, partition=partition)


def priced(ids: range, rate: int) -> list[Row]:
    return [{"id": i, "rate": rate} for i in ids]


def late_rows(spark: SparkSession, query: str) -> int:
    operators = Kernel.of(spark).counters(spark).of(query)["operators"]
    return sum(levels["late"] for levels in operators.values())


@pytest.mark.parametrize("parallelism", ["2", "3"], ids=["one reader", "two readers of two each"])
def test_a_partition_is_not_idle_while_nobody_reads_it(
    spark: SparkSession, shop: Shop, parallelism: str
) -> None:
    """What waits in Kafka when a job starts is on time, however far other partitions are.

    Once its partition is idle, a row behind the watermark of the others is late, and counted.
    """
    job, reader = Job(spark, shop, rated(shop)), Reader(shop, "priced")
    job.given["rejoin.parallelism"] = parallelism
    with job.runs() as running:
        send_rate(shop, 7, 0)
        for partition in range(4):
            send_orders(shop, range(partition, partition + 1), 1, partition)
            send_orders(shop, range(10 + partition, 11 + partition), 2, partition)
        send_rate(shop, 8, 5)
        first = priced(range(4), 7)
        running.until(reader, first, lambda: send_orders(shop, range(10, 11), 2, 0))
    stopped = time.monotonic()
    send_orders(shop, range(100, 101), 30, 0)
    for partition in (1, 2, 3):
        send_orders(shop, range(100 + 10 * partition, 105 + 10 * partition), 10, partition)
    send_rate(shop, 9, 40)
    while time.monotonic() < stopped + IDLE_S:
        time.sleep(0.1)
    on_time = first + priced(range(10, 14), 7)
    for partition in (1, 2, 3):
        on_time += priced(range(100 + 10 * partition, 105 + 10 * partition), 8)
    with job.runs() as running:
        running.until(reader, on_time, lambda: send_orders(shop, range(100, 101), 30, 0))
        send_orders(shop, range(200, 203), 20, 1)  # behind second 30, of which the others are
        last = [*on_time, *priced(range(100, 101), 8)]
        running.until(reader, last, lambda: send_orders(shop, range(300, 301), 35, 0))
    assert late_rows(spark, job.name) == 3


def test_a_query_of_a_name_that_was_there_before_begins_with_short_epochs(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Two jobs of one session, one after the other, each with a checkpoint of its own."""
    for folder in ("one", "two"):
        shop = Shop(broker, tmp_path / folder)
        job = Job(spark, shop, rated(shop), **{"rejoin.real-time.warm-up-epochs": "3"})
        job.name = "same"
        with job.runs() as running:
            running.until_committed(3)


def payments_job(shop: Shop) -> str:
    shop.create("orders", partitions=3)
    shop.create("payments", "paid")
    idle = {"scan__watermark__idle_timeout": f"{IDLE_S} s"}
    return (
        SHORT_EPOCHS
        + shop.table("orders", f"id BIGINT, {TIMED}", **idle)
        + shop.table("payments", f"id BIGINT, amount INT, {TIMED}", **idle)
        + shop.table("paid", UPSERTS.format(column="amount INT"), "upsert-kafka", **shop.delivery)
        + PAID
    )


class Rounds:
    """Orders and their payments, round by round, and the join of what was sent."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.second: dict[int, int] = {}  # of each order
        self.amounts: dict[int, int] = {}

    def send(self, round_: int, partitions: tuple[int, ...], *, paid: bool = True) -> None:
        """Ten orders in each of these partitions; a third of them is not paid."""
        second = 10 * round_
        for partition in partitions:
            ids = range(1000 * round_ + 100 * partition, 1000 * round_ + 100 * partition + 10)
            orders: list[Row] = [{"id": i, "at": at(second)} for i in ids]
            self.shop.send("orders", orders, partition=partition)
            self.second.update(dict.fromkeys(ids, second))
            amounts = {i: 10 * i for i in ids if paid and i % 3}
            payments: list[Row] = [
                {"id": i, "amount": n, "at": at(second + 3)} for i, n in amounts.items()
            ]
            self.shop.send("payments", payments, partition=0)
            self.amounts |= amounts

    def repeat(self, round_: int) -> None:
        """Send an order of the round again."""
        row: Row = {"id": 1000 * round_, "at": at(10 * round_)}
        self.shop.send("orders", [row], partition=0)

    def expected(self, round_: int) -> list[str]:
        """The results once all of this round is read: paddings are those of the rounds before."""
        return texts(
            [
                {"id": i, "amount": self.amounts.get(i)}
                for i, second in self.second.items()
                if i in self.amounts or second < 10 * round_
            ]
        )


def test_rounds_of_short_epochs_beside_idle_and_new_partitions_and_a_crash(shop: Shop) -> None:
    """One partition of each table never has a record; others wake late, or are added."""
    sql, rounds, reader = payments_job(shop), Rounds(shop), Reader(shop, "paid")
    child = shop.start(sql)

    def wait_for(round_: int) -> None:
        def is_there() -> bool:
            rounds.repeat(round_)
            return reader.read() == rounds.expected(round_)

        wait_until(is_there, child)

    rounds.send(0, (0,))
    wait_for(0)
    rounds.send(1, (0, 1), paid=False)  # the second partition wakes, and payments are silent
    wait_for(1)
    grow(shop, "orders", 4)
    rounds.send(2, (3, 1, 0))
    wait_for(2)
    rounds.send(3, (0, 1, 3))  # read or not, written or not
    child.kill()
    rounds.send(4, (0,))
    child = shop.start(sql)
    wait_for(4)
    rounds.send(5, (0, 1))
    wait_for(5)
    child.stop(60.0)
    assert child.exit_code == 0, child.log_tail(40)

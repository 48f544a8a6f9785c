"""Real-time mode with transactions: results are committed within the epoch, and each of them once.

Epochs are long, from the first one on: what is killed here is always amid one.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import StateError
from tests.harness.real_time import EXACTLY_ONCE, THREADS, UPSERTS, Job, Reader, Running
from tests.harness.shop import (
    PARTITIONS,
    Shop,
    orders,
    paid,
    payments,
    payments_job,
    text,
    wait_until,
)
from tests.harness.spark import spark_session

REAL_TIME = """\
SET 'rejoin.mode' = 'real-time';
SET 'rejoin.real-time.batch-interval' = '1 h';
SET 'rejoin.real-time.warm-up-epochs' = '0';
"""


NAMED = """\
INSERT INTO named SELECT g.id, g.item, n.name FROM goods g LEFT JOIN names n ON g.id = n.id;
"""


class Paid:
    """What a read_committed reader of the append topic has seen so far."""

    def __init__(self, shop: Shop) -> None:
        servers = {"bootstrap.servers": shop.broker.bootstrap_servers}
        self._consumer = Consumer({**servers, "group.id": uuid.uuid4().hex})
        topic = shop.topic("paid_sink")
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        self.rows = Counter[str]()

    def has(self, expected: Counter[str]) -> bool:
        """Whether each of these rows has come; no row may have come too often or be another one."""
        while (message := self._consumer.poll(0.1)) is not None:
            assert message.error() is None
            self.rows[text(json.loads(message.value()))] += 1
        assert self.rows <= expected, self.rows - expected
        return self.rows == expected


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Shop:
    made = Shop(broker, tmp_path)
    made.create("orders", "payments", "paid_sink")
    return made


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark"), f"local[{THREADS}]") as session:
        yield session


def send(shop: Shop, start: int, end: int) -> None:
    shop.send("orders", orders(start, end))
    shop.send("payments", payments(start, end))


def test_a_job_that_is_killed_again_and_again_writes_each_row_once(shop: Shop) -> None:
    """All in the first epoch: nothing but barriers tells what was committed."""
    sql = REAL_TIME + payments_job(shop, bounded=False, **EXACTLY_ONCE)
    found = Paid(shop)
    for start in (0, 800, 1600):
        child = shop.start(sql)
        for end in (start + 200, start + 400, start + 600):
            send(shop, end - 200, end)
            wait_until(partial(found.has, paid(0, end)), child)
        send(shop, start + 600, start + 800)  # amid these it is killed
        child.kill()
        assert not list(shop.folder.glob("checkpoint/*/commits/0"))
    child = shop.start(sql)
    wait_until(partial(found.has, paid(0, 2400)), child)
    child.stop(grace_s=60)
    assert found.has(paid(0, 2400))


def test_a_query_that_fails_goes_on_amid_its_epoch(spark: SparkSession, shop: Shop) -> None:
    """In the same driver, with tasks that may linger; then micro-batches, and real-time mode."""
    job, found = Job(spark, shop, payments_job(shop, bounded=False, **EXACTLY_ONCE)), Paid(shop)

    def until_written(running: Running, sent: int) -> None:
        running.until_true(partial(found.has, paid(0, sent)))

    for failures in range(1, 4):
        with job.crashes() as running:
            send(shop, 100 * failures - 100, 100 * failures)
            until_written(running, 100 * failures)
            assert running.epochs == 0
    query = job.open("micro-batch")
    assert query.folder.begun_epoch() == 0  # a rescale asks for it, too
    with pytest.raises(StateError, match="REAL_TIME_EPOCH_OPEN"):
        query.life().poll()
    query.folder.unlock()
    for end, mode in ((400, "real-time"), (500, "micro-batch"), (600, "real-time")):
        with job.runs(mode) as running:
            send(shop, end - 100, end)
            until_written(running, end)


def test_an_epoch_that_all_have_written_is_repeated_without_a_result(
    spark: SparkSession, shop: Shop
) -> None:
    """A driver dies when the offsets of its epoch are in Spark's log, and its commit is not."""
    job, found = Job(spark, shop, payments_job(shop, bounded=False, **EXACTLY_ONCE)), Paid(shop)
    for sent in (100, 200):
        with job.runs() as running:
            send(shop, sent - 100, sent)
            running.until_true(partial(found.has, paid(0, sent)))
        folder = Path(running.query.folder.path)
        last = running.epochs - 1
        assert (folder / "offsets" / str(last)).exists()
        (folder / "commits" / str(last)).unlink()
    with job.runs() as running:
        send(shop, 200, 300)
        running.until_true(partial(found.has, paid(0, 300)))
        assert running.epochs == last + 1  # the repeated one ended where it had
    assert found.has(paid(0, 300))


def test_updates_and_deletions_are_committed_within_the_epoch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    shop = Shop(broker, tmp_path)
    shop.create("goods", "names", "named")
    job = Job(
        spark,
        shop,
        shop.table("goods", UPSERTS.format(column="item STRING"), "upsert-kafka")
        + shop.table("names", UPSERTS.format(column="name STRING"), "upsert-kafka")
        + shop.table(
            "named",
            UPSERTS.format(column="item STRING, name STRING"),
            "upsert-kafka",
            **EXACTLY_ONCE,
        )
        + NAMED,
    )
    reader = Reader(shop, "named")
    with job.runs() as running:
        shop.send("goods", [{"id": i, "item": f"item {i}"} for i in range(50)], key="id")
        shop.send("names", [{"id": i, "name": f"name {i}"} for i in range(0, 50, 2)], key="id")
        names = {i: f"name {i}" for i in range(0, 50, 2)}
        running.until(
            reader, [{"id": i, "item": f"item {i}", "name": names.get(i)} for i in range(50)]
        )
        shop.delete("goods", "id", [1, 2])
        shop.delete("names", "id", [4])
        del names[4]
        expected = [
            {"id": i, "item": f"item {i}", "name": names.get(i)}
            for i in range(50)
            if i not in (1, 2)
        ]
        running.until(reader, expected)
        assert running.epochs == 0

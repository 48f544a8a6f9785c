"""A query in real-time mode in the session of the tests, and readers of what it writes."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import OpenQuery, open_query
from spark_jobs.driver.query_life import QueryLife, stop_queries
from spark_jobs.kernel.calls import Kernel
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind
from tests.harness.shop import PARTITIONS, Shop

WITHIN_S = 120.0
THREADS = 16
Row = dict[str, object]

UPSERTS = "id BIGINT, {column}, PRIMARY KEY (id) NOT ENFORCED"
EXACTLY_ONCE = {"sink__delivery_guarantee": "exactly-once"}
TIMED = "`at` TIMESTAMP_LTZ(3), WATERMARK FOR `at` AS `at` - INTERVAL '0.001' SECOND"


class Job:
    """A job of one query in this session; `sql` comes without settings."""

    def __init__(self, spark: SparkSession, shop: Shop, sql: str, **given: str) -> None:
        self.spark, self.shop, self.sql = spark, shop, sql
        self.given = {
            "rejoin.real-time.batch-interval": "1 min",
            "rejoin.real-time.warm-up-epochs": "0",
            **given,
        }
        self.name = f"q{uuid.uuid4().hex[:6]}"

    def open(self, mode: str) -> OpenQuery:
        given = {"rejoin.mode": mode, "rejoin.parallelism": "2", **self.given}
        given["rejoin.checkpoint"] = str(self.shop.folder / "checkpoint")
        overrides = Overrides(status_dir=self.shop.folder / "status", master=f"local[{THREADS}]")
        settings = job_settings(declared_settings(given), "job", overrides, read_environment())
        text = "".join(f"SET '{k}' = '{v}';\n" for k, v in given.items()) + self.sql
        root = plan(bind(text, "job.sql"))[0].root
        assert isinstance(root, KafkaSink)
        return open_query(self.spark, self.name, root, settings)

    @contextmanager
    def runs(self, mode: str = "real-time") -> Iterator["Running"]:
        """Until the end of the block, which is a graceful stop."""
        with self._started(mode) as running:
            try:
                yield running
            finally:
                stop_queries(self.spark, [running.life], wait_s=60)

    @contextmanager
    def crashes(self, mode: str = "real-time") -> Iterator["Running"]:
        """Until the end of the block, amid the running epoch."""
        with self._started(mode) as running:
            try:
                yield running
            finally:
                assert running.life.query is not None
                running.life.query.stop()

    @contextmanager
    def _started(self, mode: str) -> Iterator["Running"]:
        Kernel.of(self.spark).open_gate()
        query = self.open(mode)
        life = query.life()
        try:
            life.poll()
            yield Running(query, life)
        finally:
            query.folder.unlock()
        query.ownership.release()


class Running:
    """A job that runs."""

    def __init__(self, query: OpenQuery, life: QueryLife) -> None:
        self.query, self.life = query, life

    def until(
        self,
        reader: "Reader",
        expected: Sequence[Row],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Wait until these are the rows that a reader has folded."""
        wanted, deadline = texts(expected), time.monotonic() + WITHIN_S
        while (found := reader.read()) != wanted:
            meanwhile()
            self.life.poll()
            assert self.life.failure is None, self.life.failure
            if time.monotonic() > deadline:
                assert found == wanted, found
            time.sleep(0.1)

    def until_committed(self, epochs: int) -> None:
        """Wait until so many epochs are committed."""
        self.until_true(lambda: self.epochs >= epochs)

    def until_true(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            self.life.poll()
            assert self.life.failure is None, self.life.failure
            assert time.monotonic() < deadline
            time.sleep(0.1)

    @property
    def epochs(self) -> int:
        """How many epochs are committed."""
        return self.query.folder.next_epoch


class Reader:
    """Folds a topic by record key, as a table of its newest rows, and counts what it reads."""

    def __init__(self, shop: Shop, name: str, isolation: str = "read_committed") -> None:
        servers = {"bootstrap.servers": shop.broker.bootstrap_servers}
        self._consumer = Consumer(
            {**servers, "group.id": uuid.uuid4().hex, "isolation.level": isolation}
        )
        topic = shop.topic(name)
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        self.rows: dict[bytes | None, Row] = {}
        self.seen = 0

    def read(self) -> list[str]:
        while (message := self._consumer.poll(0.1)) is not None:
            assert message.error() is None
            value = message.value()
            self.seen += 1
            if value is None:
                self.rows.pop(message.key(), None)
            else:
                self.rows[message.key()] = json.loads(value)
        return texts(list(self.rows.values()))


def texts(rows: Sequence[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def at(second: int) -> str:
    return f"2024-01-01 12:00:{second:02}Z"

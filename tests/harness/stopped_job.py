"""A job of several queries and operators that is stopped and goes on: its records and results."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

import rejoin
from spark_jobs.checkpoint.rescale import Progress, rescale
from spark_jobs.driver.queries import sinks_of
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind
from spark_jobs.streaming.manifest import MANIFEST, Manifest

WITHIN_S = 240.0
TABLES = """\
CREATE TABLE customers (id INT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{p}-customers', {servers},
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE orders (order_id INT, customer_id INT, amount INT) WITH (
  'connector' = 'kafka', 'topic' = '{p}-orders', {servers},
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE named (order_id INT, name STRING, PRIMARY KEY (order_id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{p}-named', {servers},
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE sums (city STRING, n BIGINT, total INT, PRIMARY KEY (city) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{p}-sums', {servers},
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE feed (order_id INT, word STRING) WITH (
  'connector' = 'kafka', 'topic' = '{p}-feed', {servers}, 'format' = 'changelog-json');
INSERT INTO named
SELECT o.order_id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer_id = c.id;
INSERT INTO sums
SELECT c.city, COUNT(*), SUM(o.amount) FROM orders AS o JOIN customers AS c
ON o.customer_id = c.id GROUP BY c.city;
INSERT INTO feed
SELECT o.order_id, c.name FROM orders AS o JOIN customers AS c ON o.customer_id = c.id
UNION ALL SELECT order_id, 'seen' FROM orders;
"""
OPERATORS = 5  # a join each, the aggregate, and a materialiser or normaliser
QUERIES = ("named", "sums", "feed")


class StoppedJob:
    """The job, its records, and what a reader of its sinks has to see."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self.spark, self.folder, self.servers = spark, folder, servers
        self.prefix = f"shop-{uuid.uuid4().hex[:8]}"
        self.checkpoint = folder / "checkpoint"
        self.customers: dict[int, tuple[str, str]] = {}
        self.orders: dict[int, tuple[int, int]] = {}
        self.said: list[str] = []
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [self.topic(n) for n in ("customers", "orders", *QUERIES)]
        for made in admin.create_topics([NewTopic(t, 1, 1) for t in topics]).values():
            made.result(30)
        self._producer = Producer({"enable.idempotence": True, "bootstrap.servers": servers})

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def sql(self, tasks: int | None) -> str:
        servers = f"'properties.bootstrap.servers' = '{self.servers}'"
        name = f"SET 'pipeline.name' = '{self.prefix}';\n"
        number = "" if tasks is None else f"SET 'rejoin.parallelism' = '{tasks}';\n"
        return name + number + TABLES.format(p=self.prefix, servers=servers)

    def customer(self, id_: int, name: str | None, city: str = "") -> None:
        self.customers.pop(id_, None)
        row = {"id": id_, "name": name, "city": city}
        if name is not None:
            self.customers[id_] = (name, city)
        value = None if name is None else json.dumps(row).encode()
        self._producer.produce(self.topic("customers"), value, json.dumps({"id": id_}).encode())

    def order(self, *ids: int) -> None:
        for id_ in ids:
            self.orders[id_] = (id_ % 8, id_ * 3)
            row = {"order_id": id_, "customer_id": id_ % 8, "amount": id_ * 3}
            self._producer.produce(self.topic("orders"), json.dumps(row).encode())

    def run(self, tasks: int | None) -> list[str]:
        """Run until the sinks have what they should, stop gracefully; returns what it said."""
        assert self._producer.flush(30) == 0
        log = self.folder / "progress.log"
        job = rejoin.Job.from_sql(self.sql(tasks))
        with log.open("w") as progress:
            running = job.start(
                self.spark,
                checkpoint=str(self.checkpoint),
                status_dir=self.folder / "status",
                progress=progress,
            )
            with running:
                self._until(lambda: self.seen() == self.expected(), running)
            assert running.exception is None
        return log.read_text().splitlines()

    def rescale(self, tasks: int, stated: int = 2) -> list[Progress]:
        bound = bind(self.sql(stated), "shop.sql")
        overrides = Overrides(checkpoint=str(self.checkpoint), status_dir=self.folder / "status")
        settings = job_settings(bound.settings, "shop", overrides, read_environment())
        shown: list[Progress] = []
        rescale(self.spark, sinks_of(plan(bound)), settings, tasks, shown.append, self.said.append)
        return shown

    def move(self, query: str, tasks: int) -> None:
        """What Spark does for a rescale of one query."""
        manager = self.spark._streamingCheckpointManager
        manager.repartition(str(self.checkpoint / query), tasks)

    def parallelism(self) -> set[int]:
        texts = [(self.checkpoint / q / MANIFEST).read_text() for q in QUERIES]
        return {Manifest.model_validate_json(text).parallelism for text in texts}

    def next_epochs(self) -> dict[str, int]:
        folders = {q: self.checkpoint / q / "commits" for q in QUERIES}
        return {
            query: 1 + max(int(file.name) for file in folder.iterdir() if file.name.isdigit())
            for query, folder in folders.items()
        }

    def expected(self) -> dict[str, Counter[str]]:
        named = {o: self.customers.get(c, (None, ""))[0] for o, (c, _) in self.orders.items()}
        by_city: dict[str, list[int]] = {}
        for customer, amount in self.orders.values():
            if customer in self.customers:
                by_city.setdefault(self.customers[customer][1], []).append(amount)
        joined = [(o, name) for o, name in named.items() if name is not None]
        return {
            "named": Counter(f"{o} {name}" for o, name in named.items()),
            "sums": Counter(f"{c} {len(all_)} {sum(all_)}" for c, all_ in by_city.items()),
            "feed": Counter([f"{o} {w}" for o, w in [*joined, *((o, "seen") for o in named)]]),
        }

    def seen(self) -> dict[str, Counter[str]]:
        """The rows that a read_committed reader folds."""
        feed: Counter[str] = Counter()
        for _, value in self.log("feed"):
            change = json.loads(value or b"")
            feed[_text(change["data"])] += 1 if change["op"] in ("+I", "+U") else -1
        assert all(n in (0, 1) for n in feed.values()), feed
        return {"named": self._upserts("named"), "sums": self._upserts("sums"), "feed": +feed}

    def _upserts(self, name: str) -> Counter[str]:
        rows = dict(self.log(name))
        return Counter(_text(json.loads(value)) for value in rows.values() if value is not None)

    def log(self, name: str) -> list[tuple[bytes | None, bytes | None]]:
        """All committed records of a sink."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topic(name), 0, 0)])
        found = []
        while (message := consumer.poll(WITHIN_S)) is not None and message.error() is None:
            found.append((message.key(), message.value()))
        consumer.close()
        return found

    def _until(self, done: Callable[[], bool], running: rejoin.RunningJob) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not done():
            running.await_termination(0.5)
            assert time.monotonic() < deadline, (self.seen(), self.expected())


def _text(row: dict[str, object]) -> str:
    return " ".join(str(value) for value in row.values())

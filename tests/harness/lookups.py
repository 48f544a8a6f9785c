"""A lookup join through a broker and a database: one job, what it is fed, and what it writes."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.driver.launch import OpenQuery, open_query
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.embedded.broker import Broker
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.scenario.records import Record
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind
from tests.harness.bounded import create_topics, produce, read_committed

WAIT_S = 90.0
LOGIN = "'username' = 'postgres', 'password' = '${env:HOME}'"  # nobody asks for it here
APPENDS = "'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset'"
CUSTOMERS = "id INT, name STRING"
NAMES = "SELECT o.id, d.name FROM o LEFT JOIN d FOR SYSTEM_TIME AS OF o.t AS d ON o.c = d.id"


Finding: TypeAlias = dict[str, Any]


def lookup_codes(findings: Sequence[Finding]) -> list[str]:
    return [f["code"] for f in findings if f["code"].startswith("LOOKUP")]


class Database(Protocol):
    """A server with the database `shop`, in which a job looks rows up."""

    @property
    def url(self) -> str: ...

    def execute(self, *statements: str) -> None: ...


class Stage:
    """One job over topics of its own: left rows in, what the sink has out."""

    def __init__(self, spark: SparkSession, broker: Broker, database: Database, home: Path) -> None:
        self.spark, self.servers, self.database, self.home = (
            spark,
            broker.bootstrap_servers,
            database,
            home,
        )
        self.open: OpenQuery | None = None
        self.prefix = f"lookup-{uuid.uuid4().hex[:8]}-"
        create_topics(self.servers, [self.topic("o"), self.topic("out")], 2)

    def topic(self, name: str) -> str:
        return self.prefix + name

    def execute(self, *statements: str) -> None:
        self.database.execute(*statements)

    def sql(self, left: str, table: str, options: str, out: str, query: str) -> str:
        """A job; `left` is what the left table has besides a processing time `t`."""
        kafka = f"'properties.bootstrap.servers' = '{self.servers}'"
        columns, _, kind = left.partition(" WITH ")
        columns, _, key = columns.partition(", PRIMARY")
        key = f", PRIMARY{key}" if key else ""
        reads = kind or APPENDS
        return f"""
CREATE TABLE o ({columns}, t AS PROCTIME(){key})
WITH ({reads}, 'topic' = '{self.topic("o")}', {kafka});
CREATE TABLE d ({table}) WITH ('connector' = 'jdbc', 'url' = '{self.database.url}', {options});
CREATE TABLE out ({out}) WITH ('connector' = 'kafka', 'topic' = '{self.topic("out")}',
  'format' = 'changelog-json', {kafka});
INSERT INTO out {query};"""

    def feed(self, *rows: Mapping[str, object]) -> None:
        values = ((self.topic("o"), Record(None, json.dumps(dict(row)).encode())) for row in rows)
        produce(self.servers, values)

    def feed_at_once(self, *rows: Mapping[str, object]) -> None:
        """In one transaction and one partition, so that one epoch reads all of them."""
        topic = self.topic("o")
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": topic})
        producer.init_transactions(30)
        producer.begin_transaction()
        for row in rows:
            producer.produce(topic, json.dumps(dict(row)).encode(), partition=0)
        producer.commit_transaction(30)

    def upsert(self, **row: object) -> None:
        key = json.dumps({"id": row["id"]}).encode()
        produce(self.servers, [(self.topic("o"), Record(key, json.dumps(row).encode()))])

    def last_committed(self) -> int | None:
        """The number of the last epoch that Spark has committed."""
        commits = (self.home / "checkpoint" / "q" / "commits").glob("[0-9]*")
        return max((int(file.name) for file in commits), default=None)

    def forget_last_commit(self) -> None:
        """As if the driver had died before it; the sink has what the epoch wrote."""
        last = self.last_committed()
        query = self.home / "checkpoint" / "q"
        assert str(last) in self.logged(), "the last epoch has looked nothing up"
        (query / "commits" / str(last)).unlink()
        (query / "commits" / f".{last}.crc").unlink(missing_ok=True)

    def logged(self) -> list[str]:
        """Epochs of which the checkpoint has what was looked up."""
        kept = (self.home / "checkpoint" / "q" / "lookups").rglob("[0-9]*")
        return [file.name for file in kept if file.is_file()]

    def results(self) -> list[tuple[object, ...]]:
        """What the sink has: row kind and columns of each record."""
        found = [
            json.loads(r.value or b"") for r in read_committed(self.servers, self.topic("out"), 2)
        ]
        return [(record["op"], *record["data"].values()) for record in found]

    def checked(self, options: str) -> tuple[int, list[Finding]]:
        """The exit code of `rejoin check`, and what it finds of the table that `options` name."""
        job = self.home / "job.sql"
        sql = self.sql("id INT, c INT", CUSTOMERS, options, "id INT, name STRING", NAMES)
        job.write_text(sql, encoding="utf-8")
        result = CliRunner().invoke(app, ["check", str(job), "--json"])
        findings = [json.loads(line) for line in result.stdout.splitlines()]
        return result.exit_code, [f for f in findings if f["about"].startswith("table d")]

    def _opened(self, sql: str) -> OpenQuery:
        planned = plan(bind(f"SET 'rejoin.key-groups' = '8';{sql}"))[0]
        assert isinstance(planned.root, KafkaSink)
        given = {
            "rejoin.parallelism": "2",
            "rejoin.checkpoint": str(self.home / "checkpoint"),
            "rejoin.key-groups": "8",
        }
        overrides = Overrides()
        settings = job_settings(declared_settings(given), "lookup", overrides, read_environment())
        return open_query(self.spark, "q", planned.root, settings)

    @contextmanager
    def running(self, sql: str) -> Iterator[QueryLife]:
        self.open = self.open or self._opened(sql)
        life = self.open.life()
        life.poll()
        try:
            yield life
        finally:
            if life.query is not None:
                life.query.stop()

    def wait(
        self, life: QueryLife, is_there: Callable[[list[tuple[object, ...]]], bool]
    ) -> list[tuple[object, ...]]:
        deadline = time.monotonic() + WAIT_S
        while not is_there(found := self.results()):
            assert time.monotonic() < deadline, found
            life.poll()
        return found


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)

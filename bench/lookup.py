"""`python -m bench.lookup`: a lookup join at a fixed rate of probes against a database.

For `--seconds`, probes arrive at `--rate`; each looks up one of `--rows` customers, mostly those of
a hot share. Once without a cache, once with one. Every probe must come out once, with its
customer's name; then the latency from a probe to its committed result is printed, with what the
database was asked and the processor time of the driver and of the server. Run it by hand on an idle
machine.
"""

import argparse
import json
import random
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.folders import work_folder
from bench.load import create_topics
from bench.measure import BenchError, process_tree, processor_s, stop_tree
from bench.turns import say
from bench.workloads.records import PARTITIONS
from service.trends import quantile_s
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.status import LookupStatus, QueryStatus, read_status
from tests.e2e import postgres
from tests.e2e.postgres import Postgres
from tests.harness import mariadb
from tests.harness.mariadb import MariaDb

_CACHE = "'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '100000', "
_JOB = """\
SET 'rejoin.parallelism' = '2';
CREATE TABLE probes (id BIGINT, customer BIGINT, t AS PROCTIME()) WITH ('connector' = 'kafka',
  'topic' = 'probes-{run}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '{servers}');
CREATE TABLE customers (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = '{url}', {cache}
  'table-name' = 'customers', 'username' = '{user}', 'password' = '${{env:BENCH_PASSWORD}}');
CREATE TABLE named (id BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'named-{run}',
  'format' = 'json', 'properties.bootstrap.servers' = '{servers}');
INSERT INTO named SELECT p.id, c.name FROM probes AS p
  LEFT JOIN customers FOR SYSTEM_TIME AS OF p.t AS c ON p.customer = c.id;
"""
_NUMBERED = {
    "postgres": "SELECT n, 'customer ' || n FROM generate_series(0, {last}) AS n",
    "mariadb": "SELECT seq, CONCAT('customer ', seq) FROM seq_0_to_{last}",
}
_ANALYSE = {"postgres": "ANALYZE customers", "mariadb": "ANALYZE TABLE customers"}
_HOT_SHARE, _HOT_ROWS = 0.9, 0.01  # nine tenths of the probes ask for a hundredth of the rows
_WARM_UP = 1_000
_PATIENCE_S = 240.0
_STEP_S = 0.02


@dataclass(frozen=True, slots=True)
class Probes:
    """Which customer each probe asks for, the same in every run."""

    rows: int
    total: int

    def __iter__(self) -> Iterator[tuple[int, int]]:
        drawn = random.Random(1)  # noqa: S311
        hot = max(int(self.rows * _HOT_ROWS), 1)
        for number in range(self.total):
            among = hot if drawn.random() < _HOT_SHARE else self.rows
            yield number, drawn.randrange(among)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run has cost since its warm-up, at whose end the status was `warm`.

    `offered` is the rate at which the producer really sent.
    """

    offered: float
    warm: QueryStatus
    status: QueryStatus
    driver_s: float
    server_s: float

    def lines(self, name: str, total: int) -> list[str]:
        before, after = self.warm.latency.counts, self.status.latency.counts
        latency = {bound: count - before.get(bound, 0) for bound, count in after.items()}
        p50, p99 = (quantile_s(latency, share) or 0.0 for share in (0.5, 0.99))
        was, now = (_lookups(status) for status in (self.warm, self.status))
        return [
            f"{name}: {total:,} probes at {self.offered:,.0f}/s, p50 {p50:.2f} s, p99 {p99:.2f} s",
            f"  {now.keys_asked - was.keys_asked:,} keys asked in {now.queries - was.queries:,} "
            f"queries, {now.keys_cached - was.keys_cached:,} cached; tasks waited "
            f"{(now.waited_ms - was.waited_ms) / 1000:.1f} s",
            f"  processor time: driver {self.driver_s:.1f} s, database {self.server_s:.1f} s",
        ]


@dataclass(slots=True)
class Run:
    """One driver over topics of its own."""

    servers: str
    database: Postgres | MariaDb
    folder: Path
    name: str
    cache: str

    def measure(self, probes: Probes, rate: int) -> Figures:
        create_topics(self.servers, [f"probes-{self.name}", f"named-{self.name}"])
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        rest = iter(probes)
        with self._driver() as driver:
            self._send(producer, rest, _WARM_UP, _WARM_UP)
            warm = self._wait(driver, _WARM_UP)  # the driver is up, the classes are loaded
            before = self._processor_s(driver)
            started = time.monotonic()
            self._send(producer, rest, probes.total - _WARM_UP, rate)
            seconds = time.monotonic() - started
            status = self._wait(driver, probes.total)
            after = self._processor_s(driver)
            self._verify(probes)
        spent = [b - a for a, b in zip(before, after, strict=True)]
        return Figures((probes.total - _WARM_UP) / seconds, warm, status, *spent)

    @contextmanager
    def _driver(self) -> Iterator[Child]:
        self.folder.mkdir(parents=True)
        job = self.folder / "job.sql"
        user = postgres.USER if isinstance(self.database, Postgres) else mariadb.USER
        where = {"url": self.database.url, "user": user}
        text = _JOB.format(run=self.name, servers=self.servers, cache=self.cache, **where)
        job.write_text(text, encoding="utf-8")
        command = [
            "env",
            f"BENCH_PASSWORD={mariadb.PASSWORD}",
            sys.executable,
            "-m",
            "spark_jobs.cli",
            "run",
        ]
        command += [str(job), "--no-sidecar", "--checkpoint", str(self.folder / "checkpoint")]
        command += ["--status-dir", str(self.folder / "status")]
        child = Child(command, self.folder / "driver.log")
        try:
            yield child
        finally:
            stop_tree(child)

    def _send(
        self, producer: Producer, probes: Iterator[tuple[int, int]], total: int, rate: int
    ) -> None:
        """`total` probes, spread evenly over time."""
        started, sent = time.monotonic(), 0
        for tick in count(1):
            due = min(int(tick * _STEP_S * rate), total)
            for _ in range(due - sent):
                number, customer = next(probes)
                value = json.dumps({"id": number, "customer": customer})
                producer.produce(f"probes-{self.name}", value, partition=number % PARTITIONS)
            sent = due
            producer.poll(0)
            if sent == total:
                break
            time.sleep(max(started + tick * _STEP_S - time.monotonic(), 0))
        producer.flush(_PATIENCE_S)

    def _wait(self, driver: Child, total: int) -> QueryStatus:
        """The status once so many results are committed."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            found = read_status(self.folder / "status")
            if found is not None and found.queries and found.queries[0].output_rows_total >= total:
                return found.queries[0]
            if driver.exit_code is not None:
                break
            time.sleep(0.2)
        raise BenchError("BENCH_ENGINE_FAILED", f"no {total} results:\n{driver.log_tail(40)}")

    def _processor_s(self, driver: Child) -> tuple[float, float]:
        roots = (driver.pid, self.database.pid)
        driver_s, server_s = (
            sum(processor_s(pid, 0.0) for pid in process_tree(root)) for root in roots
        )
        return driver_s, server_s

    def _verify(self, probes: Probes) -> None:
        """Each probe once, with the name of its customer."""
        found = dict[int, str]()
        for message in _committed(self.servers, f"named-{self.name}"):
            row = json.loads(message)
            if row["id"] in found:
                raise BenchError("BENCH_WRONG_RESULT", f"probe {row['id']} came out twice")
            found[row["id"]] = row["name"]
        if found != {number: f"customer {customer}" for number, customer in probes}:
            raise BenchError("BENCH_WRONG_RESULT", f"{len(found)} results are not the expected")


def _lookups(status: QueryStatus) -> LookupStatus:
    (found,) = (operator.lookups for operator in status.operators if operator.lookups)
    return found


def _committed(servers: str, topic: str) -> Iterator[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    ended = 0
    while ended < PARTITIONS and (message := consumer.poll(_PATIENCE_S)) is not None:
        ended += message.error() is not None
        if message.error() is None:
            yield message.value() or b""
    consumer.close()


def _server(name: str, folder: Path) -> Postgres | MariaDb:
    found = postgres.programs() if name == "postgres" else mariadb.server()
    if found is None:
        raise BenchError("BENCH_ENGINE_FAILED", f"no {name} is installed")
    return Postgres(folder, found) if name == "postgres" else MariaDb(folder, found)


@contextmanager
def _database(name: str, rows: int) -> Iterator[Postgres | MariaDb]:
    """Not below this folder, which the server's user may not enter."""
    with TemporaryDirectory(prefix="rejoin-bench-") as folder:
        Path(folder).chmod(0o755)
        server = _server(name, Path(folder) / name)
        server.start()
        try:
            server.execute(
                "CREATE TABLE customers (id bigint PRIMARY KEY, name text)",
                f"INSERT INTO customers {_NUMBERED[name].format(last=rows - 1)}",
                _ANALYSE[name],
            )
            yield server
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lookup", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="customers in the database")
    parser.add_argument("--rate", type=int, default=10_000, help="probes per second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--database", choices=tuple(_NUMBERED), default="postgres")
    given = parser.parse_args()
    probes = Probes(given.rows, _WARM_UP + given.rate * given.seconds)
    with (
        work_folder("lookup") as work,
        Broker(work / "kafka", heap="1g") as broker,
        _database(given.database, given.rows) as database,
    ):
        for name, cache in (("uncached", ""), ("cached", _CACHE)):
            run = Run(broker.bootstrap_servers, database, work / name, name, cache)
            for line in run.measure(probes, given.rate).lines(name, probes.total - _WARM_UP):
                say(line)


if __name__ == "__main__":
    main()

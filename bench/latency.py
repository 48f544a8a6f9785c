"""How long a record takes to its result, Kafka to Kafka: `python -m bench.latency --help`.

A producer stamps the records of one table. Two consumers, one of committed records only, compare
the stamp in each result with their own clock.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.measure import BenchError, process_tree, processor_s, stop_tree
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.errors import KafkaError

PARTITIONS = 2
KEYS = 5_000
START_WITHIN_S = 240.0
QUIET_S = 5.0  # nothing has come for so long: there is nothing more
ISOLATIONS = ("read_committed", "read_uncommitted")
RESULT = "joined"

_UPSERT = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
_APPEND = "'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset'"
_TABLE = "CREATE TABLE {name} ({columns}) WITH ('topic' = '{name}', {options});\n"
_AT = "`at` TIMESTAMP_LTZ(3), WATERMARK FOR `at` AS `at` - INTERVAL '0.001' SECOND"
_SINK = "id BIGINT, sent BIGINT, amount INT, PRIMARY KEY (id) NOT ENFORCED"


@dataclass(frozen=True, slots=True)
class Workload:
    """A join and its two tables: columns and connector of each; the left one is stamped.

    `moves`: records of the right table go on coming, to move the watermark.
    """

    left: tuple[str, str]
    right: tuple[str, str]
    query: str
    moves: bool


WORKLOADS = {
    "regular": Workload(
        ("id BIGINT, sent BIGINT, PRIMARY KEY (id) NOT ENFORCED", _UPSERT),
        ("id BIGINT, amount INT, PRIMARY KEY (id) NOT ENFORCED", _UPSERT),
        "SELECT l.id, l.sent, r.amount FROM l LEFT JOIN r ON l.id = r.id",
        moves=False,
    ),
    "temporal": Workload(
        (f"id BIGINT, sent BIGINT, {_AT}", _APPEND),
        (f"id BIGINT, amount INT, {_AT}, PRIMARY KEY (id) NOT ENFORCED", _UPSERT),
        "SELECT l.id, l.sent, r.amount FROM l LEFT JOIN r FOR SYSTEM_TIME AS OF l.`at`"
        " ON l.id = r.id",
        moves=True,
    ),
    "interval": Workload(
        (f"id BIGINT, sent BIGINT, {_AT}", _APPEND),
        (f"id BIGINT, amount INT, {_AT}", _APPEND),
        "SELECT l.id, l.sent, r.amount FROM l JOIN r ON l.id = r.id"
        " AND r.`at` BETWEEN l.`at` - INTERVAL '1' HOUR AND l.`at`",
        moves=True,
    ),
}


def job(workload: Workload, servers: str, settings: Sequence[tuple[str, str]]) -> str:
    """The job file."""
    kafka = f"'properties.bootstrap.servers' = '{servers}'"
    tables = [("l", *workload.left), ("r", *workload.right), (RESULT, _SINK, _UPSERT)]
    return (
        "".join(f"SET '{name}' = '{value}';\n" for name, value in settings)
        + "".join(
            _TABLE.format(name=name, columns=columns, options=f"{options}, {kafka}")
            for name, columns, options in tables
        )
        + f"INSERT INTO {RESULT} {workload.query};\n"
    )


class Feed:
    """Records of both tables, sent at once."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})

    def left(self, id_: int) -> None:
        now_us = time.time_ns() // 1000
        self._send("l", id_, f'"sent":{now_us}', now_us)

    def right(self, id_: int) -> None:
        self._send("r", id_, f'"amount":{id_ % 1000}', time.time_ns() // 1000)

    def move_watermarks(self) -> None:
        """One record in each partition of the right table."""
        now_us = time.time_ns() // 1000
        for partition in range(PARTITIONS):
            self._send("r", KEYS + partition, '"amount":0', now_us, partition)

    def wait(self) -> None:
        if self._producer.flush(60):
            raise KafkaError("BENCH_LOAD_FAILED", "the broker does not take the records")

    def _send(self, topic: str, id_: int, field: str, at_us: int, partition: int = -1) -> None:
        seconds, micros = divmod(at_us, 1_000_000)
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{micros // 1000:03}Z"
        value = f'{{"id":{id_},{field},"at":"{at}"}}'
        self._producer.produce(topic, value, f'{{"id":{id_}}}', partition)
        self._producer.poll(0)

    def run(self, rate: int, seconds: float, *, moves: bool) -> None:
        """Stamp `rate` records a second, evenly."""
        started, sent, moved = time.monotonic(), 0, 0.0
        while (elapsed := time.monotonic() - started) < seconds:
            while sent < int(elapsed * rate):
                self.left(sent % KEYS)
                sent += 1
            if moves and elapsed - moved >= 0.005:
                moved = elapsed
                self.move_watermarks()
            time.sleep(0.001)
        self.wait()


def watch(servers: str, isolation: str, results: Connection) -> None:
    """A process of its own: sends a latency in ms for each result once it is told to end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": isolation,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(RESULT, p, 0) for p in range(PARTITIONS)])
    found: list[tuple[float, float]] = []  # when it was sent, how long it took
    last = time.monotonic()
    while not (results.poll() and time.monotonic() - last > QUIET_S):
        message = consumer.poll(0.2)
        value = None if message is None or message.error() else message.value()
        if value is None:
            continue
        last, now_us = time.monotonic(), time.time_ns() // 1000
        sent = json.loads(value)["sent"]
        if sent is not None:
            if not found:
                results.send("first")
            found.append((sent / 1e6, (now_us - sent) / 1000))
    consumer.close()
    results.recv()
    results.send(found)


def measure(
    workload: Workload, rate: int, seconds: float, warmup_s: float, settings: list[tuple[str, str]]
) -> Iterator[dict[str, object]]:
    """Run one job and describe the latencies that each consumer saw after the warm-up."""
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "broker") as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(name, PARTITIONS, 1) for name in ("l", "r", RESULT)]
        for made in admin.create_topics(topics).values():
            made.result(30)
        file = Path(folder) / "job.sql"
        file.write_text(job(workload, servers, settings), encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(file), "--no-sidecar"]
        command += ["--checkpoint", f"{folder}/checkpoint", "--status-dir", f"{folder}/status"]
        feed = Feed(servers)
        for id_ in range(KEYS):
            feed.right(id_)
        feed.wait()
        child = Child(command, Path(folder) / "run.log")
        try:
            with _Watchers(servers) as watchers:
                _wait_for_first(feed, workload, watchers, child)
                feed.run(rate, warmup_s, moves=workload.moves)
                since = time.time()
                cpu = _computed_s(child)
                feed.run(rate, seconds, moves=workload.moves)
                cpu = _computed_s(child) - cpu
                for isolation, found in watchers.results():
                    taken = sorted(ms for sent_s, ms in found if sent_s >= since)
                    yield {"consumer": isolation, **described(taken), "cpu_s": round(cpu, 1)}
        finally:
            stop_tree(child)


class _Watchers:
    """The consumers' processes."""

    def __init__(self, servers: str) -> None:
        self._pipes: list[tuple[str, Connection]] = []
        self._processes: list[multiprocessing.Process] = []
        for isolation in ISOLATIONS:
            mine, theirs = multiprocessing.Pipe()
            self._processes.append(
                multiprocessing.Process(target=watch, args=(servers, isolation, theirs))
            )
            self._pipes.append((isolation, mine))

    def __enter__(self) -> "_Watchers":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
            process.join()

    @property
    def have_started(self) -> bool:
        return all(pipe.poll() for _, pipe in self._pipes)

    def results(self) -> Iterator[tuple[str, list[tuple[float, float]]]]:
        for _, pipe in self._pipes:
            pipe.recv()  # "first"
            pipe.send("end")
        for isolation, pipe in self._pipes:
            yield isolation, pipe.recv()


def _wait_for_first(feed: Feed, workload: Workload, watchers: _Watchers, child: Child) -> None:
    """Send records until both consumers have seen a result."""
    deadline = time.monotonic() + START_WITHIN_S
    while not watchers.have_started:
        if child.exit_code is not None or time.monotonic() > deadline:
            raise BenchError("BENCH_ENGINE_FAILED", f"no result:\n{child.log_tail(40)}")
        for id_ in range(10 * PARTITIONS):  # a partition without records would hold back the time
            feed.left(id_)
        if workload.moves:
            feed.move_watermarks()
        time.sleep(0.2)


def _computed_s(child: Child) -> float:
    """Processor seconds of the driver and its JVM so far."""
    return sum(processor_s(pid, 0.0) for pid in process_tree(child.pid))


def described(taken: Sequence[float]) -> dict[str, object]:
    """Percentiles of sorted latencies in milliseconds."""
    if not taken:
        return {"results": 0}

    def at(share: float) -> float:
        return round(taken[min(int(len(taken) * share), len(taken) - 1)], 1)

    return {
        "results": len(taken),
        "p50_ms": at(0.5),
        "p90_ms": at(0.9),
        "p99_ms": at(0.99),
        "max_ms": round(taken[-1], 1),
    }


def main() -> None:
    """Print one line of JSON per consumer."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="regular")
    parser.add_argument("--mode", choices=("micro-batch", "real-time"), default="real-time")
    parser.add_argument("--rate", type=int, default=1000, help="stamped records a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the measurement")
    parser.add_argument("--warmup", type=float, default=20.0, help="seconds before it")
    parser.add_argument("--set", action="append", default=[], help="a setting, name=value")
    given = parser.parse_args()
    pairs = [text.partition("=") for text in given.set]
    settings = [("rejoin.mode", given.mode), *((name, value) for name, _, value in pairs)]
    workload = WORKLOADS[given.workload]
    for line in measure(workload, given.rate, given.seconds, given.warmup, settings):
        what = {"workload": given.workload, "mode": given.mode, "rate": given.rate}
        sys.stdout.write(json.dumps({**what, **line}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

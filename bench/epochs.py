"""`python -m bench.epochs`: what starting a job, a small epoch and an idle job cost.

A left join of two upsert topics runs exactly once while records come at an even rate; a
read_committed consumer sees how old each result is. Figures of the machine's clock need an idle
machine; seconds of processor time can be compared on a shared one.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer

from bench.class_archive import ensure_class_archive
from bench.job_settings import set_statements, setting
from bench.load import create_topics
from bench.measure import (
    BenchError,
    ended_children_s,
    process_tree,
    processor_s,
    rss_bytes,
    stop_tree,
)
from bench.turns import use_cores
from bench.workloads.records import PARTITIONS
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.settings import read_environment
from spark_jobs.status import QueryStatus, read_status

_TABLE = """\
CREATE TABLE {table} (id BIGINT, sent BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{table}', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '{broker}');
"""
_JOB = """\
CREATE TABLE joined (id BIGINT, sent BIGINT, other BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'joined', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '{broker}',
  'properties.linger.ms' = '0', 'sink.delivery-guarantee' = '{guarantee}');
INSERT INTO joined SELECT a.id, a.sent, b.sent FROM a LEFT JOIN b ON a.id = b.id;
"""
_KEYS = 10_000
_START_TIMEOUT_S = 120.0
_SAMPLE_S = 0.5
_STRIDE = 7919  # from key to key, so that neighbours in time are none in the state


@dataclass(slots=True)
class Reader:
    """Follows the sink in a thread of its own: when its first record came, how old results are."""

    bootstrap_servers: str
    ages_ms: list[float] = field(default_factory=list)
    measures: bool = False
    first: threading.Event = field(default_factory=threading.Event)
    _ends: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def following(self) -> Iterator[None]:
        thread = threading.Thread(target=self._follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()

    def _follow(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "rejoin-bench-epochs",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 5,
                "log_level": 3,
            }
        )
        consumer.subscribe(["joined"])
        while not self._ends.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            seen_ms = time.time() * 1000
            self.first.set()
            if self.measures and (value := message.value()) is not None:
                row = json.loads(value)
                self.ages_ms.append(seen_ms - max(row["sent"], row["other"] or 0))
        consumer.close()


class Sender:
    """Writes updates of all keys to both inputs."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "log_level": 2}
        )

    def send_all(self) -> None:
        """A row of each key for the left table."""
        for key in range(_KEYS):
            self._send("a", key)
        self._producer.flush(30)

    def send(self, rate: int, seconds: float) -> None:
        """So many records a second, evenly."""
        begun = time.monotonic()
        sent = 0
        while (passed := time.monotonic() - begun) < seconds:
            while sent < passed * rate:
                self._send("ab"[sent % 2], sent // 2 * _STRIDE % _KEYS)
                sent += 1
            self._producer.poll(0)
            time.sleep(0.001)
        self._producer.flush(30)

    def _send(self, topic: str, key: int) -> None:
        value = json.dumps({"id": key, "sent": int(time.time() * 1000)})
        self._producer.produce(topic, value, json.dumps({"id": key}), partition=key % PARTITIONS)


@dataclass(frozen=True, slots=True)
class Moment:
    """What the processes of the job have used so far, by role."""

    at: float
    processor_s: dict[str, float]
    rss_bytes: dict[str, int]
    status: QueryStatus | None

    @classmethod
    def of(cls, child: Child, status_dir: Path) -> "Moment":
        pids = {pid: _role(pid) for pid in process_tree(child.pid)}
        used: dict[str, float] = {}
        resident: dict[str, int] = {}
        for pid, role in pids.items():
            used[role] = used.get(role, 0.0) + processor_s(pid)
            if role == "jvm":  # what Hadoop's file system starts
                used[role] += ended_children_s(pid)
            resident[role] = resident.get(role, 0) + rss_bytes(pid)
        status = read_status(status_dir)
        queries = () if status is None else status.queries
        return cls(time.monotonic(), used, resident, queries[0] if queries else None)


def _role(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended"
    if b"service.main" in words:
        return "sidecar"
    return "jvm" if words[0].endswith(b"java") else "driver"


def measure(work: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The figures of one job: its start, then `args.seconds` with `args.rate` records a second."""
    if read_environment().class_archive == "use":
        ensure_class_archive()
    use_cores(2)
    with Broker(work / "kafka", heap="512m") as broker:
        at = broker.bootstrap_servers
        create_topics(at, ["a", "b", "joined"])
        sender, reader = Sender(at), Reader(at)
        sender.send_all()
        sql = work / "job.sql"
        sql.write_text(_job(at, args), encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(sql)]
        command += ["--checkpoint", f"{work}/checkpoint", "--status-dir", f"{work}/status"]
        with reader.following():
            begun = time.monotonic()
            child = Child(command, work / "job.log")
            try:
                if not reader.first.wait(_START_TIMEOUT_S):
                    raise BenchError("BENCH_TIMEOUT", f"no result yet:\n{child.log_tail()}")
                first = Moment.of(child, work / "status")
                sender.send(args.rate, args.warm)
                reader.measures = True
                moments = _sampled(child, work / "status", sender, args.rate, args.seconds)
                return {
                    "first row": _start(first, begun),
                    "then": _used(moments) | _epochs(moments) | _ages(reader.ages_ms),
                }
            finally:
                stop_tree(child)


def _job(bootstrap_servers: str, args: argparse.Namespace) -> str:
    sets = set_statements(dict(args.set))
    tables = "".join(_TABLE.format(table=table, broker=bootstrap_servers) for table in "ab")
    return sets + tables + _JOB.format(broker=bootstrap_servers, guarantee=args.guarantee)


def _sampled(
    child: Child, status_dir: Path, sender: Sender, rate: int, seconds: float
) -> list[Moment]:
    sending = threading.Thread(target=sender.send, args=(rate, seconds), daemon=True)
    sending.start()
    moments = [Moment.of(child, status_dir)]
    while sending.is_alive():
        time.sleep(_SAMPLE_S)
        moments.append(Moment.of(child, status_dir))
    return moments


def _start(first: Moment, begun: float) -> dict[str, Any]:
    processor = {role: round(s, 2) for role, s in first.processor_s.items()}
    return {"seconds": round(first.at - begun, 2), "processor seconds": processor}


def _used(moments: Sequence[Moment]) -> dict[str, Any]:
    """Cores used, and memory at the end and at most, in MiB."""
    first, last = moments[0], moments[-1]
    seconds = last.at - first.at
    cores = {
        role: round((used - first.processor_s.get(role, 0)) / seconds, 3)
        for role, used in last.processor_s.items()
    }
    return {
        "cores": cores,
        "MiB": {role: size >> 20 for role, size in last.rss_bytes.items()},
        "most MiB in all": max(sum(m.rss_bytes.values()) for m in moments) >> 20,
    }


def _epochs(moments: Sequence[Moment]) -> dict[str, Any]:
    known = [m.status for m in moments if m.status is not None]
    epochs = known[-1].epochs_total - known[0].epochs_total if known else 0
    if epochs == 0:
        return {"epochs": 0}
    read = known[-1].input_rows_total - known[0].input_rows_total
    used_s = moments[-1].processor_s["jvm"] - moments[0].processor_s["jvm"]
    parts = sorted({part for status in known for part in status.durations_ms})
    return {
        "epochs": epochs,
        "records per epoch": read // epochs,
        "jvm processor ms per epoch": round(used_s * 1000 / epochs),
        "median ms of an epoch": {
            part: statistics.median(s.durations_ms.get(part, 0) for s in known) for part in parts
        },
    }


def _ages(ages_ms: Sequence[float]) -> dict[str, Any]:
    found = sorted(ages_ms)
    if not found:
        return {"results": 0}
    shares = {"p50 ms": 0.5, "p99 ms": 0.99}
    ages = {name: round(found[int(len(found) * share)]) for name, share in shares.items()}
    return {"results": len(found), **ages}


def main() -> None:
    parser = argparse.ArgumentParser("bench.epochs", description=__doc__)
    parser.add_argument("--rate", type=int, default=1000, help="records a second; 0: an idle job")
    parser.add_argument("--seconds", type=float, default=60, help="how long it is measured")
    parser.add_argument("--warm", type=float, default=30, help="seconds under load before that")
    parser.add_argument("--guarantee", default="exactly-once")
    parser.add_argument(
        "--set", type=setting, action="append", default=[], help="NAME=VALUE of a SET statement"
    )
    parser.add_argument("--keep", type=Path, help="folder for files and logs, kept")
    args = parser.parse_args()
    if args.keep is not None:
        args.keep.mkdir(parents=True)
        found = measure(args.keep, args)
    else:
        with tempfile.TemporaryDirectory(prefix="rejoin-epochs-") as work:
            found = measure(Path(work), args)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

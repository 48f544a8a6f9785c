"""`rejoin state` on a job that runs, and on the checkpoint that it leaves: read, never written."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.commands import Answer, StateOrder, read_answer, send
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.status import QueryStatus, read_status

JOB = """
SET 'rejoin.parallelism' = '2';
CREATE TABLE orders (id BIGINT, customer INT, paid DECIMAL(8, 2), `at` TIMESTAMP_LTZ(3)) WITH (
  'connector' = 'kafka', 'topic' = '{t}-orders', 'format' = 'json',
  'properties.bootstrap.servers' = '{b}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE customers (id INT, name STRING) WITH (
  'connector' = 'kafka', 'topic' = '{t}-customers', 'format' = 'json',
  'properties.bootstrap.servers' = '{b}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE named (id BIGINT, paid DECIMAL(8, 2), `at` TIMESTAMP_LTZ(3), name STRING) WITH (
  'connector' = 'kafka', 'topic' = '{t}-named', 'format' = 'json',
  'properties.bootstrap.servers' = '{b}');
INSERT INTO named SELECT o.id, o.paid, o.`at`, c.name
FROM orders AS o JOIN customers AS c ON o.customer = c.id;
"""
CUSTOMERS = 8
HOT = 3
# what a driver writes; Spark's checksums and drafts are hidden files beside it
WRITTEN_BY_THE_JOB = re.compile(
    r"named(/metadata|/(offsets|commits)(/\d+(\.crc)?)?|/sources(/.*)?|/rejoin(/.*)?|/state(/0)?"
    r"|/state/0/(_metadata|_stateSchema)(/.*)?"
    r"|/state/0/\d+(/_metadata(/.*)?|/SSTs(/[-\w.]+)?|/\d+_[-\w]+\.(zip|changelog)(\.crc)?)?)?"
)
START_S = 240.0


def order(n: int) -> dict[str, Any]:
    """Every second one is of the same customer."""
    customer = HOT if n % 2 else n % CUSTOMERS
    at = f"2024-01-01 12:{n // 60 % 60:02}:{n % 60:02}Z"
    return {"id": n, "customer": customer, "paid": f"{n}.50", "at": at}


class Feed:
    """Orders by number, until it is told to stop."""

    def __init__(self, servers: str, topic: str) -> None:
        self.sent = 0
        self._servers = servers
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"enable.idempotence": True, "bootstrap.servers": self._servers})
        while not self._ended.wait(0.02):
            producer.produce(self._topic, json.dumps(order(self.sent)).encode())
            assert producer.flush(30) == 0
            self.sent += 1


class Job:
    """A real job over topics of its own, and the verbs of `rejoin state` about it."""

    def __init__(self, servers: str, folder: Path) -> None:
        self.servers = servers
        self.mark = f"state-{uuid.uuid4().hex[:8]}"
        self.checkpoint = folder / "checkpoint"
        self._status = folder / "status"
        self._sql = folder / "job.sql"
        self._sql.write_text(JOB.format(t=self.mark, b=servers), encoding="utf-8")
        topics = [NewTopic(f"{self.mark}-{name}", 2) for name in ("orders", "customers", "named")]
        admin = AdminClient({"bootstrap.servers": servers})
        for made in admin.create_topics(topics).values():
            made.result(30)
        producer = Producer({"enable.idempotence": True, "bootstrap.servers": servers})
        for n in range(CUSTOMERS):
            value = json.dumps({"id": n, "name": f"customer {n}"})
            producer.produce(f"{self.mark}-customers", value)
        assert producer.flush(30) == 0
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(self._sql), "--no-sidecar"]
        command += ["--checkpoint", str(self.checkpoint), "--status-dir", str(self._status)]
        self.child = Child(command, folder / "run.log")

    def query(self) -> QueryStatus | None:
        status = read_status(self._status)
        return status.queries[0] if status is not None and status.queries else None

    def epoch(self) -> int:
        query = self.query()
        return -1 if query is None or query.epoch is None else query.epoch

    def has_joined(self) -> int:
        query = self.query()
        return 0 if query is None else query.output_rows_total

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S
        while not condition():
            assert time.monotonic() < deadline, self.child.log_tail(40)
            assert self.child.exit_code is None, self.child.log_tail(40)
            time.sleep(0.1)

    def state(self, verb: str, *options: str) -> str:
        command = [sys.executable, "-m", "spark_jobs.cli", "state", verb, str(self._sql), *options]
        command += ["--checkpoint", str(self.checkpoint)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def looked_up(self, *lookups: dict[str, str]) -> Answer:
        """What the driver answers to the admin verb `state-get`."""
        order = StateOrder.model_validate({"lookups": lookups, "limit": 5})
        command = send(self._status, "state-get", "test", state=order)
        self.wait(lambda: read_answer(self._status, command.id) is not None)
        found = read_answer(self._status, command.id)
        assert found is not None
        return found

    def written(self, count: int) -> list[dict[str, Any]]:
        """What a read_committed reader of the sink finds."""
        config = {"bootstrap.servers": self.servers, "group.id": self.mark}
        consumer = Consumer({**config, "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(f"{self.mark}-named", p, 0) for p in range(2)])
        found = []
        deadline = time.monotonic() + 30
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None:
                assert message.error() is None
                found.append(json.loads(message.value() or b""))
        assert consumer.poll(1.0) is None
        consumer.close()
        return found


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Iterator[Job]:
    made = Job(broker.bootstrap_servers, tmp_path)
    yield made
    made.child.stop(0.0)


def names(folder: Path) -> list[str]:
    """What is below a folder that changes meanwhile."""
    walked = os.walk(folder)
    return [
        os.path.relpath(f"{at}/{n}", folder) for at, dirs, files in walked for n in dirs + files
    ]


def listing(folder: Path) -> dict[str, str]:
    """Every file with its content and times, every folder."""
    found = {}
    for path in folder.rglob("*"):
        told = path.stat()
        content = "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = f"{content} {told.st_mtime_ns} {told.st_mode}"
    return found


def kept(n: int) -> dict[str, Any]:
    """An order as its row in state, without the join key, which stands in front of it."""
    made = order(n)
    at = made["at"].replace(" ", "T").replace("Z", ".000Z")
    return {"row": {"id": n, "paid": made["paid"], "at": at}, "copies": 1}


def the_driver_shows_the_same(job: Job, told: dict[str, Any]) -> None:
    """By the admin verb: a later epoch, fewer rows, and nothing left in the temporary folder."""
    before = set(Path(tempfile.gettempdir()).glob("rejoin-lookup-*"))
    operator = "named/regular-join"
    answered = job.looked_up(
        {"operator": operator, "key": f"[{HOT}]"}, {"operator": operator, "key": "[-1]"}
    )
    assert answered.done, answered.message
    hot, nobody = answered.state
    assert hot["key"] == told["key"]
    assert hot["epoch"] >= told["epoch"]
    left, right = hot["sides"]
    assert left["rows"] >= told["sides"][0]["rows"]
    assert (len(left["kept"]), left["left_out"]) == (5, left["rows"] - 5)
    assert right == {**told["sides"][1], "left_out": 0}
    assert [(side["rows"], side["kept"]) for side in nobody["sides"]] == [(0, []), (0, [])]
    refused = job.looked_up({"key": "[1, 2]"})
    assert not refused.done
    assert "STATE_KEY_INVALID '[1, 2]' fits the key of no operator" in refused.message
    assert set(Path(tempfile.gettempdir()).glob("rejoin-lookup-*")) <= before


def test_both_sides_of_a_key_are_shown_while_the_job_runs_on(job: Job) -> None:
    with Feed(job.servers, f"{job.mark}-orders") as feed:
        job.wait(lambda: job.has_joined() >= 50)
        seen, before = job.has_joined(), job.epoch()
        told = json.loads(job.state("get", str(HOT), "--json", "--limit", "100000"))
        the_driver_shows_the_same(job, told)
        job.wait(lambda: job.epoch() > max(before, told["epoch"]))
        query = job.query()
    assert query is not None
    assert query.restarts_total == 0
    left, right = told["sides"]
    assert told["key"] == {"customer": HOT}
    assert (left["side"], right["side"]) == ("left", "right")
    shown = sorted(left["kept"], key=lambda row: int(row["row"]["id"]))
    wanted = [n for n in range(feed.sent) if order(n)["customer"] == HOT]
    ids = [row["row"]["id"] for row in shown]
    assert shown == [kept(n) for n in ids]
    assert left["rows"] == len(ids) >= seen // 4
    assert set(ids) <= set(wanted)
    assert (right["side"], right["rows"]) == ("right", 1)
    assert right["kept"] == [{"row": {"name": f"customer {HOT}"}, "copies": 1}]
    visible = [p for p in names(job.checkpoint) if not Path(p).name.startswith(".")]
    foreign = [path for path in visible if not WRITTEN_BY_THE_JOB.fullmatch(path)]
    assert not foreign

    job.wait(lambda: job.has_joined() == feed.sent)
    job.child.stop(60)
    assert job.child.exit_code == 0, job.child.log_tail(40)
    written = sorted(job.written(feed.sent), key=lambda row: int(row["id"]))
    assert [row["id"] for row in written] == list(range(feed.sent))
    assert all(row["name"] == f"customer {order(row['id'])['customer']}" for row in written)

    files = listing(job.checkpoint)
    hottest = [json.loads(line) for line in job.state("top", "--json", "--limit", "1").splitlines()]
    assert listing(job.checkpoint) == files
    sides = {line["side"]: (line["key"], line["rows"]) for line in hottest}
    assert sides["left"] == ({"customer": HOT}, len(wanted))
    assert sides["right"][1] == 1

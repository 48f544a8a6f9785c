"""Every tenth SQL case through a broker: real topics, Spark, exactly-once sinks, the end mark."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import open_query
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.embedded.broker import Broker
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.scenario.file import Input
from spark_jobs.scenario.fold import SinkView
from spark_jobs.scenario.records import Encoder, Record
from spark_jobs.scenario.runner import BoundScenario
from spark_jobs.settings import Overrides, job_settings, read_environment
from tests.conformance.case import Case, Failed, Skipped, read_case
from tests.conformance.feeding import feedings
from tests.conformance.job import SINK, Place
from tests.conformance.sql import Expected, bind_case, compare

CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "sql"
EVERY = 10
AT_ONCE = 4  # queries that run beside each other
END_S = 240.0
READ_S = 20.0


@dataclass(frozen=True)
class Planned:
    """A case, its plan over topics of its own, and what is in them before the job starts."""

    case: Case
    place: Place
    bound: BoundScenario

    @property
    def sink(self) -> KafkaSink:
        [plan] = self.bound.plans
        assert isinstance(plan.root, KafkaSink)
        return plan.root

    def records(self) -> Iterator[tuple[str, Record]]:
        for name, table in self.case["tables"].items():
            encoder = Encoder(self.bound.tables[name])
            rows = [Input(0, name, 0, row[0], tuple(row[1:])) for row in table["rows"]]
            for record in encoder.encode(rows):
                yield self.place.topic(name), record


def planned(broker: Broker) -> list[Planned]:
    """One of every ten cases; of those that we lack or that need a clock in hand, the next one."""
    paths = sorted(CASES.glob("*.json"))
    groups = [paths[i : i + EVERY] for i in range(0, len(paths), EVERY)]
    return [found for group in groups if (found := _first(group, broker)) is not None]


def _first(paths: Sequence[Path], broker: Broker) -> Planned | None:
    for path in paths:
        case = read_case(path)
        options = {"scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset"}
        place = Place(broker.bootstrap_servers, f"c{uuid.uuid4().hex[:8]}-", options)
        try:
            found = Planned(case, place, bind_case(case, place))
        except Skipped:
            continue
        ways = feedings(case, [plan.root for plan in found.bound.plans])
        if all("pause" not in way.actions for way in ways):
            return found
    return None


@pytest.mark.skipif(not CASES.is_dir(), reason=f"no conformance cases in {CASES}")
def test_every_tenth_case(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    cases = planned(broker)
    assert len(cases) >= len(list(CASES.glob("*.json"))) // EVERY
    _create_topics(broker, cases)
    _produce(broker, cases)
    _run(spark, cases, tmp_path)
    failures = [f"{p.case['name']}: {told}" for p in cases if (told := _difference(broker, p))]
    assert not failures, "\n".join(failures)


def _create_topics(broker: Broker, cases: Sequence[Planned]) -> None:
    names = [p.place.topic(table) for p in cases for table in (*p.case["tables"], SINK)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, 1) for name in names]).values():
        made.result(60)


def _produce(broker: Broker, cases: Sequence[Planned]) -> None:
    producer = Producer({"enable.idempotence": True, "bootstrap.servers": broker.bootstrap_servers})
    for topic, record in (pair for p in cases for pair in p.records()):
        producer.produce(topic, record.value, record.key, timestamp=record.timestamp_ms)
    assert producer.flush(60) == 0


def _run(spark: SparkSession, cases: Sequence[Planned], folder: Path) -> None:
    """All queries to their end in one session, some at a time."""
    waiting = list(cases)
    deadline = time.monotonic() + END_S
    with _running(spark) as lives:
        while waiting or lives:
            assert time.monotonic() < deadline, f"still runs: {[life.name for life in lives]}"
            while waiting and len(lives) < AT_ONCE:
                lives.append(_launch(spark, waiting.pop(0), folder))
            for life in lives:
                life.poll()
            lives[:] = [life for life in lives if life.phase != "finished"]
            time.sleep(0.05)


@contextmanager
def _running(spark: SparkSession) -> Iterator[list[QueryLife]]:
    lives: list[QueryLife] = []
    try:
        yield lives
    finally:
        for life in lives:
            if life.query is not None:
                life.query.stop()


def _launch(spark: SparkSession, planned: Planned, folder: Path) -> QueryLife:
    name = planned.case["name"]
    given = {
        "rejoin.parallelism": "1",
        "rejoin.checkpoint": str(folder / "checkpoint"),
        "rejoin.key-groups": "8",
    }
    settings = job_settings(given, name, Overrides(), read_environment())
    return open_query(spark, name, planned.sink, settings).life()


def _difference(broker: Broker, planned: Planned) -> str:
    expected = Expected(planned.case, planned.bound)
    view = SinkView.of(planned.bound.tables[SINK])
    for record in _read(broker, planned.place.topic(SINK)):
        view.apply(expected.changes(record))
    try:
        compare(expected.final, view, "through the broker")
    except Failed as told:
        return str(told)
    return ""


def _read(broker: Broker, topic: str) -> Iterator[Record]:
    """What a `read_committed` consumer sees up to the end that the topic has now."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": str(uuid.uuid4()),
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline = time.monotonic() + READ_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:  # the end of the partition
                return
            yield Record(message.key(), message.value())
        raise AssertionError(f"{topic}: no end within {READ_S} s")
    finally:
        consumer.close()

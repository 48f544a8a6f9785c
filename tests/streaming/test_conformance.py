"""Every tenth SQL case through a broker: real topics, Spark, exactly-once sinks, the end mark."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.scenario.file import Input
from spark_jobs.scenario.fold import SinkView
from spark_jobs.scenario.records import Encoder, Record
from spark_jobs.scenario.runner import BoundScenario
from tests.conformance.case import Case, Failed, Skipped, read_case
from tests.conformance.feeding import feedings
from tests.conformance.job import SINK, Place
from tests.conformance.sql import Expected, bind_case, compare
from tests.harness.bounded import Query, create_topics, produce, read_committed, run_to_end

CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "sql"
EVERY = 10
END_S = 240.0


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
    servers = broker.bootstrap_servers
    create_topics(servers, (c.place.topic(t) for c in cases for t in (*c.case["tables"], SINK)))
    produce(servers, (pair for case in cases for pair in case.records()))
    run_to_end(spark, [Query(c.case["name"], c.sink) for c in cases], tmp_path, END_S)
    failures = [f"{p.case['name']}: {told}" for p in cases if (told := _difference(broker, p))]
    assert not failures, "\n".join(failures)


def _difference(broker: Broker, planned: Planned) -> str:
    expected = Expected(planned.case, planned.bound)
    view = SinkView.of(planned.bound.tables[SINK])
    for record in read_committed(broker.bootstrap_servers, planned.place.topic(SINK)):
        view.apply(expected.changes(record))
    try:
        compare(expected.final, view, "through the broker")
    except Failed as told:
        return str(told)
    return ""

"""Jobs that the project shows (golden plans, examples) as they run: started, fed, judged.

Every table gets the same few rows, so that joins match. What the sinks hold at the end of the
bounded run is what the kernel gives in memory for the same records.
"""

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.plan.nodes.physical import Aggregate, KafkaSink, SinkMaterializer
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.scenario.file import Command, Input, Scenario, Step
from spark_jobs.scenario.fold import SinkView, view_difference
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Encoder, Record, decode, input_columns
from spark_jobs.scenario.runner import BoundScenario, bind_scenario
from spark_jobs.sql.bind.binder import Job, bind_to_explain
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.functions import BY_ARRIVAL
from tests.harness.bounded import (
    KEY_GROUPS,
    Query,
    create_topics,
    produce,
    read_committed,
    run_to_end,
)
from tests.harness.gateway import kernel

ROWS = 4
PARTITIONS = 2
_SERVERS = re.compile(r"('properties\.bootstrap\.servers'\s*=\s*)'[^']*'")
_TOPIC = re.compile(r"('(?:topic|rejoin\.[a-z-]+\.topic)'\s*=\s*)'([^']*)'")


@dataclass(frozen=True)
class GoldenJob:
    """A job over topics of its own."""

    name: str
    prefix: str
    bound: BoundScenario

    @property
    def sinks(self) -> list[KafkaSink]:
        return [plan.root for plan in self.bound.plans if isinstance(plan.root, KafkaSink)]

    def queries(self) -> list[Query]:
        return [
            Query(f"{self.prefix}{self.name}-{number}", sink, PARTITIONS)
            for number, sink in enumerate(self.sinks)
        ]

    def topics(self) -> set[str]:
        tables = self.bound.tables.values()
        letters = {table.dead_letter_topic for table in tables} - {None}
        return {topic for table in tables for topic in table.topics} | {str(t) for t in letters}

    @property
    def depends_on_order(self) -> bool:
        """Whether the order of arrival decides: which row a sink key shows, how values stand."""
        machines = (node.machine for sink in self.sinks for node in stateful_nodes(sink))
        return any(
            isinstance(machine, SinkMaterializer)
            or (
                isinstance(machine, Aggregate)
                and any(call.function in BY_ARRIVAL for call in machine.calls)
            )
            for machine in machines
        )

    def records(self) -> Iterator[tuple[str, Record]]:
        """The rows of every table that is read, by table; the records name partition 0."""
        for name in sorted({scan.table for sink in self.sinks for scan in scans(sink)}):
            table = self.bound.tables[name]
            types = [column.type for column in input_columns(table)]
            rows = [
                Input(0, name, 0, "+I", tuple(_value(t, number) for t in types))
                for number in range(ROWS)
            ]
            for record in Encoder(table).encode(rows):
                yield name, record

    def expected(self) -> dict[str, SinkView]:
        """What the sinks hold in the end, by the kernel in memory."""
        backend = MemoryBackend(self.bound, kernel())
        for name, record in self.records():
            backend.feed(name, [record])
        views = {name: SinkView.of(self.bound.tables[name]) for name in self.bound.sinks}
        commands: tuple[Command | None, ...] = (None, "end")
        for command in commands:
            outcome = backend.run_step(Step(0, command=command), lambda _: True)
            for name, records in outcome.records.items():
                for record in records:
                    views[name].apply(decode(self.bound.tables[name], record))
        return views


def golden_job(path: Path, servers: str) -> GoldenJob:
    """The job of a file, bounded by what its topics hold at the start."""
    prefix = f"g{uuid.uuid4().hex[:8]}-"
    text = _with_sink(path.read_text(encoding="utf-8"), servers)
    return GoldenJob(path.stem, prefix, bounded_job(path.stem, text, prefix, servers))


def bounded_job(name: str, text: str, prefix: str, servers: str) -> BoundScenario:
    """The job of a text, over topics whose names have the prefix, to the ends that they have."""
    text = _TOPIC.sub(rf"\1'{prefix}\2'", _SERVERS.sub(rf"\1'{servers}'", text))
    text = f"SET 'rejoin.key-groups' = '{KEY_GROUPS}';\n{text}"
    bound = bind_scenario(Scenario(name, text, ()))
    for table in {scan.table for plan in bound.plans for scan in scans(plan.root)}:
        text = _bounded(text, table)
    return bind_scenario(Scenario(name, text, ()))


def _with_sink(text: str, servers: str) -> str:
    """The job, with a table for the SELECT at its end if that goes nowhere."""
    bound = bind_to_explain(text)
    if isinstance(bound, Job):
        return text
    tables, select = text.strip().removesuffix(";").rsplit(";", 1)
    columns = ", ".join(f"c{n} {f.type.sql()}" for n, f in enumerate(bound.query.fields))
    return f"""{tables};
CREATE TABLE golden_sink ({columns})
WITH ('connector' = 'kafka', 'topic' = 'golden_sink', 'properties.bootstrap.servers' = '{servers}',
  'format' = 'changelog-json');
INSERT INTO golden_sink{select};"""


def _bounded(text: str, table: str) -> str:
    start = re.search(rf"CREATE\s+(?:TEMPORARY\s+)?TABLE\s+`?{table}`?\s*\(", text)
    assert start is not None, f"no table {table}"
    ends = text.index("WITH (", start.end()) + len("WITH (")
    return f"{text[:ends]}\n  'scan.bounded.mode' = 'latest-offset',{text[ends:]}"


def _value(kind: DataType, number: int) -> Any:
    match kind.name:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return number
        case "STRING" | "VARCHAR" | "CHAR":
            return f"v{number}"
        case "BOOLEAN":
            return number % 2 == 0
        case "DECIMAL":
            return Decimal(number)
        case "DOUBLE" | "FLOAT":
            return float(number)
        case "DATE":
            return "2024-01-01"
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return f"2024-01-01 10:{number:02}:00"
        case _:
            return None


def differences(
    spark: SparkSession, servers: str, paths: Sequence[Path], folder: Path, timeout_s: float
) -> list[str]:
    """Run the jobs; what their sinks hold and should not, or the other way round."""
    jobs = [golden_job(path, servers) for path in paths]
    create_topics(servers, (topic for job in jobs for topic in job.topics()), PARTITIONS)
    for job in jobs:
        tables = job.bound.tables
        records = ((tables[name].topics[0], record) for name, record in job.records())
        produce(servers, records, keeps_partitions=job.depends_on_order)
    run_to_end(spark, [query for job in jobs for query in job.queries()], folder, timeout_s)
    return [problem for job in jobs for problem in _problems(job, servers)]


def _problems(job: GoldenJob, servers: str) -> Iterator[str]:
    for name, expected in job.expected().items():
        table = job.bound.tables[name]
        found = SinkView.of(table)
        for record in read_committed(servers, table.topics[0], PARTITIONS):
            found.apply(decode(table, record))
        for problem in view_difference(expected, found):
            yield f"{job.name}: {name}: {problem}"

"""Random cases through Spark and a broker, by a driver that is killed in the middle.

All records are in the topics before the start, and an epoch takes a few of them. The first driver
is killed when every query has committed an epoch; the second one ends what it began. What a
`read_committed` reader of the sinks then sees has to be DuckDB's answer.
"""

import re
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spark_jobs.embedded.process import Child
from spark_jobs.errors import SqlErrors
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.scenario.file import Input
from spark_jobs.scenario.fold import SinkView, row_text
from spark_jobs.scenario.records import Encoder, Record, decode
from spark_jobs.scenario.runner import BoundScenario
from tests.differential.case import SINK, Case, canonical_rows, difference
from tests.differential.generate import random_case
from tests.differential.judge import Judge
from tests.differential.tables import PROCTIME
from tests.harness.bounded import (
    KEY_GROUPS,
    Query,
    create_topics,
    produce,
    read_committed,
    run_to_end,
)
from tests.harness.golden_jobs import bounded_job
from tests.harness.spark import spark_session

PARTITIONS = 3  # of every source; a sink has one, so that a reader sees its changes in order
PARALLELISM = 2
EPOCHS = 6  # that a case has, at least
END_S = 600.0
_FROM_THE_BEGINNING = "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset',"


@dataclass(frozen=True, slots=True)
class DeliveredCase:
    """A case over topics of its own."""

    case: Case
    prefix: str
    bound: BoundScenario

    @property
    def query(self) -> Query:
        [plan] = self.bound.plans
        assert isinstance(plan.root, KafkaSink)
        records = sum(len(step) for step in self.case.steps)
        a_few = max(1, records // (EPOCHS * PARTITIONS))
        return Query(f"{self.prefix}q", plan.root, PARALLELISM, max_offsets=a_few)

    def topic(self, table: str) -> str:
        return f"{self.prefix}{table}"

    def records(self) -> Iterator[tuple[str, Record]]:
        encoders = {t.name: Encoder(self.bound.tables[t.name]) for t in self.case.tables}
        for change in (change for step in self.case.steps for change in step):
            given = Input(0, change.table, change.partition, change.kind, change.row)
            for record in encoders[change.table].encode([given]):
                yield self.topic(change.table), record

    def problems(self, servers: str, judge: Judge) -> list[str]:
        """Where the sink's content differs from DuckDB's answer."""
        sink = self.bound.tables[SINK]
        view = SinkView.of(sink)
        for record in read_committed(servers, self.topic(SINK)):
            view.apply(decode(sink, record))
        judge.begin(self.case.tables, self.case.views, self.case.query)
        judge.apply([change for step in self.case.steps for change in step])
        types = [column.type for column in sink.columns]
        expected = canonical_rows(judge.answer(self.case.query), types)
        twice = [f"taken back too often: {row_text(row)}" for row in -view.rows]
        return [*difference(view, expected), *twice]


def random_cases(
    seed: int, numbers: Sequence[int], prefix: str, servers: str
) -> list[DeliveredCase]:
    """Those that rejoin takes and whose answer does not depend on which topic is read first."""
    judge = Judge()
    cases = [random_case(seed, number, judge) for number in numbers]
    return [
        DeliveredCase(case, own, bounded_job(case.name, job, own, servers))
        for number, case in zip(numbers, cases, strict=True)
        if not _reads_a_clock(case) and (job := _job(case)) is not None
        for own in [f"{prefix}{number}-"]
    ]


def _reads_a_clock(case: Case) -> bool:
    texts = [case.query, *(text for _, text in case.views)]
    return any(re.search(rf"\.{PROCTIME}\b", text) for text in texts)


def _job(case: Case) -> str | None:
    """The job file, which reads topics from their beginning; None if the query is refused."""
    try:
        job = replace(case, groups=KEY_GROUPS).job()
    except SqlErrors:
        return None
    return job.replace("'connector' = 'kafka',", _FROM_THE_BEGINNING)


def differences(servers: str, folder: Path, seed: int, numbers: Sequence[int]) -> list[str]:
    """Run the cases, kill their driver once; what the sinks hold and should not, or lack.

    `folder`: for checkpoints and logs. Raises AssertionError if a driver fails or is too slow.
    """
    prefix = f"d{uuid.uuid4().hex[:8]}-"
    cases = random_cases(seed, numbers, prefix, servers)
    sources = {c.topic(table.name) for c in cases for table in c.case.tables}
    create_topics(servers, sources, PARTITIONS)
    create_topics(servers, {c.topic(SINK) for c in cases})
    for case in cases:
        produce(servers, case.records(), keeps_partitions=True)
    command = [sys.executable, "-m", "tests.differential.delivery", servers, str(folder), prefix]
    command += [str(number) for number in (seed, *numbers)]
    _run_and_kill(Child(command, folder / "first.log"), cases, folder)
    _run_to_end(Child(command, folder / "second.log"))
    judge = Judge()
    return [
        f"{case.case.name}: {problem}: {case.case.select()}"
        for case in cases
        for problem in case.problems(servers, judge)
    ]


def _run_and_kill(driver: Child, cases: Sequence[DeliveredCase], folder: Path) -> None:
    deadline = time.monotonic() + END_S
    while not all(_committed(folder, case) for case in cases):
        assert driver.exit_code is None, f"ended before it was killed:\n{driver.log_tail()}"
        assert time.monotonic() < deadline, f"too slow:\n{driver.log_tail()}"
        time.sleep(0.05)
    driver.kill()


def _committed(folder: Path, case: DeliveredCase) -> int:
    """How many epochs of the case are committed."""
    commits = folder / "checkpoint" / case.query.name / "commits"
    return sum(1 for file in commits.glob("*") if file.name.isdecimal())


def _run_to_end(driver: Child) -> None:
    ended = driver.wait(END_S)
    driver.stop(10)
    assert ended, driver.log_tail()
    assert driver.exit_code == 0, driver.log_tail()


def main(servers: str, folder: str, prefix: str, seed: str, *numbers: str) -> None:
    """The driver: runs what is left of the cases."""
    cases = random_cases(int(seed), [int(number) for number in numbers], prefix, servers)
    with spark_session(Path(folder)) as spark:
        run_to_end(spark, [c.query for c in cases], Path(folder), END_S, at_once=len(cases))


if __name__ == "__main__":
    main(*sys.argv[1:])

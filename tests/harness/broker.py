"""The command `rejoin run` between real topics, read by a `read_committed` consumer."""

import re
import sys
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded.process import Child
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.scenario.file import Step
from spark_jobs.scenario.records import Encoder, Record
from spark_jobs.scenario.runner import BoundScenario, StepOutcome
from spark_jobs.sql.catalog import Table

_SETTLE_S = 90.0
_EXIT_S = 90.0
_STOP_S = 30.0
_DEAD_LETTER_TOPIC = "rejoin.dead-letter.topic"


class BrokerBackend:
    """One job, from the first step that needs it; `restart` and the last step end it in order.

    Where a scenario has an `end`, all sources are bounded at the number of records that it holds.
    """

    exact = False

    def __init__(self, bound: BoundScenario, servers: str, folder: Path) -> None:
        self._bound = bound
        self._servers = servers
        self._folder = folder
        self._mark = uuid.uuid4().hex[:8]
        self._producer = Producer({"enable.idempotence": True, "bootstrap.servers": servers})
        self._job: Child | None = None
        self._starts = 0
        self._reads = {scan.table for plan in bound.plans for scan in scans(plan.root)}
        self._partitions = _partition_counts(bound)
        self._create_topics()
        self._sql = folder / f"{bound.scenario.name}.sql"
        self._sql.write_text(self._job_text(), encoding="utf-8")
        outputs = [*(bound.tables[s].topics[0] for s in bound.sinks), *self._dead_letter_topics()]
        self._consumer = _consumer(servers, [self._topic(t) for t in outputs])

    def feed(self, table: str, records: Sequence[Record]) -> None:
        topic = self._topic(self._bound.tables[table].topics[0])
        for record in records:
            self._producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        self._producer.flush(30)

    def run_step(self, step: Step, is_settled: Callable[[StepOutcome], bool]) -> StepOutcome:
        match step.command:
            case "restart":
                self._stop()
                return StepOutcome({})
            case "advance" | "loaded":
                raise ValueError(f"a broker knows no {step.command}: run this scenario in memory")
            case "end":
                self._start()
                self._wait_for_exit()
                return self._collect(is_settled, 15.0)
        self._start()
        return self._collect(is_settled, _SETTLE_S)

    def finish(self) -> StepOutcome:
        """Stop the job, then read what it has written more than was asked for."""
        try:
            self._stop()
            return self._collect(lambda _: False, 1.0)
        finally:
            self._consumer.close()

    def kill(self) -> None:
        """After a failed step."""
        if self._job is not None:
            self._job.stop(5.0)
        self._consumer.close()

    def _start(self) -> None:
        if self._job is not None:
            return
        self._starts += 1
        command = [sys.executable, "-c", "from spark_jobs.cli import main; main()"]
        command += ["run", str(self._sql), "--no-sidecar"]
        command += ["--checkpoint", str(self._folder / "checkpoint")]
        command += ["--status-dir", str(self._folder / "status")]
        self._job = Child(command, self._folder / f"job-{self._starts}.log")

    def _stop(self) -> None:
        if self._job is None:
            return
        ended = self._job.exit_code is not None
        self._job.stop(_STOP_S)
        code = self._job.exit_code
        if code != 0:
            when = "by itself" if ended else "on SIGTERM"
            raise AssertionError(f"the job ended {when} with code {code}:\n{self._job.log_tail()}")
        self._job = None

    def _wait_for_exit(self) -> None:
        if self._job is not None and not self._job.wait(_EXIT_S):
            raise AssertionError(f"the job has not ended by itself:\n{self._job.log_tail()}")
        self._stop()

    def _collect(self, is_settled: Callable[[StepOutcome], bool], within_s: float) -> StepOutcome:
        records: dict[str, list[Record]] = defaultdict(list)
        rejects: list[tuple[str, str]] = []
        deadline = time.monotonic() + within_s
        outcome = StepOutcome(records, rejects)
        while not is_settled(outcome) and time.monotonic() < deadline:
            if self._job is not None and self._job.exit_code not in (None, 0):
                self._stop()
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            topic = str(message.topic()).removesuffix(f"-{self._mark}")
            sinks = [s for s in self._bound.sinks if self._bound.tables[s].topics[0] == topic]
            if sinks:
                records[sinks[0]].append(Record(message.key(), message.value()))
            else:
                rejects.append((topic, _reason(message)))
        return outcome

    def _topic(self, name: str) -> str:
        return f"{name}-{self._mark}"

    def _dead_letter_topics(self) -> list[str]:
        options = (table.options for table in self._bound.tables.values())
        return sorted({o[_DEAD_LETTER_TOPIC] for o in options if _DEAD_LETTER_TOPIC in o})

    def _create_topics(self) -> None:
        counts = {t.topics[0]: self._partitions[t.name] for t in self._bound.tables.values()}
        counts |= dict.fromkeys(self._dead_letter_topics(), 1)
        admin = AdminClient({"bootstrap.servers": self._servers})
        topics = [NewTopic(self._topic(name), max(n, 1)) for name, n in counts.items()]
        for future in admin.create_topics(topics).values():
            future.result(30)

    def _job_text(self) -> str:
        text = self._bound.scenario.sql.replace("localhost:9092", self._servers)
        for option in ("topic", _DEAD_LETTER_TOPIC):
            pattern = rf"('{re.escape(option)}'\s*=\s*')([^']+)'"
            text = re.sub(pattern, rf"\g<1>\g<2>-{self._mark}'", text)
        for name in self._reads:
            options = "".join(f"{o}, " for o in self._source_options(self._bound.tables[name]))
            declared = re.search(rf"CREATE TABLE {name}\b.*?WITH\s*\(", text, re.DOTALL)
            if declared is not None:
                text = text[: declared.end()] + options + text[declared.end() :]
        return text

    def _source_options(self, table: Table) -> Iterator[str]:
        if table.connector == "kafka" and "scan.startup.mode" not in table.options:
            yield "'scan.startup.mode' = 'earliest-offset'"
        if any(step.command == "end" for step in self._bound.scenario.steps):
            ends = _record_counts(self._bound, table)
            offsets = ";".join(f"partition:{p},offset:{n}" for p, n in sorted(ends.items()))
            yield "'scan.bounded.mode' = 'specific-offsets'"
            yield f"'scan.bounded.specific-offsets' = '{offsets}'"


def _partition_counts(bound: BoundScenario) -> Counter[str]:
    counts: Counter[str] = Counter()
    for step in bound.scenario.steps:
        for given in step.inputs:
            counts[given.table] = max(counts[given.table], given.partition + 1)
    return counts


def _record_counts(bound: BoundScenario, table: Table) -> Mapping[int, int]:
    """Records per partition once all steps are done."""
    encoder = Encoder(table)
    counts = Counter({p: 0 for p in range(max(_partition_counts(bound)[table.name], 1))})
    for step in bound.scenario.steps:
        for given in step.inputs:
            if given.table == table.name:
                counts[given.partition] += len(encoder.encode([given]))
    return counts


def _reason(message: Message) -> str:
    headers: Any = message.headers() or []
    return next((v.decode() for k, v in headers if k == "rejoin.reason"), "")


def _consumer(servers: str, topics: Sequence[str]) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": str(uuid.uuid4()),
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    metadata = consumer.list_topics(timeout=30)
    places = [(t, p) for t in topics for p in metadata.topics[t].partitions]
    consumer.assign([TopicPartition(t, p, 0) for t, p in places])
    return consumer

"""A real Structured Streaming query with RocksDB over files of Kafka-shaped rows."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import py4j.java_gateway
import py4j.protocol
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow

from spark_jobs.access.topics import Offsets
from spark_jobs.driver.topics.inputs import set_partitions
from spark_jobs.kernel.build import connector_jars, jdbc_jars, kernel_jar
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.build import records_of
from spark_jobs.operators.kafka_scan import envelopes
from spark_jobs.operators.running import Running
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.scenario.file import Step
from spark_jobs.scenario.records import Record, to_base64
from spark_jobs.scenario.runner import BoundScenario, StepOutcome, exchanged_sinks
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.streaming.manifest import VERSION, Manifest
from spark_jobs.streaming.session import REAL_TIME_DEFAULTS, start_session, stop_session
from spark_jobs.streaming.sources import ScanStart

_KAFKA_SCHEMA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_STEP_TIMEOUT_S = 120
_LOADED_MARKER = -2  # as the kernel's Kafka source marks a partition whose content is complete


@contextmanager
def spark_session(folder: Path, master: str | None = None) -> Iterator[SparkSession]:
    """A session as `rejoin run` starts it, in any mode; log and checkpoints are in the folder."""
    given = {"rejoin.parallelism": "2", "rejoin.checkpoint": str(folder), **REAL_TIME_DEFAULTS}
    overrides = Overrides(status_dir=folder / "status", master=master)
    settings = job_settings(declared_settings(given), "tests", overrides, read_environment())
    session = start_session(settings, [kernel_jar(), *connector_jars(), *jdbc_jars()])
    Kernel.of(session).open_gate()
    try:
        yield session
    finally:
        stop_session(session, 15)
        forget_jvm()


def forget_jvm() -> None:
    """The next session gets a JVM of its own, and py4j's errors are py4j's again."""
    SparkContext._gateway = SparkContext._jvm = None
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value


class SparkBackend:
    """Each step is one start of every query with `availableNow`, hence a restart as well."""

    exact = True

    def __init__(self, bound: BoundScenario, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._bound = bound
        self._pending: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._partitions: Counter[str] = Counter()
        self._files = 0
        self._loaded: dict[str, Offsets] | None = None  # by table, as of the first step
        for table in bound.tables:
            (folder / "input" / table).mkdir(parents=True)

    def feed(self, table: str, records: Sequence[Record]) -> None:
        topic = self._bound.tables[table].topics[0]
        for record in records:
            place = (table, record.partition)
            row = _kafka_row(topic, record, self._offsets[place])
            self._pending[table].append(row)
            self._offsets[place] += 1
            self._partitions[topic] = max(self._partitions[topic], record.partition + 1)

    def run_step(self, step: Step, is_settled: Callable[[StepOutcome], bool]) -> StepOutcome:
        if step.command in ("advance", "loaded"):
            raise ValueError(f"Spark knows no {step.command}: run this scenario in memory")
        if self._loaded is None:
            self._loaded = self._capture_loaded()
        self._write_files()
        return self._run(ending=step.command == "end")

    def finish(self) -> StepOutcome:
        """A query that is not running writes nothing."""
        return StepOutcome({})

    def _capture_loaded(self) -> dict[str, Offsets]:
        """What is there before the first start is the initial content; its marker comes last."""
        found: dict[str, Offsets] = {}
        gated = {s.table for p in self._bound.plans for s in scans(p.root) if s.gated}
        for (table, partition), end in sorted(self._offsets.items()):
            if table in gated:
                topic = self._bound.tables[table].topics[0]
                found.setdefault(table, {}).setdefault(topic, {})[partition] = end
                marker = _kafka_row(topic, Record(None, None, partition), end)
                self._pending[table].append(marker | {"timestampType": _LOADED_MARKER})
        return found

    def _write_files(self) -> None:
        """One file per table and step; it appears under its name when it is complete."""
        for table, rows in self._pending.items():
            self._files += 1
            target = self._folder / "input" / table / f"{self._files:06}.json"
            written = self._folder / target.name
            written.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
            written.rename(target)
        self._pending.clear()

    def _run(self, ending: bool) -> StepOutcome:
        records: dict[str, list[Record]] = defaultdict(list)
        rejects: list[tuple[str, str]] = []
        for plan in self._bound.plans:
            if not isinstance(plan.root, KafkaSink):
                raise ValueError("a scenario's query writes into a table")
            for row in self._run_query(plan.root, ending):
                if row.topic == plan.root.topic:
                    records[plan.root.table].append(Record(_bytes(row.key), _bytes(row.value)))
                else:
                    rejects.append((row.topic, _reason(row)))
        for name in exchanged_sinks(self._bound):
            records[name].sort(key=lambda record: record.value is not None)
        return StepOutcome(records, rejects)

    def _run_query(self, sink: KafkaSink, ending: bool) -> list[Any]:
        running = self._running(sink, ending)
        topics = [topic.name for scan in scans(sink) for topic in scan.topics]
        counts = {topic: max(self._partitions[topic], 1) for topic in topics}
        set_partitions(self._spark, sink.name, scans(sink), counts)
        described = to_json(sink)

        def read(scan: KafkaScan, chunked: bool) -> DataFrame:
            return self._scan(scan, chunked, running)

        records = records_of(sink, described, running, read)
        rows: list[Any] = []

        def collect(batch: DataFrame, _: int) -> None:
            found = batch.collect()
            # between key groups only the exchange before the sink makes an order: deletes first
            rows.extend(
                sorted(found, key=lambda r: r.value is not None) if sink.exchange else found
            )

        writer = records.writeStream.foreachBatch(collect).trigger(availableNow=True)
        query = writer.option("checkpointLocation", running.manifest.checkpoint).start()
        try:
            if not query.awaitTermination(_STEP_TIMEOUT_S):
                raise AssertionError(f"the query still runs after {_STEP_TIMEOUT_S} s")
        finally:
            query.stop()
        return rows

    def _scan(self, scan: KafkaScan, chunked: bool, running: Running) -> DataFrame:
        folder = str(self._folder / "input" / scan.table)
        records = self._spark.readStream.schema(_KAFKA_SCHEMA).json(folder)
        return envelopes(scan, records, running, chunked=chunked)

    def _running(self, sink: KafkaSink, ending: bool) -> Running:
        manifest = Manifest(
            version=VERSION,
            checkpoint=str(self._folder / "checkpoint" / sink.name),
            query=sink.name,
            topics=(),
            groups=scans(sink)[0].groups,
            parallelism=2,
            state="",
            scans={scan.id: self._start_of(scan) for scan in scans(sink)},
            ledgers=self._bound.scenario.name,
            even_groups=True,
        )
        return Running(
            spark=self._spark,
            query=sink.name,
            manifest=manifest,
            max_offsets=1_000_000,
            ending=ending,
        )

    def _start_of(self, scan: KafkaScan) -> ScanStart:
        loaded = (self._loaded or {}).get(scan.table, {}) if scan.gated else None
        return ScanStart(starts={}, ends=None, loaded=loaded)


def _kafka_row(topic: str, record: Record, offset: int) -> dict[str, Any]:
    headers = [{"key": k, "value": to_base64(v)} for k, v in record.headers]
    return {
        "key": to_base64(record.key),
        "value": to_base64(record.value),
        "topic": topic,
        "partition": record.partition,
        "offset": offset,
        "timestamp": f"{record.timestamp_ms / 1000:.3f}",
        "timestampType": 0,
        "headers": headers,
    }


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _reason(row: SparkRow) -> str:
    headers = {h.key: bytes(h.value).decode() for h in row.headers or ()}
    return headers.get("rejoin.reason", "")

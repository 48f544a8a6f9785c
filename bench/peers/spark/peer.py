"""Spark's own stream-stream join at its best known settings: the join of `interval-left`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer

from bench.avro import encode_instant, encode_long, frame, record_schema, register
from bench.installing import copy_jars
from bench.load import create_topics
from bench.peers.peer import PARALLELISM, Folders, Run
from bench.workloads.interval import PARCELS, PURCHASES
from bench.workloads.records import DOUBLE, ENCODED_CARRIERS, PARTITIONS, SPAN_MS, START_MS
from bench.workloads.workload import PRODUCER, SinkKind, Workload

_HERE = Path(__file__).parent
_ALL_JARS = Path(__file__).resolve().parents[3] / "build" / "jars"
_AVRO = _ALL_JARS / "spark-avro"
_PROGRAM = _HERE / "interval_join.py"
_DAY_MS = 86_400_000
_FLUSH_TIMEOUT_S = 30.0
_SETTINGS = {
    "spark.master": f"local[{PARALLELISM}]",
    "spark.driver.memory": "3g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # a task for each core; default 200
    "spark.sql.shuffle.partitions": str(PARALLELISM),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # a commit writes what has changed, not RocksDB's files
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # counting rows reads each before it is written
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # one store for both sides instead of four
    "spark.sql.streaming.join.stateFormatVersion": "3",
}
_OFFSETS = "500000"  # most records of a topic in a micro-batch


class Spark:
    """Structured Streaming in one JVM with two tasks. Its Kafka sink writes at least once."""

    name = "spark"
    about = "its stream-stream join, RocksDB with changelog checkpoints, at-least-once"

    def refusal(self, workload: Workload) -> str | None:
        if workload.name == "interval-left":
            return None
        if workload.name == "regular-nn":
            return "written for interval-left only"
        return "Spark joins streams that only append, and knows no versions"

    def sink(self, workload: Workload) -> SinkKind:
        return workload.sink

    def prepare(self) -> None:
        copy_jars(_HERE / "pom.xml", _AVRO)

    def settings(self, workload: Workload, folders: Folders) -> Mapping[str, str]:
        return {**_SETTINGS, "maxOffsetsPerTrigger": _OFFSETS}

    def command(self, run: Run) -> list[str]:
        jars = [*_ALL_JARS.glob("connector/*.jar"), *_AVRO.glob("*.jar")]
        settings = dict(self.settings(run.workload, run.folders))
        offsets = settings.pop("maxOffsetsPerTrigger")
        sink = record_schema("sent_value", (*PURCHASES.value, ("carrier", ["null", "string"])))
        schema_id = register(run.registry_url, f"{run.topic}-value", sink)
        given = {
            "spark": {**settings, "spark.jars": ",".join(map(str, sorted(jars)))},
            "source": {"kafka.bootstrap.servers": run.servers, "maxOffsetsPerTrigger": offsets},
            "sink": {
                "kafka.bootstrap.servers": run.servers,
                "topic": run.topic,
                **{f"kafka.{name}": value for name, value in PRODUCER.items()},
            },
            "schemas": {t.name: t.schemas()[f"{t.name}-value"] for t in (PURCHASES, PARCELS)},
            "sink_schema": sink,
            "frame": frame(schema_id).hex(),
            "ends": _topics_of_the_next_day(run),
            "checkpoint": str(run.folders.state),
        }
        file = run.folders.root / "job.json"
        file.write_text(json.dumps(given), encoding="utf-8")
        return [sys.executable, str(_PROGRAM), str(file)]


def _topics_of_the_next_day(run: Run) -> dict[str, str]:
    """Topics with a row each that is a day later than all others and joins nothing.

    Flink and rejoin know the end of their input and pad what still waits. A stream of Spark has no
    end, so that only a later row moves its watermark on.
    """
    at = encode_instant(START_MS + SPAN_MS + _DAY_MS)
    rows = (
        (PURCHASES, encode_long(-1) + DOUBLE.pack(0.0) + at),
        (PARCELS, encode_long(-2) + ENCODED_CARRIERS[0] + at),
    )
    ends = {topic.name: f"{run.topic}_{topic.name}_end" for topic, _ in rows}
    create_topics(run.servers, ends.values())
    producer = Producer({"bootstrap.servers": run.servers})
    for topic, row in rows:
        subject = f"{topic.name}-value"
        value = frame(register(run.registry_url, subject, topic.schemas()[subject])) + row
        for partition in range(PARTITIONS):
            producer.produce(ends[topic.name], value, partition=partition)
    producer.flush(_FLUSH_TIMEOUT_S)
    producer.close()
    return ends

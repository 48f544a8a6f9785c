"""Kafka Streams at its best known settings: the table-table left join of `regular-upsert`."""

from collections.abc import Mapping
from pathlib import Path

from bench.avro import record_schema, register
from bench.installing import copy_jars, run_step
from bench.peers.peer import PARALLELISM, Folders, Run
from bench.workloads.regular import ORDERS_A, ORDERS_B, SHIPPED
from bench.workloads.workload import PRODUCER, SinkKind, Workload
from spark_jobs.kernel.build import java

_HERE = Path(__file__).parent
_JARS = Path(__file__).resolve().parents[3] / "build" / "jars" / "kafka-streams"
_SOURCE = _HERE / "UpsertJoin.java"
_JVM = ("-Xmx3g", "-XX:+UseParallelGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    # one for each core
    "num.stream.threads": str(PARALLELISM),
    # changes of one key are folded until then, and there are fewer transactions; default 100 ms.
    # 10 s took a sixth less processor time than 2 s, but the end of a run waits for the last commit
    "commit.interval.ms": "5000",
    # large enough for all changes between two commits
    "statestore.cache.max.bytes": str(512 << 20),
    # a source topic is its table's changelog: nothing is written twice
    "topology.optimization": "all",
    # a commit writes out the whole cache, which may take longer than the default 10 s
    "producer.transaction.timeout.ms": "120000",
    "consumer.max.poll.records": "10000",
    "consumer.auto.offset.reset": "earliest",
    "replication.factor": "1",
}


class KafkaStreams:
    """Kafka Streams 4.3 in one JVM with two threads, state in RocksDB."""

    name = "kafka-streams"
    about = "exactly_once_v2, 2 threads, a commit every 5 s, caches of 512 MB, RocksDB"

    def refusal(self, workload: Workload) -> str | None:
        if workload.name == "regular-upsert":
            return None
        return "written for regular-upsert only"

    def sink(self, workload: Workload) -> SinkKind:
        return workload.sink

    def prepare(self) -> None:
        """Fetch the jars, and compile the program if its source is newer."""
        copy_jars(_HERE / "pom.xml", _JARS)
        made = _JARS / "UpsertJoin.class"
        if not made.exists() or made.stat().st_mtime < _SOURCE.stat().st_mtime:
            compiler = str(Path(java()).with_name("javac"))
            compile_it = [compiler, "-cp", f"{_JARS}/*", "-d", str(_JARS), str(_SOURCE)]
            run_step("compile UpsertJoin.java", compile_it)

    def settings(self, workload: Workload, folders: Folders) -> Mapping[str, str]:
        producer = {f"producer.{name}": value for name, value in PRODUCER.items()}
        return {**_SETTINGS, **producer, "state.dir": str(folders.state)}

    def command(self, run: Run) -> list[str]:
        properties = {
            "application.id": f"bench-{run.topic}",
            "bootstrap.servers": run.servers,
            **self.settings(run.workload, run.folders),
            **_topics(run),
        }
        file = run.folders.root / "streams.properties"
        file.write_text("".join(f"{k}={v}\n" for k, v in properties.items()), encoding="utf-8")
        return [java(), *_JVM, "-cp", f"{_JARS}:{_JARS}/*", "UpsertJoin", str(file)]


def _topics(run: Run) -> dict[str, str]:
    """Topics and schema ids of both tables and of the sink, whose schemas are registered here."""
    found = {"bench.sink.topic": run.topic}
    subjects = {
        "sink.key": (f"{run.topic}-key", record_schema("shipped_key", ORDERS_B.key or ())),
        "sink.value": (f"{run.topic}-value", record_schema("shipped_value", SHIPPED)),
    }
    for side, topic in (("left", ORDERS_A), ("right", ORDERS_B)):
        found[f"bench.{side}.topic"] = topic.name
        for part in ("key", "value"):
            subject = f"{topic.name}-{part}"
            subjects[f"{side}.{part}"] = (subject, topic.schemas()[subject])
    for name, (subject, schema) in subjects.items():
        found[f"bench.{name}.id"] = str(register(run.registry_url, subject, schema))
    return found

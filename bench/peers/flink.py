"""Flink SQL at its defaults, and at settings tuned for the throughput of joins."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.flink.install import JARS, PYTHON, install
from bench.peers.peer import PARALLELISM, Folders, Run
from bench.workloads.workload import SinkKind, Workload

_RUNNER = Path(__file__).parents[1] / "flink" / "run_sql.py"
# the collector for throughput, which rejoin has too; Java's default for this heap is G1
_HEAP, _TUNED_JVM = "-Xmx3g", "-Xmx3g -XX:+UseParallelGC"
_NO_SNAPSHOT = (
    "Flink 2.3 has no processing-time join with a table that is read as a stream: "
    "it looks rows up in an external system only"
)
_WITH_DELETES = ("three-way", "debezium-avro")
_LOST_DELETES = (
    "wrong results in Flink 2.3: its mini-batches fold an update and the delete that follows into "
    "nothing (FLINK-40681)"
)

_ROCKSDB = {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"}
_DEFAULT = {
    **_ROCKSDB,
    # in one JVM Flink gives RocksDB 128 MB, which no cluster would have
    "taskmanager.memory.managed.size": "1 gb",
    "execution.checkpointing.interval": "10 s",
}
_TUNED = {
    # rows between operators of a chain are passed on, not copied
    "pipeline.object-reuse": "true",
    # network buffers leave when they are full, not every 100 ms
    "execution.buffer-timeout.enabled": "false",
    # fewer flushes of RocksDB and fewer transactions; the end of the input makes one at once
    "execution.checkpointing.interval": "10 s",
}
_TUNED_ROCKSDB = {
    **_ROCKSDB,
    **_TUNED,
    # blocks and write buffers of the whole state stay in memory
    "taskmanager.memory.managed.size": "2 gb",
    # an outer join asks for many keys that the other side does not have
    "state.backend.rocksdb.use-bloom-filter": "true",
    # state fits on the disk: flushes and compactions need not compress it
    "state.backend.rocksdb.compression.per.level": "NO_COMPRESSION",
}
_HEAP_STATE = {
    **_TUNED,
    "state.backend.type": "hashmap",
    # RocksDB's memory is not needed
    "taskmanager.memory.managed.size": "64 mb",
}
_MULTI_JOIN = {
    # joins on one key are one operator, which keeps no result of the first one
    "table.optimizer.multi-join.enabled": "true",
}
_MINI_BATCH = {
    # changes of one key that come close together meet the state once
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
}


@dataclass(frozen=True, slots=True)
class Flink:
    """Flink SQL in one JVM with a mini cluster, two task slots, exactly-once checkpoints."""

    name: str
    about: str
    fixed: Mapping[str, str]
    overrides: Mapping[str, str]
    jvm: str = _TUNED_JVM

    def refusal(self, workload: Workload) -> str | None:
        if workload.name == "temporal-proc":
            return _NO_SNAPSHOT
        if self.fixed.keys() >= _MULTI_JOIN.keys() and workload.name != "three-way":
            return "for joins of more than two tables"
        if self.fixed.keys() >= _MINI_BATCH.keys() and workload.name in _WITH_DELETES:
            return _LOST_DELETES
        return None

    def sink(self, workload: Workload) -> SinkKind:
        return workload.sink

    def prepare(self) -> None:
        install()

    def settings(self, workload: Workload, folders: Folders) -> Mapping[str, str]:
        return {
            "parallelism.default": str(PARALLELISM),
            "taskmanager.numberOfTaskSlots": str(PARALLELISM),
            "io.tmp.dirs": str(folders.root / "tmp"),
            "table.local-time-zone": "UTC",
            "execution.checkpointing.mode": "EXACTLY_ONCE",
            "execution.checkpointing.dir": folders.state.resolve().as_uri(),
            **self.fixed,
            **self.overrides,
        }

    def command(self, run: Run) -> list[str]:
        job = run.write_sql(self.settings(run.workload, run.folders))
        return flink_command(job, run.folders.root, self.jvm)


def flink_command(job: Path, logs: Path, jvm: str) -> list[str]:
    """Runs a job file in one JVM, with these options of Java."""
    environment = ["env", f"JVM_ARGS={jvm}", f"FLINK_LOG_DIR={logs}"]
    jars = [str(jar) for jar in sorted(JARS.glob("*.jar"))]
    return [*environment, str(PYTHON), "-I", str(_RUNNER), str(job), *jars]


def flinks(overrides: Mapping[str, str]) -> tuple[Flink, ...]:
    """Flink at each of its settings, changed by `overrides`."""
    return (
        Flink(
            "flink",
            "its defaults, RocksDB with 1 GB, a checkpoint every 10 s",
            _DEFAULT,
            overrides,
            _HEAP,
        ),
        Flink(
            "flink-tuned",
            "object reuse, RocksDB with 2 GB and Bloom filters, full network buffers",
            _TUNED_ROCKSDB,
            overrides,
        ),
        Flink(
            "flink-tuned-mini-batch",
            "as flink-tuned, and mini-batches of 2 s or 50,000 rows",
            {**_TUNED_ROCKSDB, **_MINI_BATCH},
            overrides,
        ),
        Flink(
            "flink-tuned-multi-join",
            "as flink-tuned, and one operator for all joins on one key",
            {**_TUNED_ROCKSDB, **_MULTI_JOIN},
            overrides,
        ),
        Flink(
            "flink-heap",
            "as flink-tuned, but with all state in the heap, where it has to fit",
            _HEAP_STATE,
            overrides,
        ),
    )

"""The whole seam between Python and Scala: one typed function per method of Kernel.scala.

Nothing else in the product reaches into the JVM. Nodes and plans cross as the JSON of the planner's
dataclasses (plan_json.py), results as JSON of the types below.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, Required, TypeAlias, TypedDict, cast
from urllib.parse import unquote, urlparse
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.query import StreamingQuery

_JavaError: type[Exception] = import_module("py4j.protocol").Py4JJavaError  # py4j has no types
Message: TypeAlias = Mapping[str, Any]


class SourceLevels(TypedDict):
    """What an operator says of one source partition: flags are 0 or 1, times in milliseconds."""

    watermark: int
    idle: int
    loaded: int


OperatorLevels = TypedDict(
    "OperatorLevels",
    {
        "rows": dict[Literal["left", "right"], int],
        "late": int,
        "gate-timeouts": int,
        "unknown-retractions": int,
        "watermark": int,
        "open": int,
        "source": dict[str, SourceLevels],
    },
    total=False,
)
"""Over all key groups; `source` by number: topic index * 65536 + partition."""


class LookupFacts(TypedDict):
    """A table that is looked up: LookupTable.scala says what each field is."""

    isStored: bool
    rows: int
    isIndexed: bool
    key: list[str]
    addIndex: str


class QueryCounters(TypedDict, total=False):
    """What the tasks of one query have counted; what was never counted is absent."""

    rows: dict[str, int]
    partial: int
    rejects: dict[str, dict[str, int]]
    lost: dict[str, int]
    changes: dict[str, int]
    unwritten: dict[str, int]
    written: int
    latency: dict[str, int]
    latency_ms: int
    lookups: dict[str, dict[str, int]]
    operators: dict[str, OperatorLevels]


class Observed(TypedDict, total=False):
    """What a query does: whether an epoch with records runs, and Spark's newest report of one."""

    runsRecords: Required[bool]
    progress: Message


@dataclass(frozen=True, slots=True)
class Counters:
    """The kernel's counters at one moment.

    `jvm`: what is counted outside of tasks, `commits` and `aborts` by query, `lookup-retries` and
    `lookup-failures` by query and operator, `calls` and `failures` of `registry`, and `files` of
    `overflow`.
    """

    queries: Mapping[str, QueryCounters] = field(default_factory=dict)
    jvm: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of(self, query: str) -> QueryCounters:
        return self.queries.get(query, {})


class CheckpointFiles(Protocol):
    """CheckpointFiles.scala: the files of one query's checkpoint."""

    def read(self, name: str) -> str | None: ...
    def write(self, name: str, text: str) -> None: ...
    def delete(self, name: str) -> None: ...
    def size(self, folder: str) -> int: ...
    def last(self, folder: str) -> int: ...
    def entries(self, folder: str) -> Sequence[int]: ...
    def lock(self) -> bool: ...
    def unlock(self) -> None: ...
    def hasLocks(self) -> bool: ...


class CheckpointCopy(Protocol):
    """CheckpointCopy.scala: a job's checkpoint and the folder that it is copied to."""

    def files(self) -> str: ...
    def hasTarget(self) -> bool: ...
    def copy(self, file: str) -> None: ...


class StateReader(Protocol):
    """StateReader.scala: the state of one operator; all texts are JSON."""

    def partitions(self) -> int: ...
    def keySchema(self) -> str: ...
    def size(self, partition: int) -> str: ...
    def top(self, partition: int, limit: int) -> str: ...
    def get(self, key: str, limit: int) -> str: ...


class LocalRun(Protocol):
    """LocalRun.scala: a plan in memory; all texts are JSON."""

    def feed(self, table: str, records: str) -> None: ...
    def advance(self, clock_ms: int) -> None: ...
    def holdLoaded(self) -> None: ...
    def loaded(self, table: str) -> None: ...
    def restart(self) -> None: ...
    def step(self) -> str: ...
    def computed(self, values: str) -> str: ...
    def end(self) -> str: ...


_KERNELS: WeakKeyDictionary[SparkSession, "Kernel"] = WeakKeyDictionary()


class Kernel:
    """The kernel in one JVM: that of a Spark session, or one of its own (standalone.py)."""

    def __init__(self, jvm: Any) -> None:
        # the object itself: py4j asks for each part of a class's name, and for each static method
        self._scala = getattr(getattr(jvm.org.apache.spark.sql.rejoin, "Kernel$"), "MODULE$")

    @classmethod
    def of(cls, spark: SparkSession) -> "Kernel":
        if spark not in _KERNELS:
            _KERNELS[spark] = cls(spark._jvm)
        return _KERNELS[spark]

    def ingest(
        self,
        records: DataFrame,
        scan: Message,
        query: str,
        *,
        chunked: bool,
        real_time: bool,
        steps: bool,
    ) -> DataFrame:
        """Kafka records to envelopes: rows, rejects and marks of one table.

        `chunked`: many rows per envelope, as stateful operators take them. `real_time`: rows leave
        one by one, and marks among them. `steps`: with barriers, for which they wait.
        """
        made = self._scala.ingest(records._jdf, json.dumps(scan), query, chunked, real_time, steps)
        return _frame(records, made)

    def stateful(
        self,
        envelopes: DataFrame,
        node: Message,
        query: str,
        *,
        passes_loaded: bool,
        real_time: bool,
        steps: bool,
        moves_on: bool,
        groups: int,
        hears_end: bool,
        even_groups: bool,
    ) -> DataFrame:
        """Envelopes through a stateful operator.

        `passes_loaded`: an operator further on has to hear which partitions are loaded.
        `real_time`: they come one by one. `steps`: they wait for barriers. `moves_on`: the changes
        go to another operator. `groups`: how many key groups there are. `hears_end`: all of them
        come from scans, which say when an epoch of real-time mode ends. `even_groups`: as the
        manifest has it.
        """
        facts = (passes_loaded, real_time, steps, moves_on, groups, hears_end, even_groups)
        made = self._scala.stateful(envelopes._jdf, json.dumps(node), query, *facts)
        return _frame(envelopes, made)

    def lookup(
        self, envelopes: DataFrame, node: Message, query: str, folder: str | None
    ) -> DataFrame:
        """Envelopes of left rows with the answers to their lookups.

        `folder`: the query's checkpoint, where an epoch that is repeated finds them again; None
        where it may meet other rows.
        """
        made = self._scala.lookup(envelopes._jdf, json.dumps(node), query, folder)
        return _frame(envelopes, made)

    def check_lookup(self, node: Message) -> LookupFacts:
        """What the database of a lookup join says; raises Java's exception if it refuses."""
        found: LookupFacts = json.loads(self._scala.checkLookup(json.dumps(node)))
        return found

    def rekey(self, changes: DataFrame, node: Message, *, steps: bool) -> DataFrame:
        """An operator's changes to envelopes under another key; `steps`: with barriers."""
        return _frame(changes, self._scala.rekey(changes._jdf, json.dumps(node), steps))

    def clock(self, spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """A clock; its marks are ticks, partition counts and ends. Clock.scala has `options`."""
        made = self._scala.clock(spark._jsparkSession, json.dumps(options))
        return ClassicDataFrame(made, spark)

    def emit(self, changes: DataFrame, sink: Message, number: int) -> DataFrame:
        """Encode the changes of the sink's input `number` as records and dead-letter records."""
        return _frame(changes, self._scala.emit(changes._jdf, json.dumps(sink), number))

    def arguments(self, changes: DataFrame, sink: Message, number: int, column: int) -> DataFrame:
        """The changes of input `number` with the arguments of a column that Python computes.

        They are called argument0, whether the row needs the column, and argument1, argument2, ...
        """
        made = self._scala.arguments(changes._jdf, json.dumps(sink), number, column)
        return _frame(changes, made)

    def take_over(
        self,
        sink: Message,
        writers: int,
        epoch: int,
        *,
        since: int,
        repeated: bool,
        known: int,
        written: Literal["yes", "no"] | None,
    ) -> int:
        """Make the ledgers of a sink's writers this driver's.

        `since`: the epoch after the last one that had anything to write. `known`: how many writers
        are known to have had a ledger. `written`: the operator's answer
        to whether a repeated epoch is in Kafka already. Returns how many ledgers needed it.
        """
        facts = (epoch, since, repeated, known, written)
        return int(self._scala.takeOver(json.dumps(sink), writers, *facts))

    def observed(self, query: StreamingQuery, known: str) -> Observed:
        """What a query does; without its newest report if that has the timestamp `known`."""
        found: Observed = json.loads(self._scala.observed(query._jsq, known))
        return found

    def topic_ids(self, client: Mapping[str, str], topics: Sequence[str]) -> dict[str, str]:
        """The ids of topics by name; `client` are properties of Kafka's clients."""
        found = self._scala.topicIds(json.dumps(dict(client)), json.dumps(list(topics)))
        return dict(json.loads(str(found)))

    def counters(self, spark: SparkSession) -> Counters:
        """What tasks and the JVM have counted so far."""
        return Counters(**json.loads(str(self._scala.counters(spark._jsparkSession))))

    def saved_counters(self, spark: SparkSession) -> str:
        """The same for a checkpoint, as `restore_counters` takes it."""
        return str(self._scala.savedCounters(spark._jsparkSession))

    def reset_counters(self, spark: SparkSession) -> None:
        """Forget what an earlier job of the same application has counted."""
        self._scala.resetCounters(spark._jsparkSession)

    def restore_counters(self, spark: SparkSession, saved: str) -> None:
        """Count on from where an earlier driver left off."""
        self._scala.restoreCounters(spark._jsparkSession, saved)

    def open_gate(self) -> None:
        """Let the sources start epochs."""
        self._scala.openGate()

    def close_gate(self) -> None:
        """Let the sources start no further epoch; in real-time mode it ends the running one."""
        self._scala.closeGate()

    def held_queries(self) -> list[str]:
        """The queries in real-time mode that have ended their epoch at a closed gate."""
        return list(json.loads(str(self._scala.heldQueries())))

    def forget_origins(self, spark: SparkSession) -> None:
        """Make what Spark writes for the tasks of each epoch smaller."""
        self._scala.forgetOrigins(spark._jsparkSession)

    def follow_process(self, pid: int) -> None:
        """End this JVM soon after a process."""
        self._scala.followProcess(pid)

    def halt_after(self, seconds: int) -> None:
        """End this JVM after some seconds, whatever it is doing."""
        self._scala.haltAfter(seconds)

    def close_stores(self) -> None:
        """Close this JVM's state stores once no task uses them.

        What RocksDB's threads were still doing when a JVM ends can make it crash.
        """
        self._scala.closeStores()

    def checkpoint_files(self, spark: SparkSession, folder: str) -> CheckpointFiles:
        """The driver's own files in a checkpoint, on any file system that Spark can reach."""
        return cast(CheckpointFiles, self._scala.checkpointFiles(spark._jsparkSession, folder))

    def stored_files(self, folder: str) -> CheckpointFiles:
        """The same without a session."""
        return cast(CheckpointFiles, self._scala.storedFiles(folder))

    def checkpoint_copy(self, source: str, target: str) -> CheckpointCopy:
        """A job's checkpoint and the folder that it is to be copied to."""
        return cast(CheckpointCopy, self._scala.checkpointCopy(source, target))

    def set_partitions(self, query: str, counts: Mapping[int, int]) -> None:
        """Say how many partitions each topic (by index) of a query has."""
        self._scala.setPartitions(query, json.dumps(sorted(counts.items())))

    def executors(self, spark: SparkSession) -> int:
        """How many executors the application has on its cluster."""
        return int(self._scala.executors(spark._jsparkSession))

    def spread_state(self, spark: SparkSession, query: str) -> int:
        """Spread the state of a query over the executors; returns how many tasks move."""
        return int(self._scala.spreadState(spark._jsparkSession, query))

    def registry_waits(self) -> dict[str, int]:
        """Registries that tasks wait for, by URL: since when, in epoch milliseconds."""
        return dict(json.loads(str(self._scala.registryWaits())))

    def state_reader(
        self, folder: str, number: int, epoch: int, node: Message, *, even_groups: bool
    ) -> StateReader:
        """Look into what an operator, the `number`th of its query, had in state at an epoch."""
        made = self._scala.stateReader(folder, number, epoch, json.dumps(node), even_groups)
        return cast(StateReader, made)

    def fit(self, scan: Message, *, is_key: bool, schema_id: int) -> Message:
        """Whether a table could read records of a registered schema, as AvroFit.scala says it."""
        return cast(Message, json.loads(self._scala.fit(json.dumps(scan), is_key, schema_id)))

    def broker_clock(self, client: Mapping[str, str]) -> Message:
        """The time at a cluster, as BrokerClock.scala says it."""
        return cast(Message, json.loads(self._scala.brokerClock(json.dumps(dict(client)))))

    def local(self, plan: Message) -> LocalRun:
        """A plan in memory, without Spark's engine."""
        return cast(LocalRun, self._scala.local(json.dumps(plan)))


def _frame(given: DataFrame, made: Any) -> DataFrame:
    """A frame of the kernel's as PySpark shows it."""
    return ClassicDataFrame(made, given.sparkSession)


def jar_of(spark: SparkSession, class_name: str) -> Path | None:
    """The jar on the driver's class path that has a class; None if no jar has it."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = loader.getResource(class_name.replace(".", "/") + ".class")
    if found is None:
        return None
    inside = str(found.toString()).removeprefix("jar:").partition("!")[0]
    return Path(unquote(urlparse(inside).path))


def is_stopped(spark: SparkSession) -> bool:
    return spark.sparkContext._jsc is None


def has_file_system(spark: SparkSession, scheme: str) -> bool:
    """Whether a class on the driver's class path reads and writes `scheme:` locations."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
    except _JavaError:
        return False
    return True


def setting(spark: SparkSession, name: str) -> str:
    """What the Spark application has set, without a default; empty for nothing."""
    context: Any = spark.sparkContext._jsc
    return str(context.sc().conf().get(name, ""))

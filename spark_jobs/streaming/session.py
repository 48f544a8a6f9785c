"""The Spark session of a job, its settings, and calls to the kernel in its JVM."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.jvm import Jvm, JvmSettings, class_path, close
from spark_jobs.options.kinds import REFERENCE
from spark_jobs.options.spark import (
    DRIVER_DEFAULT_JVM,
    DRIVER_HEAP,
    DRIVER_JVM,
    DRIVER_LIBRARIES,
    DRIVER_PATH,
    EXECUTOR_HEAP,
    EXECUTOR_JVM,
    EXECUTOR_PATH,
    EXECUTOR_REPORTS,
    FIXED,
    PLUGINS,
    REDACTION,
    ROCKSDB,
    default_state_mb,
    has_executors,
    is_on_this_machine,
    overhead_mb,
    rocksdb_mb,
)
from spark_jobs.settings import JobSettings, machine_memory_mb, resolve_all
from spark_jobs.streaming.class_archive import java_options
from spark_jobs.streaming.object_store import settings_for

LOOPBACK = "127.0.0.1"
JVM_LOG = "driver.log"
# rows live as long as the tasks of an epoch: up to half of the heap for them, taken while a
# twentieth of the time goes into collections; a large metaspace, because otherwise Spark's classes
# fill it and cause full collections
_JVM_OPTIONS = (
    "-XX:+UseParallelGC",
    "-XX:NewRatio=1",
    "-XX:GCTimeRatio=19",
    "-XX:MetaspaceSize=256m",
    "-XX:+ExitOnOutOfMemoryError",
)
# how often memory that RocksDB's threads have freed goes back to the machine. It takes up to a
# twentieth of a second in which they wait, so not in real-time mode
_GIVEN_BACK = "-XX:TrimNativeHeapInterval=30000"
# how often a method is called before the optimising compiler takes it: planning and start-up would
# otherwise keep it busy while rows wait for it. In real-time mode rows come one by one, and would
# take minutes to call a method that often
_CALLS_UNTIL_OPTIMISED = 100_000
_CALLS_IN_REAL_TIME = 20_000
# glibc would keep what RocksDB's threads have freed in as many arenas as eight times the cores
_MALLOC_ARENAS = ("MALLOC_ARENA_MAX", "2")
_EXECUTOR_HEAP_MB = 1024  # Spark's own default
# what a quiet job fills, and so occupies, between two collections: the space for new objects grows
# from here with the load. In real-time mode rows wait for each collection
_NEW_MB = 32
_NEW_IN_REAL_TIME_MB = 128
# what a user's properties may change
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.stopTimeout": "5s",
    "spark.sql.streaming.stateStore.numStateStoreMaintenanceThreads": "2",
    f"{ROCKSDB}writeBufferSizeMB": "128",  # so that there are few files to merge (Compaction.scala)
    # a batch reads many cells of a block; with 4 KB, indices take a good part of RocksDB's memory
    f"{ROCKSDB}blockSizeKB": "16",
    # what each task sorts chunks of rows in, and keeps: Spark would take a hundredth of the heap
    "spark.buffer.pageSize": "1m",
}
# Spark keeps for its page what thousands of past epochs did; nobody asks for it without the page
_WITHOUT_PAGE = {
    "spark.ui.liveUpdate.period": "-1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.ui.explainMode": "simple",
}
# a silent executor is replaced after a minute, and a task that waits for its files asks twice; with
# Spark's own values both take ten minutes, as long as a transaction may be open
_EXECUTOR_DEFAULTS = {
    "spark.network.timeout": "60s",
    "spark.network.timeoutInterval": "10s",
    "spark.executor.heartbeatInterval": "5s",
    "spark.shuffle.io.maxRetries": "1",
    # on Kubernetes Spark ends the driver after a number of failed pods, otherwise of its whole life
    "spark.executor.maxNumFailures": "20",
    "spark.executor.failuresValidityInterval": "10m",
    f"spark.executorEnv.{_MALLOC_ARENAS[0]}": _MALLOC_ARENAS[1],
}
# rows go from task to task in memory; and too few slots for the tasks, which all run at once, are
# an error rather than a wait without end
REAL_TIME_DEFAULTS = {
    "spark.shuffle.manager.incremental": "org.apache.spark.sql.rejoin.run.LocalShuffle",
    "spark.scheduler.pipelinedGroup.slotCheck.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """A JVM on its way up, and the settings with which Spark will start in it."""

    jvm: Jvm
    _options: Mapping[str, str]
    _is_here: bool

    @classmethod
    def of(cls, settings: JobSettings, jars: Iterable[Path]) -> Self:
        """Start a JVM that logs to `JVM_LOG` and ends with this process."""
        options = session_options(settings, [str(jar) for jar in jars])
        if options["spark.ui.enabled"] != "true":
            options = {**_WITHOUT_PAGE, **options}
        # the JVM's command line is public: values with references follow when it runs
        at_launch = {key: value for key, value in options.items() if not REFERENCE.search(value)}
        os.environ.setdefault(*_MALLOC_ARENAS)  # noqa: TID251 - for the JVM, which inherits it
        jvm = Jvm(_jvm_settings(at_launch), settings.status_dir / JVM_LOG)
        return cls(jvm, options, is_on_this_machine(settings.master))

    def session(self) -> SparkSession:
        """Start Spark; raises ConfigError if the JVM did not come up."""
        gateway = self.jvm.gateway()
        spark = SparkSession(SparkContext(conf=_conf(resolve_all(self._options)), gateway=gateway))
        kernel = Kernel.of(spark)
        kernel.follow_process(os.getpid())
        kernel.forget_origins(spark)
        if self._is_here:
            spark.sparkContext.pythonExec = sys.executable  # runs the functions of the job
        return spark


def start_session(settings: JobSettings, jars: Iterable[Path]) -> SparkSession:
    """Start a JVM, and Spark in it."""
    return Launch.of(settings, jars).session()


def session_options(settings: JobSettings, jars: list[str]) -> dict[str, str]:
    """Spark's settings for a job; those of the user may hold references to secrets."""
    given = dict(settings.spark_properties)
    memory = _memory(settings)
    options = {
        **_DEFAULTS,
        **settings_for(settings.checkpoint),
        "spark.redaction.regex": REDACTION,
        "spark.app.name": settings.name,
        "spark.master": settings.spark_master(),
        DRIVER_HEAP: f"{memory.driver_mb}m",
        "spark.log.level": settings.environment.spark_log_level,
        "spark.sql.shuffle.partitions": str(settings.cores()),
        f"{ROCKSDB}maxMemoryUsageMB": str(rocksdb_mb(memory.state_mb)),
    }
    if settings.real_time is not None:
        options |= REAL_TIME_DEFAULTS
    if is_on_this_machine(settings.master):
        options |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if has_executors(settings.master):
        overhead = f"{overhead_mb(memory.tasks_mb, memory.state_mb)}m"
        options |= {**_EXECUTOR_DEFAULTS, "spark.executor.memoryOverhead": overhead}
        # the driver has them on its class path, because it needs them before there is a session
        options["spark.jars"] = ",".join(jars)
    return {**options, **_executor_path(settings, jars), **given, **_own(settings, jars), **FIXED}


def _own(settings: JobSettings, jars: list[str]) -> dict[str, str]:
    """Lists that begin with rejoin's own entries, and go on with those of the user."""
    given, archive = settings.spark_properties, settings.environment.class_archive
    memory = _memory(settings)
    is_real_time = settings.real_time is not None
    calls = _CALLS_IN_REAL_TIME if is_real_time else _CALLS_UNTIL_OPTIMISED
    new_mb = _NEW_IN_REAL_TIME_MB if is_real_time else _NEW_MB
    given_back = () if is_real_time else (_GIVEN_BACK,)
    common = (*_optimised_after(calls), *_JVM_OPTIONS, *given_back)
    driver = (*common, *_heap_of_driver(memory.driver_mb, new_mb), *java_options(archive))
    executors = [*common, f"-Xms{memory.tasks_mb}m"]
    if archive == "use" and _executors_are_here(settings):
        executors += java_options("use")
    return {
        DRIVER_PATH: ":".join(_class_path(settings, jars)),
        DRIVER_JVM: " ".join([*driver, *_listed(given, DRIVER_JVM)]),
        EXECUTOR_JVM: " ".join([*executors, *_listed(given, EXECUTOR_JVM)]),
        PLUGINS: ",".join([EXECUTOR_REPORTS, *_listed(given, PLUGINS)]),
    }


def _jvm_settings(options: Mapping[str, str]) -> JvmSettings:
    """What spark-submit reads from these of Spark's properties."""
    java_options = f"{options.get(DRIVER_DEFAULT_JVM, '')} {options[DRIVER_JVM]}"
    return JvmSettings(
        heap=options[DRIVER_HEAP],
        class_path=options[DRIVER_PATH].split(":"),
        java_options=shlex.split(java_options),
        submitted=options,
        library_path=options.get(DRIVER_LIBRARIES),
    )


def _class_path(settings: JobSettings, jars: list[str]) -> list[str]:
    return [*jars, *_listed(settings.spark_properties, DRIVER_PATH)]


def _executor_path(settings: JobSettings, jars: list[str]) -> dict[str, str]:
    """The driver's class path, as the archive of loaded classes is for no other one."""
    if not _executors_are_here(settings):
        return {}
    return {EXECUTOR_PATH: ":".join(class_path(_class_path(settings, jars)))}


def _executors_are_here(settings: JobSettings) -> bool:
    return has_executors(settings.master) and is_on_this_machine(settings.master)


@dataclass(frozen=True, slots=True)
class _Memory:
    """The heaps of the driver and of what runs tasks, and the state's memory beside the latter."""

    driver_mb: int
    tasks_mb: int
    state_mb: int


def _memory(settings: JobSettings) -> _Memory:
    environment = settings.environment
    heap_mb = environment.memory_mb or min(max(machine_memory_mb() // 8, 1024), 8192)
    tasks_mb = heap_mb
    if has_executors(settings.master):
        wanted = settings.spark_properties.get(EXECUTOR_HEAP, "")
        tasks_mb = memory_mb(wanted) or _EXECUTOR_HEAP_MB
    state_mb = environment.state_memory_mb or default_state_mb(tasks_mb)
    return _Memory(heap_mb, tasks_mb, state_mb)


def _heap_of_driver(heap_mb: int, new_mb: int) -> tuple[str, str]:
    """Old objects have their half from the start: to give them more, all would be collected."""
    new_mb = min(new_mb, heap_mb // 4)
    return f"-Xms{heap_mb // 2 + new_mb}m", f"-XX:NewSize={new_mb}m"


def _optimised_after(calls: int) -> tuple[str, ...]:
    """The thresholds of the optimising compiler, for calls, loops, and both together."""
    return (
        f"-XX:Tier4InvocationThreshold={calls}",
        f"-XX:Tier4MinInvocationThreshold={calls // 5}",
        f"-XX:Tier4CompileThreshold={calls * 2}",
        f"-XX:Tier4BackEdgeThreshold={calls * 6}",
    )


def memory_mb(text: str) -> int | None:
    """A size as Spark writes it, in MB; None if it is none.

    >>> memory_mb("2g"), memory_mb("512m"), memory_mb("")
    (2048, 512, None)
    """
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    return None if found is None else int(found[1]) * 1024 ** "kmgt".index(found[2] or "m") // 1024


def _conf(options: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(options.items()))


def _listed(given: Mapping[str, str], key: str) -> list[str]:
    """What the user adds to a list of rejoin's own."""
    return [given[key]] if key in given else []


def stop_session(spark: SparkSession, within_s: int) -> None:
    """Stop Spark and its JVM; after `within_s` seconds the JVM kills itself."""
    gateway, kernel = spark.sparkContext._gateway, Kernel.of(spark)
    kernel.halt_after(within_s)
    with contextlib.suppress(Exception):
        spark.stop()
        kernel.close_stores()
    close(gateway, within_s)

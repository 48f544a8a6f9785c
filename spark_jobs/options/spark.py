"""Where Spark runs, and which of Spark's own properties a job may set.

A Spark master is written as for spark-submit; properties are SET statements of the job, or stand in
a file in the form of spark-defaults.conf.
"""

import re
from collections.abc import Iterator, Mapping

from spark_jobs.options.kinds import REFERENCE

REDACTION = r"(?i)secret|password|token|access[.]?key|jaas|user-info|ssl\.keystore\.key"
# names of files and of Kubernetes secrets, which are no secrets themselves
_PLACE = re.compile(r"(?i)file$|^spark\.kubernetes\.(?:driver|executor)\.secret")
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
EXECUTOR_HEAP = "spark.executor.memory"
DRIVER_HEAP = "spark.driver.memory"
DRIVER_PATH = "spark.driver.extraClassPath"
DRIVER_LIBRARIES = "spark.driver.extraLibraryPath"
DRIVER_DEFAULT_JVM = "spark.driver.defaultJavaOptions"
DRIVER_JVM = "spark.driver.extraJavaOptions"
EXECUTOR_JVM = "spark.executor.extraJavaOptions"
EXECUTOR_PATH = "spark.executor.extraClassPath"
_AT_LAUNCH = (DRIVER_PATH, DRIVER_LIBRARIES, DRIVER_DEFAULT_JVM, DRIVER_JVM, EXECUTOR_JVM)
PLUGINS = "spark.plugins"
EXECUTOR_REPORTS = "org.apache.spark.sql.rejoin.run.ExecutorReports"

# results or checkpoints depend on these values
FIXED = {
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",
    # as in Flink, the last value of a key that a map is given twice
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # the kernel writes the rows of the state store itself
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "false",
    # from the first epoch on, because v1 could never change to real-time mode
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    f"{ROCKSDB}changelogCheckpointing.enabled": "true",
    # half the throughput if Spark counts the rows; the kernel counts its rows itself
    f"{ROCKSDB}trackTotalNumberOfRows": "false",
    f"{ROCKSDB}boundedMemoryUsage": "true",
}
_FIXED_BECAUSE = {
    "spark.speculation": "two attempts of a task would fence each other's writer",
    "spark.dynamicAllocation.enabled": "an executor that goes away takes its state with it",
}
# what rejoin sets from settings of its own
_OTHERWISE = {
    "spark.app.name": "SET 'pipeline.name'",
    "spark.master": "use --master or REJOIN_MASTER",
    "spark.driver.memory": "use REJOIN_MEMORY_MB",
    "spark.log.level": "use REJOIN_SPARK_LOG_LEVEL",
    "spark.sql.shuffle.partitions": "SET 'rejoin.parallelism'",
    f"{ROCKSDB}maxMemoryUsageMB": "use REJOIN_STATE_MEMORY_MB",
    "spark.sql.catalogImplementation": "tables are those of the job's file; leave it out",
    "spark.jars": "rejoin lists its own jars there; leave it out",
    "spark.submit.deployMode": "the driver runs where `rejoin run` does; leave it out",
}
_ROCKSDB_LEAST_MB = 512
_LEAST_OVERHEAD_MB = 384  # Spark's own
_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
_ADDRESS = re.compile(r"(spark|k8s)://\S+")
_PROPERTY = re.compile(r"(spark\.[^\s=:]+)\s*[\s=:]\s*(.*)")


def default_state_mb(heap_mb: int) -> int:
    """Memory for state in a JVM with tasks, beside its heap: as much, as Flink gives it."""
    return max(heap_mb, 768)


def rocksdb_mb(state_mb: int) -> int:
    """RocksDB's part of the memory for state; the kernel keeps cells in the rest (KeptCells.scala).

    The first 512 MB are RocksDB's, because its cache has to hold the indices of its files; of what
    is beyond it has a quarter.

    >>> rocksdb_mb(400), rocksdb_mb(768), rocksdb_mb(1536)
    (400, 576, 768)
    """
    return min(state_mb, _ROCKSDB_LEAST_MB) + max(state_mb - _ROCKSDB_LEAST_MB, 0) // 4


def overhead_mb(heap_mb: int, state_mb: int) -> int:
    """An executor's memory beside its heap: that of its state, and what Spark itself would add.

    Where the state is larger than its memory, a job was seen to take nearly a quarter of that
    beyond it (docs/bench.md, State beyond memory); what takes it is not known.
    """
    return state_mb + state_mb // 4 + max(heap_mb // 10, _LEAST_OVERHEAD_MB)


def is_master(text: str) -> bool:
    """Whether Spark knows masters of this form; an empty one means a local default."""
    forms = (_LOCAL, _LOCAL_CLUSTER, _ADDRESS)
    return text == "" or any(form.fullmatch(text) for form in forms)


def has_executors(master: str) -> bool:
    """Whether tasks run in other JVMs than the driver's.

    >>> has_executors("local[2]"), has_executors("local-cluster[2,1,1024]")
    (False, True)
    """
    return not (master == "" or _LOCAL.fullmatch(master))


def is_on_this_machine(master: str) -> bool:
    return not has_executors(master) or _LOCAL_CLUSTER.fullmatch(master) is not None


def known_cores(master: str, properties: Mapping[str, str], here: int) -> int | None:
    """The cores that the master gives a job; None if only the master knows.

    `here`: the cores of this machine.

    >>> known_cores("local-cluster[3,2,1024]", {}, 8)
    6
    """
    if master in ("", "local[*]"):
        return here
    if found := _LOCAL.fullmatch(master):
        return here if found[1] == "*" else int(found[1] or 1)
    if found := _LOCAL_CLUSTER.fullmatch(master):
        return int(found[1]) * int(found[2])
    given = {key: int(value) for key, value in properties.items() if value.isdigit()}
    if "spark.cores.max" in given:
        return given["spark.cores.max"]
    instances, cores = given.get("spark.executor.instances"), given.get("spark.executor.cores")
    return instances * cores if instances and cores else None


def is_property(name: str) -> bool:
    """Whether Spark, and not rejoin, reads a setting of this name."""
    return name.startswith("spark.")


def parse_properties(text: str) -> tuple[dict[str, str], list[int]]:
    """The properties of a file, and the numbers of lines that are none; `#` begins a comment.

    >>> parse_properties("spark.cores.max 4\\nspark.executor.memory=2g\\ncores 3")
    ({'spark.cores.max': '4', 'spark.executor.memory': '2g'}, [3])
    """
    found: dict[str, str] = {}
    others: list[int] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if match := _PROPERTY.fullmatch(line):
            found[match[1]] = match[2].strip()
        elif line and not line.startswith("#"):
            others.append(number)
    return found, others


def refusals(properties: Mapping[str, str]) -> Iterator[str]:
    """Why some of the properties cannot be set, a text for each."""
    for key, value in properties.items():
        if key in FIXED:
            if value != FIXED[key]:
                because = _FIXED_BECAUSE.get(key, "results or checkpoints depend on it")
                yield f"'{key}' has to be {FIXED[key]}: {because}"
        elif key in _OTHERWISE:
            yield f"'{key}': {_OTHERWISE[key]}"
        elif key in _AT_LAUNCH and REFERENCE.search(value):
            yield f"'{key}' ends on a command line, which may not hold secrets"
        elif _is_secret(key) and not REFERENCE.search(value):
            yield f"'{key}' is a secret: refer to it, ${{file:PATH}} or ${{env:NAME}}"


def _is_secret(key: str) -> bool:
    """Whether the value of a property may not stand in a file.

    >>> _is_secret("spark.hadoop.fs.s3a.secret.key"), _is_secret("spark.authenticate.secret.file")
    (True, False)
    """
    return re.search(REDACTION, key) is not None and _PLACE.search(key) is None

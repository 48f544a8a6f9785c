"""The Spark session of a job, its settings, and calls to the kernel in its JVM."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.standalone import close
from spark_jobs.settings import JobSettings, machine_memory_mb
from spark_jobs.streaming.class_archive import java_options

LOOPBACK = "127.0.0.1"
JVM_LOG = "driver.log"
# rows live as long as the tasks of an epoch: half of the heap for them; a large metaspace, because
# otherwise Spark's classes fill it and cause full collections
_JVM_OPTIONS = (
    "-XX:+UseParallelGC",
    "-XX:NewRatio=1",
    "-XX:MetaspaceSize=256m",
    "-XX:+ExitOnOutOfMemoryError",
)
_SECRETS = r"(?i)secret|password|token|access[.]?key|jaas|user-info|ssl\.keystore\.key"
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_FIXED = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.redaction.regex": _SECRETS,
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.stopTimeout": "5s",
    "spark.sql.streaming.stateStore.providerClass": _PROVIDER,
    # from the first epoch on, because v1 could never change to real-time mode
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.numStateStoreMaintenanceThreads": "2",
    f"{_ROCKSDB}changelogCheckpointing.enabled": "true",
    # half the throughput if Spark counts the rows; the kernel counts its rows itself
    f"{_ROCKSDB}trackTotalNumberOfRows": "false",
    f"{_ROCKSDB}boundedMemoryUsage": "true",
}


def start_session(settings: JobSettings, jars: Iterable[Path]) -> SparkSession:
    """Start a JVM that logs to `JVM_LOG` and ends with this process, and Spark in it."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(session_options(settings, [str(jar) for jar in jars]).items()))
    log = settings.status_dir / JVM_LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as output:
            # a process session of its own, so that Ctrl-C reaches this process only
            kwargs = {"stdout": output, "stderr": output, "start_new_session": True}
            launch: Any = launch_gateway
            gateway = launch(conf, kwargs)
        spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
    except PySparkRuntimeError as cause:
        raise ConfigError(
            "SPARK_NOT_STARTED",
            f"Spark did not start: {cause}; see {log}",
            hint="Java 17 or newer has to be on the PATH or in JAVA_HOME",
        ) from cause
    Kernel.of(spark).follow_process(os.getpid())
    return spark


def session_options(settings: JobSettings, jars: list[str]) -> dict[str, str]:
    """Spark's settings for a job."""
    environment = settings.environment
    heap_mb = environment.memory_mb or min(max(machine_memory_mb() // 8, 1024), 8192)
    state_mb = environment.state_memory_mb or max(heap_mb // 2, 512)
    cores = settings.cores()
    return {
        "spark.app.name": settings.name,
        "spark.master": environment.master or f"local[{cores}]",
        # for executors; the driver's class loader needs the jars before the session exists
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.driver.memory": f"{heap_mb}m",
        "spark.driver.extraJavaOptions": " ".join(
            [*_JVM_OPTIONS, f"-Xms{heap_mb}m", *java_options(environment.class_archive)]
        ),
        "spark.log.level": environment.spark_log_level,
        "spark.sql.shuffle.partitions": str(cores),
        f"{_ROCKSDB}maxMemoryUsageMB": str(state_mb),
        **_FIXED,
    }


def stop_session(spark: SparkSession, within_s: int) -> None:
    """Stop Spark and its JVM; after `within_s` seconds the JVM halts itself."""
    gateway = spark.sparkContext._gateway
    Kernel.of(spark).halt_after(within_s)
    with contextlib.suppress(Exception):
        spark.stop()
    close(gateway, within_s)

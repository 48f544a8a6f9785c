"""A JVM with the kernel on its class path and no Spark session: what in-memory tests talk to."""

import atexit
import contextlib
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

from spark_jobs.kernel.build import CONNECTOR_JARS, kernel_jar


def launch(jar: Path) -> Any:
    """Start a JVM; it ends when this process does."""
    options = _Options(
        {
            "spark.driver.extraClassPath": f"{jar}:{CONNECTOR_JARS}/*",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Duser.timezone=UTC",
        }
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start: Any = launch_gateway
    return start(options, quiet)


class _Options(dict[str, str]):
    """As much of a SparkConf as the launcher asks for; a real one would talk to a JVM."""

    def getAll(self) -> list[tuple[str, str]]:
        return list(self.items())


@cache
def jvm() -> Any:
    """py4j's view of the JVM that all tests of this process share."""
    gateway = launch(kernel_jar())
    atexit.register(_close, gateway)
    return gateway.jvm


@cache
def kernel() -> Any:
    """The one object of the kernel that Python calls."""
    return jvm().org.apache.spark.sql.rejoin.Kernel


def _close(gateway: Any) -> None:
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()

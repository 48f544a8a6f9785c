"""A JVM with the kernel on its class path and no Spark session: what in-memory tests talk to."""

import atexit
import contextlib
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from spark_jobs.kernel.build import CONNECTOR_JARS, kernel_jar


def launch(jar: Path) -> JavaGateway:
    """Start a JVM; it ends when this process does."""
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.driver.extraClassPath", f"{jar}:{CONNECTOR_JARS}/*")
    conf.set("spark.driver.memory", "1g")
    conf.set("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -Duser.timezone=UTC")
    return launch_gateway(conf, {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})


@cache
def kernel() -> Any:
    """The kernel's one object, in a JVM that all tests of this process share."""
    gateway = launch(kernel_jar())
    atexit.register(_close, gateway)
    return gateway.jvm.org.apache.spark.sql.rejoin.Kernel


def _close(gateway: JavaGateway) -> None:
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()

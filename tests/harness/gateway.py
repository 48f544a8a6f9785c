"""The JVM without Spark session that all in-memory tests of a process share."""

import atexit
from functools import cache
from typing import Any

from spark_jobs.kernel.build import kernel_jar
from spark_jobs.kernel.local_jvm import close, launch


@cache
def jvm() -> Any:
    """py4j's view of the JVM that all tests of this process share."""
    gateway = launch(kernel_jar())
    atexit.register(close, gateway)
    return gateway.jvm


@cache
def kernel() -> Any:
    """The one object of the kernel that Python calls."""
    return jvm().org.apache.spark.sql.rejoin.Kernel

"""The JVM without Spark session that all in-memory tests of a process share."""

import atexit
import json
from functools import cache
from pathlib import Path
from typing import Any

from spark_jobs.kernel.build import OUTPUT, Unit, compiled, connector_jars, kernel_jar, spark_jars
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.jvm import close
from spark_jobs.kernel.standalone import launch
from tests.harness.messages import planned

_TESTS = Path(__file__).resolve().parent.parent
_SOURCES = (_TESTS / "kernel" / "jvm", _TESTS / "simulation" / "kernel")


@cache
def jvm() -> Any:
    """py4j's view of the JVM that all tests of this process share."""
    gateway = launch(kernel_jar(), drivers_jar())
    atexit.register(close, gateway)
    return gateway.jvm


@cache
def kernel() -> Kernel:
    """The kernel as the product calls it."""
    return Kernel(jvm())


def new_machine(node: str, max_bytes: int = 1 << 24) -> Any:
    """One state machine over state in memory (MachineRun.scala).

    `node`: the planner's JSON of the operator and, besides, the `rows` of its inputs.
    `max_bytes`: what each part of the machine keeps in memory of its results, at most.
    """
    given = json.loads(node)
    rows = given.pop("rows")
    described = json.dumps(planned(given) | {"rows": rows})
    return jvm().org.apache.spark.sql.rejoin.run.MachineRun(described, max_bytes)


def drivers_jar() -> Path:
    """What tests drive the kernel with, compiled apart from it."""
    jars = [kernel_jar(), *spark_jars(), *connector_jars()]
    sources = sorted(path for folder in _SOURCES for path in folder.glob("*.scala"))
    return compiled(OUTPUT / "rejoin-kernel-drivers.jar", [Unit(sources, jars)])

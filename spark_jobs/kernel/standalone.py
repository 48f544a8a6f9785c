"""A JVM with the kernel on its class path and no Spark session: up in a second or two."""

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

from spark_jobs.kernel.build import CONNECTOR_JARS, kernel_jar
from spark_jobs.kernel.calls import Kernel

_STOP_S = 10
# without the optimising compiler, because the JVM ends before that would pay off
_JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")


def launch(
    *jars: Path, properties: Mapping[str, str] | None = None, local_dir: Path | None = None
) -> Any:
    """Start a JVM; it ends when this process does.

    `properties`: Spark's, which may be secret. `local_dir`: for Spark's copies of files.
    """
    java_options = [*_JVM_OPTIONS]
    if local_dir is not None:
        java_options += [f"-Dspark.local.dir={local_dir}", f"-Djava.io.tmpdir={local_dir}"]
    options = _Options()
    options["spark.driver.extraClassPath"] = ":".join(map(str, [*jars, CONNECTOR_JARS / "*"]))
    options["spark.driver.memory"] = "1g"
    options["spark.driver.extraJavaOptions"] = " ".join(java_options)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start: Any = launch_gateway
    gateway = start(options, quiet)
    for name, value in (properties or {}).items():  # not at its start: command lines are public
        gateway.jvm.System.setProperty(name, value)
    return gateway


def close(gateway: Any, within_s: int = _STOP_S) -> None:
    """End the JVM; after `within_s` seconds it is killed."""
    process = gateway.proc
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process.stdin.close()  # the JVM ends when its stdin closes
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def local_kernel(*jars: Path, properties: Mapping[str, str] | None = None) -> Iterator[Kernel]:
    """The one object of the kernel that Python calls, in a JVM that `launch` starts."""
    gateway = launch(kernel_jar(), *jars, properties=properties)
    try:
        yield Kernel(gateway.jvm)
    finally:
        close(gateway)


class _Options(dict[str, str]):
    """As much of a SparkConf as the launcher asks for; a real one would talk to a JVM."""

    def getAll(self) -> list[tuple[str, str]]:
        return list(self.items())

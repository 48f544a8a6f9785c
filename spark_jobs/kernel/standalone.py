"""A JVM with the kernel on its class path and no Spark session: up in a second."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_jobs.kernel.build import connector_jars, kernel_jar
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.jvm import Jvm, JvmSettings, close

# without the optimising compiler, because the JVM ends before that would pay off
_JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")


def launch(
    *jars: Path, properties: Mapping[str, str] | None = None, local_dir: Path | None = None
) -> Any:
    """Start a JVM; it ends when this process does. Raises ConfigError if it does not start.

    `properties`: Spark's, which may be secret. `local_dir`: for Spark's copies of files.
    """
    java_options = [*_JVM_OPTIONS]
    if local_dir is not None:
        java_options += [f"-Dspark.local.dir={local_dir}", f"-Djava.io.tmpdir={local_dir}"]
    class_path = [str(jar) for jar in (*jars, *connector_jars())]
    gateway = Jvm(JvmSettings("1g", class_path, java_options)).gateway()
    for name, value in (properties or {}).items():  # not at its start: command lines are public
        gateway.jvm.System.setProperty(name, value)
    return gateway


@contextmanager
def local_kernel(*jars: Path, properties: Mapping[str, str] | None = None) -> Iterator[Kernel]:
    """The one object of the kernel that Python calls, in a JVM that `launch` starts."""
    gateway = launch(kernel_jar(), *jars, properties=properties)
    try:
        yield Kernel(gateway.jvm)
    finally:
        close(gateway)

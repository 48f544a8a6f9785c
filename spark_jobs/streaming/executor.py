"""The process of an executor pod on Kubernetes: `python -m spark_jobs.streaming.executor executor`.

The pod template gives the command, Spark the argument. What Spark's own image does in a shell
script, from the same variables, is done here; jars of rejoin come from the driver.
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.errors import ConfigError
from spark_jobs.settings import ExecutorPod, read_executor_pod

_ROLE = "executor"
_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"


def java_command(pod: ExecutorPod) -> list[str]:
    """The JVM of an executor, with Spark's jars of this installation."""
    java = str(Path(pod.java_home, "bin", "java")) if pod.java_home else "java"
    libraries = pod.executor_library_path
    return [
        java,
        *pod.java_options,
        *([f"-Djava.library.path={libraries}"] if libraries else []),
        f"-Xms{pod.executor_memory}",
        f"-Xmx{pod.executor_memory}",
        "-cp",
        ":".join(filter(None, [pod.classpath, f"{_spark_home()}/jars/*"])),
        _BACKEND,
        *("--driver-url", pod.driver_url),
        *("--executor-id", pod.executor_id),
        *("--cores", pod.executor_cores),
        *("--app-id", pod.application_id),
        *("--hostname", pod.executor_pod_ip),
        *("--resourceProfileId", pod.resource_profile_id),
        *("--podName", pod.executor_pod_name),
    ]


def _spark_home() -> Path:
    """The folder of the package, which is not imported: that takes longer than all else here."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError("SPARK_NOT_STARTED", "pyspark is not installed")
    return Path(found.origin).parent


def main(arguments: Sequence[str]) -> None:
    """Become the JVM."""
    if list(arguments) != [_ROLE]:
        sys.exit(f"the argument is '{_ROLE}', as Spark gives it, not {' '.join(arguments)!r}")
    try:
        command = java_command(read_executor_pod())
    except ConfigError as error:
        sys.exit(str(error))
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])

"""A standalone Spark cluster on the loopback interface: a master and workers, each a process."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports

SPARK_HOME = Path(pyspark.__file__).parent
MB_PER_WORKER = 2048
_DEPLOY = "org.apache.spark.deploy"
_READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Standalone:
    """The master's URL, and the properties with which a driver on this machine reaches workers."""

    url: str
    properties: Path
    workers: tuple[Child, ...]

    def executors(self) -> list[int]:
        """Process ids of the JVMs that run tasks now."""
        parents = {worker.pid for worker in self.workers}
        return [pid for pid, parent in _java_processes() if parent in parents]


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """Two workers of one core and 2 GB each; the processes end with the block."""
    (port,) = free_ports(1)
    url = f"spark://{LOOPBACK}:{port}"
    properties = folder / "spark.properties"
    properties.write_text(
        f"# the machine's name may lead to another interface\nspark.driver.host {LOOPBACK}\n"
        f"spark.driver.bindAddress={LOOPBACK}\n"
    )
    started: list[Child] = []
    try:
        at_master = ["--host", LOOPBACK, "--port", str(port), "--webui-port", "0"]
        started.append(_start(folder / "master.log", "master.Master", *at_master))
        _wait_for_log(started[0], "I have been elected leader")
        for number in range(workers):
            own = folder / f"worker{number}"
            own.mkdir()
            size = ["--cores", "1", "--memory", f"{MB_PER_WORKER}m"]
            at_worker = ["--host", LOOPBACK, "--webui-port", "0", "--work-dir", str(own), *size]
            started.append(_start(own / "worker.log", "worker.Worker", *at_worker, url))
        for worker in started[1:]:
            _wait_for_log(worker, "Successfully registered with master")
        yield Standalone(url, properties, tuple(started[1:]))
    finally:
        for child in reversed(started):
            child.stop(20.0)


def _start(log: Path, role: str, *arguments: str) -> Child:
    # spark-class replaces itself with the JVM, whose process id is then the child's
    launcher = str(SPARK_HOME / "bin" / "spark-class")
    command = ["env", f"SPARK_LOCAL_IP={LOOPBACK}", f"SPARK_HOME={SPARK_HOME}"]
    return Child([*command, launcher, f"{_DEPLOY}.{role}", *arguments], log)


def _wait_for_log(child: Child, text: str) -> None:
    deadline = time.monotonic() + _READY_S
    while text not in child.log_path.read_text(encoding="utf-8", errors="replace"):
        assert child.exit_code is None, child.log_tail()
        assert time.monotonic() < deadline, child.log_tail()
        time.sleep(0.1)


def _java_processes() -> Iterator[tuple[int, int]]:
    """Process id and parent's id of each JVM that is an executor's."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes()
                stat = (folder / "stat").read_text()
            except OSError:
                continue  # it has just ended
            if b"CoarseGrainedExecutorBackend" in command:
                found = re.search(r"\) \S (\d+)", stat)
                assert found is not None
                yield int(folder.name), int(found[1])

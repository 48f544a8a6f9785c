"""A standalone Spark cluster on the loopback interface: a master and workers, each a process."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports

SPARK_HOME = Path(pyspark.__file__).parent
MB_PER_WORKER = 2048
_DEPLOY = "org.apache.spark.deploy"
_READY_S = 120.0
_ELECTED = "I have been elected leader"


@dataclass(slots=True)
class Standalone:
    """The master, and the properties with which a driver on this machine reaches the workers.

    `recovers`: the master keeps what it knows in files, for the next one at its address.
    """

    folder: Path
    port: int
    recovers: bool
    master: Child = field(init=False)
    workers: list[Child] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"spark://{LOOPBACK}:{self.port}"

    @property
    def properties(self) -> Path:
        return self.folder / "spark.properties"

    def start_master(self) -> None:
        at = ["--host", LOOPBACK, "--port", str(self.port), "--webui-port", "0"]
        kept = f"-Dspark.deploy.recoveryDirectory={self.folder / 'recovery'}"
        options = f"-Dspark.deploy.recoveryMode=FILESYSTEM {kept}" if self.recovers else ""
        log = self.folder / f"master{time.monotonic_ns()}.log"
        self.master = _start(log, "master.Master", *at, SPARK_MASTER_OPTS=options)
        _wait_for_log(self.master, _ELECTED)

    def start_worker(self) -> None:
        """One of one core; it keeps the files of its executors in a folder of its own."""
        own = self.folder / f"worker{len(self.workers)}"
        own.mkdir()
        size = ["--cores", "1", "--memory", f"{MB_PER_WORKER}m"]
        at = ["--host", LOOPBACK, "--webui-port", "0", "--work-dir", str(own), *size]
        local = str(own / "local")
        log = own / "worker.log"
        self.workers.append(_start(log, "worker.Worker", *at, self.url, SPARK_LOCAL_DIRS=local))
        _wait_for_log(self.workers[-1], "Successfully registered with master")

    def executors(self, *of: Child) -> list[int]:
        """Process ids of the JVMs that run tasks now, on these workers or on all."""
        parents = {worker.pid for worker in of or self.workers}
        return [pid for pid, parent in _java_processes() if parent in parents]

    def local_files(self, worker: int, pattern: str) -> list[Path]:
        """Of the executors of a worker."""
        return list((self.folder / f"worker{worker}" / "local").rglob(pattern))

    def outputs(self) -> list[Path]:
        """What executors have printed, a file each."""
        return list(self.folder.glob("worker*/app-*/*/stderr"))

    def signal(self, number: signal.Signals, *pids: int) -> None:
        """Those that have ended meanwhile are left out."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> None:
        for worker in self.workers:
            if worker.exit_code is None:
                self.signal(signal.SIGKILL, *self.executors(worker))
                self.signal(signal.SIGCONT, worker.pid)
        for child in (*self.workers, self.master):
            child.stop(20.0)


@contextmanager
def standalone_cluster(
    folder: Path, workers: int = 2, recovers: bool = False
) -> Iterator[Standalone]:
    """Workers of one core and 2 GB each; the processes end with the block."""
    (port,) = free_ports(1)
    cluster = Standalone(folder, port, recovers)
    cluster.properties.write_text(
        f"# the machine's name may lead to another interface\nspark.driver.host {LOOPBACK}\n"
        f"spark.driver.bindAddress={LOOPBACK}\n"
    )
    cluster.start_master()
    try:
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.end()


def _start(log: Path, role: str, *arguments: str, **variables: str) -> Child:
    # spark-class replaces itself with the JVM, whose process id is then the child's
    launcher = str(SPARK_HOME / "bin" / "spark-class")
    given = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(SPARK_HOME), **variables}
    command = ["env", *(f"{name}={value}" for name, value in given.items())]
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

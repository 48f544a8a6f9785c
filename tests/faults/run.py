"""One bounded run of the job, which faults strike: drivers, checkpoint, moments, waits."""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import process_tree
from spark_jobs.embedded.process import Child
from spark_jobs.status import read_status
from tests.faults.data import job_text
from tests.faults.stage import QUERIES, Stage
from tests.harness.standalone import Standalone

STOP_S = 60.0


class Hang(AssertionError):
    """Something has not come in time."""


class Unexpected(AssertionError):
    """The job ended otherwise than it should."""


@dataclass
class Run:
    """`patience_s` bounds each wait for anything to go a step further.

    `moments`: where the faults struck, for the report. `options` and `variables`: of `rejoin run`.
    `resources` end with the run.
    """

    stage: Stage
    name: str
    patience_s: float
    draw: random.Random
    inputs: str = "in"
    settings: dict[str, str] = field(default_factory=dict)
    drivers: list[Child] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)
    restarts: int = 0  # by the driver itself
    options: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    cluster: Standalone | None = None
    resources: ExitStack = field(default_factory=ExitStack)
    checkpoint: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.checkpoint = self.folder / "checkpoint"
        self.stage.create(*(f"{self.name}_{query}" for query in QUERIES))

    @property
    def folder(self) -> Path:
        return self.stage.folder / self.name

    @property
    def status(self) -> Path:
        """Of the last driver."""
        return self.folder / f"status{len(self.drivers) - 1}"

    @property
    def driver(self) -> Child:
        return self.drivers[-1]

    def start(self, *options: str) -> Child:
        """One driver more, on the same checkpoint."""
        job = self.folder / "job.sql"
        text = job_text(
            self.stage.servers, self.inputs, self.name, self.stage.epoch_rows, self.settings
        )
        job.write_text(text, encoding="utf-8")
        number = len(self.drivers)
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        command = ["env", *variables, sys.executable, "-m", "spark_jobs.cli", "run", str(job)]
        command += ["--no-sidecar"]
        command += ["--checkpoint", str(self.checkpoint)]
        command += ["--status-dir", str(self.folder / f"status{number}"), *self.options, *options]
        self.drivers.append(Child(command, self.folder / f"driver{number}.log"))
        return self.driver

    def reach(self, epoch: int) -> bool:
        """Wait for a query to begin that epoch, then a moment more; whether the job still runs."""
        self.wait(lambda: max(self.planned(q) for q in QUERIES) >= epoch, f"epoch {epoch}")
        self.driver.wait(self.draw.uniform(0, 1.0))
        if self.driver.exit_code is None:
            return True
        if not self.moments:
            raise Unexpected("the job had ended before the fault; take more rows or epochs")
        return False

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        self._await(condition, what)
        if not condition():
            raise Unexpected(
                f"waiting for {what}, the driver ended with code {self.driver.exit_code}:\n"
                f"{self.driver.log_tail(12)}"
            )

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        """Until it holds or the driver has ended; as long as epochs come there is no hurry."""
        done, deadline = -1, 0.0
        while not condition() and self.driver.exit_code is None:
            if (epochs := sum(self.planned(q) + self.committed(q) for q in QUERIES)) != done:
                done, deadline = epochs, time.monotonic() + self.patience_s
            if time.monotonic() > deadline:
                raise Hang(f"no {what}:\n{self.driver.log_tail(12)}")
            time.sleep(0.05)

    def note(self) -> str:
        """Remember the moment: the epoch of each query, with a plus inside of it."""
        told = [
            f"{self.committed(q) + 1}+" if self.is_inside(q) else f"{self.committed(q) + 1}"
            for q in QUERIES
        ]
        self.moments.append("/".join(told))
        return self.moments[-1]

    def planned(self, query: str) -> int:
        return self._last(query, "offsets")

    def committed(self, query: str) -> int:
        return self._last(query, "commits")

    def is_inside(self, query: str) -> bool:
        return self.planned(query) > self.committed(query)

    def _last(self, query: str, log: str) -> int:
        folder = self.checkpoint / query / log
        numbers = [int(p.name) for p in folder.glob("*") if p.name.isdigit()]
        return max(numbers, default=-1)

    def kill(self) -> None:
        """The driver, as a crash; its JVM follows by itself."""
        processes = process_tree(self.driver.pid)[1:]
        self.driver.kill()
        self._await_end(processes)

    def kill_jvm(self) -> None:
        for pid in process_tree(self.driver.pid)[1:]:
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """In order; raise unless the driver says so."""
        self.driver.stop(STOP_S)
        if self.driver.exit_code != 0:
            raise Unexpected(
                f"stopped with code {self.driver.exit_code}:\n{self.driver.log_tail(12)}"
            )

    def _await_end(self, processes: list[int]) -> None:
        deadline = time.monotonic() + STOP_S
        while any(Path(f"/proc/{pid}").exists() for pid in processes):
            if time.monotonic() > deadline:
                raise Hang(f"processes {processes} outlive their driver")
            time.sleep(0.05)

    def ends_with(self, *codes: str) -> str:
        """Wait until the driver has refused to go on; the code that it named."""
        self._await(lambda: False, " or ".join(codes))
        tail = self.driver.log_tail(12)
        for code in codes:
            if self.driver.exit_code and code in tail:
                return code
        raise Unexpected(f"instead of {' or '.join(codes)}, code {self.driver.exit_code}:\n{tail}")

    def finish(self) -> None:
        self._await(lambda: False, "end")
        if self.driver.exit_code != 0:
            raise Unexpected(
                f"ended with code {self.driver.exit_code}:\n{self.driver.log_tail(12)}"
            )
        for number in range(len(self.drivers)):
            status = read_status(self.folder / f"status{number}")
            self.restarts += sum(q.restarts_total for q in status.queries) if status else 0

    def lost_records(self) -> int:
        """That the last driver has counted."""
        status = read_status(self.status)
        return sum(q.lost_records_total for q in status.queries) if status else 0

    def end_all(self) -> None:
        """Leave no process behind."""
        for driver in self.drivers:
            for pid in reversed(process_tree(driver.pid)) if driver.exit_code is None else []:
                try:
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            driver.stop(0.0)
        self.resources.close()

"""What a peer is: an engine with fixed settings that runs a workload as a process of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.workloads.workload import Guarantee, SinkKind, Workload, render

PARALLELISM = 2


@dataclass(frozen=True, slots=True)
class Folders:
    """The files of one run of one engine."""

    root: Path

    @property
    def job(self) -> Path:
        return self.root / "job.sql"

    @property
    def log(self) -> Path:
        return self.root / "engine.log"

    @property
    def state(self) -> Path:
        """Folder of the checkpoints."""
        return self.root / "checkpoint"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a workload: where its topics are, and which one it writes."""

    workload: Workload
    folders: Folders
    servers: str
    registry_url: str
    topic: str
    guarantee: Guarantee = "exactly-once"

    def write_sql(self, settings: Mapping[str, str]) -> Path:
        """Write the SQL of the workload with these settings; returns its file."""
        where = (self.topic, self.servers, self.registry_url)
        text = render(self.workload, settings, *where, self.guarantee)
        self.folders.job.write_text(text, encoding="utf-8")
        return self.folders.job


class Peer(Protocol):
    """An engine at its settings."""

    @property
    def name(self) -> str:
        """What it is called on the command line and in the results."""

    @property
    def about(self) -> str:
        """Its settings in a line."""

    def refusal(self, workload: Workload) -> str | None:
        """Why this workload cannot be run; None if it can."""

    def sink(self, workload: Workload) -> SinkKind:
        """What it writes, if it cannot write what the workload asks for."""

    def prepare(self) -> None:
        """Install what is needed, outside the measured time."""

    def settings(self, workload: Workload, folders: Folders) -> Mapping[str, str]:
        """The settings, which stand in the result beside the figures."""

    def command(self, run: Run) -> list[str]:
        """Write what the run needs; returns the command that runs the job and ends when it ends."""

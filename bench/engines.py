"""The two engines as processes: their commands and settings."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.class_archive import ensure_class_archive
from bench.flink.install import JARS, PYTHON, install

PARALLELISM = 2
_FLINK_RUNNER = Path(__file__).with_name("flink") / "run_sql.py"
_FLINK_HEAP = "-Xmx3g"
_REJOIN = "from spark_jobs.cli import main; main()"


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


class Engine(Protocol):
    """rejoin or Flink."""

    name: str

    def prepare(self) -> None:
        """Install what is needed, outside the measured time."""

    def settings(self, folders: Folders) -> Mapping[str, str]:
        """The settings for the job's SET statements."""

    def command(self, folders: Folders) -> list[str]:
        """The command that runs the job and ends when it ends."""


class Rejoin:
    """`rejoin run` without the sidecar. A heap of 0 MB is the default one."""

    name = "rejoin"

    def __init__(
        self, overrides: Mapping[str, str], options: Sequence[str] = (), heap_mb: int = 0
    ) -> None:
        self._overrides = overrides
        self._options = options
        self._heap_mb = heap_mb

    def prepare(self) -> None:
        """Create the archive of loaded classes, which an installation does once."""
        ensure_class_archive()

    def settings(self, folders: Folders) -> Mapping[str, str]:
        return {"rejoin.parallelism": str(PARALLELISM), **self._overrides}

    def command(self, folders: Folders) -> list[str]:
        heap = ["env", f"REJOIN_MEMORY_MB={self._heap_mb}"] if self._heap_mb else []
        run = [*heap, sys.executable, "-c", _REJOIN, "run", str(folders.job), "--no-sidecar"]
        status = str(folders.root / "status")
        own = ["--checkpoint", str(folders.state), "--status-dir", status]
        return [*run, *own, *self._options]


class Flink:
    """Flink SQL in one JVM: RocksDB with 1 GB of memory, incremental checkpoints every 10 s."""

    name = "flink"

    def __init__(self, overrides: Mapping[str, str]) -> None:
        self._overrides = overrides

    def prepare(self) -> None:
        install()

    def settings(self, folders: Folders) -> Mapping[str, str]:
        return {
            "parallelism.default": str(PARALLELISM),
            "taskmanager.numberOfTaskSlots": str(PARALLELISM),
            "taskmanager.memory.managed.size": "1 gb",
            "io.tmp.dirs": str(folders.root / "tmp"),
            "table.local-time-zone": "UTC",
            "state.backend.type": "rocksdb",
            "execution.checkpointing.mode": "EXACTLY_ONCE",
            "execution.checkpointing.interval": "10 s",
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.dir": folders.state.resolve().as_uri(),
            **self._overrides,
        }

    def command(self, folders: Folders) -> list[str]:
        environment = ["env", f"JVM_ARGS={_FLINK_HEAP}", f"FLINK_LOG_DIR={folders.root}"]
        jars = [str(jar) for jar in sorted(JARS.glob("*.jar"))]
        return [*environment, str(PYTHON), "-I", str(_FLINK_RUNNER), str(folders.job), *jars]


def event_log(folder: Path) -> dict[str, str]:
    """Spark's properties for an event log in a new folder, in plain text."""
    folder.mkdir(parents=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def spark_properties(folder: Path, properties: Mapping[str, str]) -> tuple[str, str]:
    """The option of `rejoin run` with these properties, which are written to the folder."""
    file = folder / "spark.properties"
    file.write_text("".join(f"{k} {v}\n" for k, v in properties.items()), encoding="utf-8")
    return "--spark-properties", str(file)

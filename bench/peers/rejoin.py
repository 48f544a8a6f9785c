"""rejoin itself, as `rejoin run` without the sidecar, and Spark's properties for its runs."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.class_archive import ensure_class_archive
from bench.peers.peer import PARALLELISM, Folders, Run
from bench.workloads.workload import SinkKind, Workload

_REJOIN = "from spark_jobs.cli import main; main()"


class Rejoin:
    """rejoin at its defaults but for `overrides`. A heap of 0 MB is the default one."""

    name = "rejoin"
    about = "its defaults, parallelism 2, state in RocksDB, a commit in each epoch"

    def __init__(
        self, overrides: Mapping[str, str], options: Sequence[str] = (), heap_mb: int = 0
    ) -> None:
        self._overrides = overrides
        self._options = options
        self._heap_mb = heap_mb

    def refusal(self, workload: Workload) -> str | None:
        return None

    def sink(self, workload: Workload) -> SinkKind:
        return workload.sink

    def prepare(self) -> None:
        """Create the archive of loaded classes, which an installation does once."""
        ensure_class_archive()

    def settings(self, workload: Workload, folders: Folders) -> Mapping[str, str]:
        return {"rejoin.parallelism": str(PARALLELISM), **self._overrides}

    def command(self, run: Run) -> list[str]:
        job = run.write_sql(self.settings(run.workload, run.folders))
        heap = ["env", f"REJOIN_MEMORY_MB={self._heap_mb}"] if self._heap_mb else []
        command = [*heap, sys.executable, "-c", _REJOIN, "run", str(job), "--no-sidecar"]
        status = str(run.folders.root / "status")
        own = ["--checkpoint", str(run.folders.state), "--status-dir", status]
        return [*command, *own, *self._options]


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

"""Creates the JVM's archive of loaded classes by running three joins over a few records.

`python -m bench.class_archive` runs in a process of its own, because Kafka clients keep logging
errors after their broker has stopped.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.load import create_topics, load
from bench.workloads.catalog import WORKLOADS
from bench.workloads.workload import render
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.errors import RejoinError
from spark_jobs.kernel.build import kernel_jar
from spark_jobs.streaming.class_archive import is_fresh

_JOBS = ("regular-upsert", "temporal-left", "interval-left")
_ROWS = 20_000
_KEYS = 2_000
_TIMEOUT_S = 600.0


def ensure_class_archive() -> None:
    """Create the archive unless it exists for the present jars. Raises RejoinError on failure."""
    _run([sys.executable, "-m", "bench.class_archive"])


def _make() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="rejoin-classes-") as folder,
        Broker(Path(folder) / "kafka") as broker,
        RegistryServer(Path(folder) / "schemas") as registry,
    ):
        texts = []
        for job in (WORKLOADS[name] for name in _JOBS):
            sink = f"result_{job.name}"
            load(job.data(_ROWS, _KEYS), broker.bootstrap_servers, registry.url)
            create_topics(broker.bootstrap_servers, [sink])
            texts.append(render(job, {}, sink, broker.bootstrap_servers, registry.url))
        sql = Path(folder) / "job.sql"
        sql.write_text("".join(texts), encoding="utf-8")
        command = ["env", "REJOIN_CLASS_ARCHIVE=make", sys.executable, "-m", "spark_jobs.cli"]
        command += ["run", str(sql), "--no-sidecar", "--checkpoint", f"{folder}/checkpoint"]
        _run([*command, "--status-dir", f"{folder}/status"])


def _run(command: list[str]) -> None:
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if ended.returncode != 0:
        raise RejoinError("CLASS_ARCHIVE_FAILED", f"its job failed:\n{ended.stderr[-4000:]}")


if __name__ == "__main__" and not is_fresh(jar=kernel_jar()):
    _make()

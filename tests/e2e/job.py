"""The job: `rejoin run` on job.sql, its status, its end by kill -9 and in order."""

import sys
from pathlib import Path
from string import Template

from spark_jobs.embedded.process import Child
from spark_jobs.status import JobStatus, QueryStatus, read_status
from tests.e2e.wire import DEAD_LETTERS, Wire

JOB_FILE = Path(__file__).with_name("job.sql")
_STOP_GRACE_S = 60.0


def job_text(servers: str, wire: Wire) -> str:
    """job.sql for this broker and this encoding."""
    broker = {"properties.bootstrap.servers": servers}
    source = {
        "connector": "kafka",
        **broker,
        "scan.startup.mode": "earliest-offset",
        "rejoin.dead-letter.topic": DEAD_LETTERS,
        **wire.source_options(),
    }
    sink = {"connector": "upsert-kafka", **broker, **wire.sink_options()}
    return Template(JOB_FILE.read_text(encoding="utf-8")).substitute(
        source=_options(source), sink=_options(sink)
    )


def _options(options: dict[str, str]) -> str:
    return ",\n  ".join(f"'{name}' = '{value}'" for name, value in options.items())


class Job:
    """Every start goes on from the same checkpoint."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        self._text = text
        self._child: Child | None = None
        self._starts = 0

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._starts += 1
        path = self.folder / "job.sql"
        path.write_text(self._text, encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(path), "--no-sidecar"]
        command += ["--checkpoint", str(self.folder / "checkpoint")]
        command += ["--status-dir", str(self.folder / "status")]
        self._child = Child(command, self.folder / f"job{self._starts}.log")

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def stop(self) -> None:
        """In order; raise RuntimeError if it does not end so."""
        if self._child is None:
            return
        child, self._child = self._child, None
        child.stop(_STOP_GRACE_S)
        if child.exit_code != 0:
            raise RuntimeError(f"the job ended with {child.exit_code}:\n{child.log_tail()}")

    def check_alive(self) -> None:
        if self._child is not None and self._child.exit_code is not None:
            raise RuntimeError(f"the job has ended:\n{self._child.log_tail(40)}")

    def status(self) -> JobStatus | None:
        """Of the present start, once it has written one."""
        status = read_status(self.folder / "status")
        of_this = status is not None and self._child is not None and status.pid == self._child.pid
        return status if of_this else None

    def has_committed(self) -> bool:
        """Whether every query of the present start has written an epoch."""
        status = self.status()
        if status is None or not status.queries:
            return False
        return all(query.epoch is not None for query in status.queries)

    def has_read(self, ends: dict[tuple[str, int], int]) -> bool:
        """Whether every query has committed the records of its topics up to these offsets."""
        status = self.status()
        if status is None or not status.queries:
            return False
        return all(_has_read(query, ends) for query in status.queries)


def _has_read(query: QueryStatus, ends: dict[tuple[str, int], int]) -> bool:
    read = {(s.topic, p.partition): p.offset for s in query.sources for p in s.partitions}
    topics = {source.topic for source in query.sources}
    wanted = {place: end for place, end in ends.items() if place[0] in topics}
    return bool(wanted) and all(read.get(place, 0) >= end for place, end in wanted.items())

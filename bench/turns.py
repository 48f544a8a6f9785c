"""Runs of one job over the same topics, so that whatever else is busy affects all alike."""

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.engines import Engine, Folders
from bench.jobs import JOBS, BenchJob, Guarantee, render
from bench.load import BenchData, create_topics, load
from bench.measure import Measurement, SinkProgress, run_measured
from bench.results import Folded, in_micros, verified
from bench.run import WORK
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer


@dataclass(frozen=True, slots=True)
class Turns:
    """A broker whose topics hold the data of the job."""

    job: BenchJob
    data: BenchData
    work: Path
    kafka: tuple[str, str]  # servers, and the registry's address
    timeout_s: float

    def run(
        self, engine: Engine, name: str, guarantee: Guarantee = "exactly-once"
    ) -> tuple[Measurement, Folded]:
        """Run and verify; the name is that of its topic, too."""
        folders = Folders(self.work / name)
        folders.root.mkdir()
        create_topics(self.kafka[0], [name])
        text = render(self.job, engine.settings(folders), name, *self.kafka, guarantee)
        folders.job.write_text(text, encoding="utf-8")
        progress = SinkProgress(self.kafka[0], name)
        try:
            command = engine.command(folders)
            measured = run_measured(command, folders.log, folders.state, progress, self.timeout_s)
        finally:
            progress.close()
        expected = in_micros(self.data.expected(), self.job.sink_columns)
        found = verified(self.job, expected, *self.kafka, name)
        shutil.rmtree(folders.root, ignore_errors=True)
        return measured, found


@contextmanager
def turns(name: str, job: BenchJob, data: BenchData, timeout_s: float) -> Iterator[Turns]:
    """The folder of this name keeps the logs if a run fails."""
    work = WORK / f"{name}-{job.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with Broker(work / "kafka", heap="1g") as broker, RegistryServer(work / "schemas") as registry:
        kafka = (broker.bootstrap_servers, registry.url)
        load(data, *kafka)
        yield Turns(job, data, work, kafka, timeout_s)
    shutil.rmtree(work, ignore_errors=True)


def parser_of_turns(
    module: str, about: str | None, rows: int, turns: int
) -> argparse.ArgumentParser:
    """The options of a command that runs a job in turns, with the defaults for rows and turns."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--job", choices=sorted(JOBS), default="regular")
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--turns", type=int, default=turns, help="runs of each kind")
    parser.add_argument("--timeout", type=float, default=900.0, help="most seconds for one run")
    return parser


def data_of(options: argparse.Namespace) -> BenchData:
    """The data of the job that these options name."""
    job = JOBS[options.job]
    return job.data(options.rows, options.keys or min(job.default_keys, options.rows))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()

"""Runs over the same topics in turns, so that whatever else is busy affects all peers alike."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.folders import work_folder
from bench.load import create_topics, load
from bench.measure import Measurement, SinkProgress, run_measured
from bench.peers.peer import Folders, Peer, Run
from bench.results import Folded, Verifier
from bench.workloads.catalog import WORKLOADS
from bench.workloads.records import BenchData
from bench.workloads.workload import Guarantee, Workload
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer

_BROKER_HEAP = "1g"


@dataclass(frozen=True, slots=True)
class Turns:
    """A broker whose topics hold the data of the workload, and what verifies results."""

    workload: Workload
    verifier: Verifier
    work: Path
    kafka: tuple[str, str]  # servers, and the registry's address
    load_s: float
    timeout_s: float
    keep: bool

    def run(
        self, peer: Peer, name: str, guarantee: Guarantee = "exactly-once"
    ) -> tuple[Measurement, Folded]:
        """Run and verify; the name is that of its topic, too."""
        folders = Folders(self.work / name)
        folders.root.mkdir()
        create_topics(self.kafka[0], [name])
        command = peer.command(Run(self.workload, folders, *self.kafka, name, guarantee))
        progress = SinkProgress(self.kafka[0], name)
        try:
            measured = run_measured(command, folders.log, folders.state, progress, self.timeout_s)
        finally:
            progress.close()
        found = self.verifier.verified(peer.sink(self.workload), name)
        if not self.keep:
            shutil.rmtree(folders.root, ignore_errors=True)
        return measured, found


@contextmanager
def turns(
    name: str, workload: Workload, data: BenchData, timeout_s: float, keep: bool = False
) -> Iterator[Turns]:
    """The folder of this name keeps the logs if a run fails, and everything with `keep`."""
    with (
        work_folder(f"{name}-{workload.name}", keep) as work,
        Broker(work / "kafka", heap=_BROKER_HEAP) as broker,
        RegistryServer(work / "schemas") as registry,
    ):
        kafka = (broker.bootstrap_servers, registry.url)
        load_s = load(data, *kafka)
        verifier = Verifier(workload, workload.in_micros(data.expected()), *kafka)
        yield Turns(workload, verifier, work, kafka, load_s, timeout_s, keep)


def use_cores(count: int) -> None:
    """Limit this process and its children, including the broker, to these cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def parser_of_turns(
    module: str, about: str | None, rows: int, turns: int
) -> argparse.ArgumentParser:
    """The options of a command that runs a workload in turns, with defaults for rows and turns."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="regular-upsert")
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--turns", type=int, default=turns, help="runs of each kind")
    parser.add_argument("--timeout", type=float, default=900.0, help="most seconds for one run")
    return parser


def workload_of(options: argparse.Namespace) -> tuple[Workload, BenchData]:
    """The workload that these options name, and its data."""
    workload = WORKLOADS[options.workload]
    return workload, workload.data(options.rows, options.keys or workload.keys(options.rows))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()

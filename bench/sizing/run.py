"""`python -m bench.sizing`: measures what `rejoin explain --size` rests on, and fits its constants.

Runs the benchmark's jobs over several keys, widths, epochs and task numbers, in threads of the
driver (`local[2]`) and on two executors of one core. It reads processor time of the processes,
Spark's commits and event log, changelog files and Kafka's segments, between commits of epochs once
warm. Rows are not verified here: `rejoin bench` verifies the same jobs. Run it by hand on an idle
machine; `--write` replaces the model's data file, and `make golden` then renews docs/tuning.md.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from bench.folders import WORK, work_folder
from bench.load import create_topics, load
from bench.measure import BenchError, SinkProgress, run_measured
from bench.peers.peer import Folders, Run
from bench.peers.rejoin import Rejoin, event_log, spark_properties
from bench.sizing.fit import calibration_json, fit
from bench.sizing.points import CORES, Point, Setup, quick_setups, read_points, setups, write_points
from bench.sizing.trace import (
    Trace,
    changelog_bytes,
    tasks_between,
    topic_bytes,
    warm_window,
)
from bench.turns import use_cores
from bench.workloads.records import BenchData, Expected, InputTopic, Record
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.sizing.coefficients import DATA, Calibration, Measured, calibration

_FOLDER = WORK / "sizing"
_POINTS = _FOLDER / "points.json"
_HEAP_MB = 2048  # for tasks in sum
_DRIVER_MB = 1024  # of a driver that runs no tasks
_SECONDS_LEFT = 90.0  # a run takes less


class CountedData:
    """The data of a job, which counts bytes and texts while it is loaded."""

    def __init__(self, data: BenchData) -> None:
        self._data = data
        self.topics = data.topics
        self.rows = data.rows
        self.text_bytes = data.text_bytes
        self.counted: dict[str, tuple[int, int]] = {}  # records and bytes by topic

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        count = size = 0
        for record in self._data.records(topic, key_id, value_id):
            count += 1
            size += len(record[1] or b"") + len(record[2] or b"")
            yield record
        self.counted[topic.name] = count, size

    def expected(self) -> Expected:
        return self._data.expected()

    def record_bytes(self) -> dict[str, float]:
        return {topic: size / count for topic, (count, size) in self.counted.items()}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A broker whose topics hold the data of some runs."""

    broker: Broker
    registry_url: str
    data: CountedData
    work: Path


@contextmanager
def loaded(setup: Setup) -> Iterator[Loaded]:
    with (
        work_folder("sizing/run") as work,
        Broker(work / "kafka", heap="1g") as broker,
        RegistryServer(work / "schemas") as registry,
    ):
        data = CountedData(setup.bench_data())
        load(data, broker.bootstrap_servers, registry.url)
        yield Loaded(broker, registry.url, data, work)


def measure(setup: Setup, on: Loaded, number: int, timeout_s: float) -> Point:
    """Run a job over topics that are loaded, and read what the run has left behind."""
    servers, topic = on.broker.bootstrap_servers, f"result_{number}"
    folders = Folders(on.work / topic)
    folders.root.mkdir()
    create_topics(servers, [topic])
    engine = _engine(setup, folders.root)
    run = Run(setup.workload(), folders, servers, on.registry_url, topic)
    tables = frozenset(t.name for t in on.data.topics)
    progress = SinkProgress(servers, topic)
    broker_pid = on.broker.pid or 0
    trace = Trace(folders.state, folders.root / "status", tables, broker_pid, progress)
    try:
        command = engine.command(run)
        measured = run_measured(command, folders.log, folders.state, trace, timeout_s)
    finally:
        progress.close()
    return _point(setup, on, folders, trace, topic, measured.seconds, measured.peak_rss_bytes)


def _point(
    setup: Setup,
    on: Loaded,
    folders: Folders,
    trace: Trace,
    topic: str,
    whole_s: float,
    peak_rss_bytes: int,
) -> Point:
    window = warm_window(trace.epochs())
    begin, end = trace.at(window.begins), trace.at(window.ends)
    tasks = tasks_between(folders.root / "events", window.begins, window.ends)
    results = end.results - begin.results
    stored = {name: topic_bytes(on.broker.data_dir, name) for name in window.rows}
    in_bytes = sum(
        rows * stored[name] / on.data.counted[name][0] for name, rows in window.rows.items()
    )
    written = max(trace.samples[-1].results, 1)
    largest = trace.largest
    operators = () if largest is None else largest.operators
    return Point(
        setup=setup,
        epochs=window.length,
        seconds=window.ends - window.begins,
        rows=window.rows,
        results=results,
        record_bytes=on.data.record_bytes(),
        text_bytes=dict(on.data.text_bytes),
        job_cpu_s=end.job_cpu_s - begin.job_cpu_s,
        driver_cpu_s=end.driver_cpu_s - begin.driver_cpu_s,
        broker_cpu_s=end.broker_cpu_s - begin.broker_cpu_s,
        read_cpu_share=tasks.read_cpu_share,
        shuffle_bytes=tasks.shuffle_bytes,
        changelog_bytes=changelog_bytes(folders.state, window.begins, window.ends),
        kafka_in_bytes=in_bytes,
        kafka_out_bytes=results * topic_bytes(on.broker.data_dir, topic) / written,
        state_rows={side.side: side.rows for op in operators for side in op.sides},
        state_bytes=sum(op.state_bytes for op in operators),
        peak_rss_bytes=peak_rss_bytes,
        whole_run_s=whole_s,
        epoch_seconds=window.seconds,
    )


def _engine(setup: Setup, root: Path) -> Rejoin:
    """The heap of both executors together is that of the threads."""
    properties = event_log(root / "events")
    heap_mb, master = _HEAP_MB, f"local[{CORES}]"
    if setup.on_executors:
        each_mb = _HEAP_MB // CORES
        properties["spark.executor.memory"] = f"{each_mb}m"
        heap_mb, master = _DRIVER_MB, f"local-cluster[{CORES},1,{2 * each_mb}]"
    settings = {
        "rejoin.parallelism": str(setup.parallelism),
        "rejoin.max-offsets-per-trigger": str(setup.offsets),
    }
    options = ("--master", master, *spark_properties(root, properties))
    return Rejoin(settings, options, heap_mb)


def run_all(
    wanted: Sequence[Setup], minutes: float, timeout_s: float, measured: Measured
) -> list[Point]:
    """Measure in order until the time is over; points are written as they come.

    A run that fails is left out, but for the first one, which would not fail alone.
    """
    started, points = time.monotonic(), list[Point]()
    for _, group in groupby(wanted, key=lambda setup: setup.data):
        together = list(group)
        if _is_over(started, minutes):
            _say(f"left out: {', '.join(setup.name for setup in together)}")
            continue
        with loaded(together[0]) as on:
            for number, setup in enumerate(together):
                if _is_over(started, minutes):
                    _say(f"left out: {setup.name}")
                    continue
                try:
                    points.append(measure(setup, on, number, timeout_s))
                except BenchError as failure:
                    if not points:
                        raise
                    _say(f"left out: {setup.name} has failed: {failure}")
                    continue
                write_points(_POINTS, points, measured)
                _say(_line(points[-1]))
    return points


def _is_over(started: float, minutes: float) -> bool:
    return time.monotonic() - started + _SECONDS_LEFT > minutes * 60


def _line(point: Point) -> str:
    rows = point.rows_in
    return (
        f"{point.setup.name:30} {point.epochs:3} epochs  {rows / point.seconds:9,.0f} records/s"
        f"  {point.job_cpu_s / rows * 1e6:5.2f} us  exchange {point.shuffle_bytes / rows:5.1f}"
        f"  changelog {point.changelog_bytes / rows:5.1f} bytes  ({point.whole_run_s:.0f} s)"
    )


def report(known: Calibration) -> None:
    """Print the coefficients and the errors on what was held out."""
    for name in known.coefficients.__dataclass_fields__:
        _say(f"{name:26} {getattr(known.coefficients, name):10.4g}  {known.rests_on[name]}")
    for h in known.held_out:
        values = f"predicted {h.predicted:12,.2f}, measured {h.measured:12,.2f} {h.unit}"
        _say(f"{h.point:22} {h.figure:28} {values}: {h.error:+.1%}")


def machine() -> str:
    """Cores and memory, which decide how fast it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{CORES} cores and {memory:.0f} GiB, shared with the broker"


def measured_now() -> Measured:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
        cwd=WORK.parents[1], capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return Measured(f"{datetime.now(UTC):%Y-%m-%d}", commit or "unknown", machine())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    options = _options()
    if options.fit is not None:
        measured, points = read_points(options.fit.read_text(encoding="utf-8"))
    else:
        Rejoin({}).prepare()
        use_cores(CORES)
        wanted = quick_setups() if options.quick else setups(options.rows)
        measured = measured_now()
        points = run_all(wanted, options.minutes, options.timeout, measured)
        _say(f"points: {_POINTS}")
    if measured is None or all(point.setup.held_out for point in points):
        raise BenchError("BENCH_NO_POINTS", "no point to fit to", hint="more --minutes")
    known = fit(points, calibration(), measured)
    report(known)
    if options.write:
        DATA.write_text(calibration_json(known, points), encoding="utf-8")
        _say(f"written: {DATA}; `make golden` renews docs/tuning.md")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sizing", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="records of a run")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="runs that start later are left out"
    )
    parser.add_argument("--quick", action="store_true", help="five short runs: does it work here?")
    parser.add_argument(
        "--fit", type=Path, metavar="POINTS", help="fit to these points, run nothing"
    )
    parser.add_argument("--write", action="store_true", help="replace the model's data file")
    parser.add_argument("--timeout", type=float, default=300.0, help="most seconds for one run")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("--quick is too short for figures: without --write")
    return options

"""What a run of a job leaves behind, read per epoch: commits, offsets, tasks, files, processes."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.measure import BenchError, SinkProgress, process_tree, processor_s
from spark_jobs.status import QueryStatus, read_status

_PROC = Path("/proc")
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_WARM_FROM = 0.5


@dataclass(frozen=True, slots=True)
class Epoch:
    """A committed epoch and the offsets that it has read up to, by topic."""

    number: int
    committed_at: float
    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Window:
    """The epochs of a run that count: from the end of `first` to the end of `last`."""

    epochs: Sequence[Epoch]
    first: int
    last: int

    @property
    def begins(self) -> float:
        return self.epochs[self.first].committed_at

    @property
    def ends(self) -> float:
        return self.epochs[self.last].committed_at

    @property
    def length(self) -> int:
        return self.last - self.first

    @property
    def rows(self) -> dict[str, int]:
        before, after = self.epochs[self.first].offsets, self.epochs[self.last].offsets
        return {topic: at - before.get(topic, 0) for topic, at in after.items()}

    @property
    def seconds(self) -> tuple[float, ...]:
        """How long each epoch took, from commit to commit."""
        times = [e.committed_at for e in self.epochs[self.first : self.last + 1]]
        return tuple(b - a for a, b in pairwise(times))


def warm_window(epochs: Sequence[Epoch]) -> Window:
    """From half of the records on to the last epoch that reads any."""
    read = [sum(epoch.offsets.values()) for epoch in epochs]
    total = read[-1] if read else 0
    first = next((i for i, count in enumerate(read) if count >= _WARM_FROM * total > 0), 0)
    last = next((i for i, count in enumerate(read) if count == total), 0)
    if last - first < 2:
        raise BenchError(
            "BENCH_FEW_EPOCHS",
            f"{len(epochs)} epochs, {max(last - first, 0)} of them warm: too few for a figure",
            hint="more --rows",
        )
    return Window(epochs, first, last)


@dataclass(frozen=True, slots=True)
class Sample:
    """Processor seconds so far and records in the sink, at a moment."""

    at: float
    job_cpu_s: float
    driver_cpu_s: float
    broker_cpu_s: float
    results: int


@dataclass
class Trace:
    """Watches a run: call it again and again, then ask for its epochs.

    Broker and job are descendants of this process; but for the broker, one that runs already when
    the trace is made is not of the job. Offset files are read as soon as they appear, because old
    ones are removed.
    """

    checkpoint: Path
    status_dir: Path
    topics: frozenset[str]
    broker_pid: int
    progress: SinkProgress
    samples: list[Sample] = field(default_factory=list)
    largest: QueryStatus | None = None
    _epochs: dict[int, Epoch] = field(default_factory=dict)
    _cpu: dict[int, float] = field(default_factory=dict)
    _executors: dict[int, bool] = field(default_factory=dict)
    _logs: Path | None = None
    _not_of_job: frozenset[int] = field(
        default_factory=lambda: frozenset(process_tree(os.getpid()))
    )

    def __call__(self) -> int:
        """Take a sample; the number of records in the sink."""
        for pid in process_tree(os.getpid()):
            self._cpu[pid] = processor_s(pid, self._cpu.get(pid, 0.0))
            if pid not in self._executors or not self._executors[pid]:
                self._executors[pid] = _is_executor(pid)
        of_job = {pid: used for pid, used in self._cpu.items() if pid not in self._not_of_job}
        driver = sum(used for pid, used in of_job.items() if not self._executors.get(pid))
        results = self.progress()
        broker = self._cpu.get(self.broker_pid, 0.0)
        self.samples.append(Sample(time.time(), sum(of_job.values()), driver, broker, results))
        self._read_epochs()
        self._read_status()
        return results

    def epochs(self) -> list[Epoch]:
        """The epochs that are committed, in order."""
        self._read_epochs()
        return [self._epochs[number] for number in sorted(self._epochs)]

    def at(self, moment: float) -> Sample:
        """The sample at a moment, interpolated between those around it."""
        after = next((i for i, s in enumerate(self.samples) if s.at >= moment), None)
        if not after:
            raise BenchError("BENCH_NO_SAMPLES", "a run has no samples around one of its epochs")
        a, b = self.samples[after - 1], self.samples[after]
        share = (moment - a.at) / (b.at - a.at)

        def between(one: float, other: float) -> float:
            return one + (other - one) * share

        return Sample(
            moment,
            between(a.job_cpu_s, b.job_cpu_s),
            between(a.driver_cpu_s, b.driver_cpu_s),
            between(a.broker_cpu_s, b.broker_cpu_s),
            round(between(a.results, b.results)),
        )

    def _read_epochs(self) -> None:
        if self._logs is None:
            self._logs = next((p.parent for p in self.checkpoint.rglob("commits")), None)
        if self._logs is None:
            return
        for commit in (self._logs / "commits").glob("[0-9]*"):
            if commit.name.isdigit() and int(commit.name) not in self._epochs:
                number = int(commit.name)
                try:
                    text = (self._logs / "offsets" / commit.name).read_text(encoding="utf-8")
                    committed_at = commit.stat().st_mtime
                except OSError:  # removed meanwhile
                    continue
                offsets = offsets_of(text, self.topics)
                self._epochs[number] = Epoch(number, committed_at, offsets)

    def _read_status(self) -> None:
        status = read_status(self.status_dir)
        query = status.queries[0] if status is not None and status.queries else None
        if query is not None and _state_bytes(query) >= _state_bytes(self.largest):
            self.largest = query


def _state_bytes(query: QueryStatus | None) -> int:
    return 0 if query is None else sum(operator.state_bytes for operator in query.operators)


def _is_executor(pid: int) -> bool:
    try:
        return _EXECUTOR in (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def offsets_of(text: str, topics: frozenset[str]) -> dict[str, int]:
    """The sum of a topic's offsets in a file of Spark's offset log."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        for topic, partitions in _objects(line):
            if topic in topics and isinstance(partitions, dict):
                found[topic] = sum(int(offset) for offset in partitions.values())
    return found


def _objects(value: Any) -> Iterator[tuple[str, Any]]:
    """All fields of a JSON value, however deep; JSON may stand in texts."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        for name, content in value.items():
            yield name, content
            yield from _objects(content)
    elif isinstance(value, list):
        for content in value:
            yield from _objects(content)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Of Spark's tasks: bytes written for exchanges, the share of the tasks that read Kafka."""

    shuffle_bytes: int
    read_cpu_share: float


def tasks_between(event_log: Path, begins: float, ends: float) -> Tasks:
    """The tasks that ended between two Unix times, from Spark's event log."""
    shuffled, read_ns, all_ns = 0, 0, 0
    for path in sorted(event_log.rglob("*")):
        if not path.is_file() or path.name.startswith("."):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith('{"Event":"SparkListenerTaskEnd"'):
                continue
            event = json.loads(line)
            metrics = event.get("Task Metrics")
            if metrics is None or not begins < event["Task Info"]["Finish Time"] / 1000 <= ends:
                continue
            written = metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            cpu_ns = metrics["Executor CPU Time"]
            shuffled, all_ns = shuffled + written, all_ns + cpu_ns
            received = metrics["Shuffle Read Metrics"]
            if not received["Remote Bytes Read"] + received["Local Bytes Read"]:
                read_ns += cpu_ns
    if not all_ns:
        raise BenchError("BENCH_NO_TASKS", f"{event_log} has no tasks of the measured epochs")
    return Tasks(shuffled, read_ns / all_ns)


def changelog_bytes(checkpoint: Path, begins: float, ends: float) -> int:
    """Bytes of the state's changelog files that were written between two Unix times."""
    stats = [path.stat() for path in checkpoint.rglob("*.changelog")]
    return sum(stat.st_size for stat in stats if begins < stat.st_mtime <= ends)


def topic_bytes(broker_data: Path, topic: str) -> int:
    """Bytes of a topic's records on the broker's disk."""
    segments = (broker_data / "log").glob(f"{topic}-[0-9]*/*.log")
    return sum(path.stat().st_size for path in segments)

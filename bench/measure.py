"""Runs a process and measures it from outside: time, memory, disk and output over time."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.workloads.records import PARTITIONS
from spark_jobs.embedded.process import Child
from spark_jobs.errors import RejoinError

_SAMPLE_S = 0.25
_STOP_GRACE_S = 10.0
_QUERY_TIMEOUT_S = 5.0
_PROC = Path("/proc")
_WARM_FROM, _WARM_TO = 0.25, 0.9


class BenchError(RejoinError):
    """An engine failed, or its result is wrong."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures of one run; sizes and processor time are 0 if the system does not provide them.

    `warm_share_per_s` is the share of all output that is written per second mid-run; `processor_s`
    the seconds that the process and its descendants computed, on all cores together.
    """

    seconds: float
    processor_s: float
    warm_share_per_s: float
    peak_rss_bytes: int
    peak_state_bytes: int


def run_measured(
    command: Sequence[str],
    log_path: Path,
    state_dir: Path,
    output: Callable[[], int],
    timeout_s: float,
) -> Measurement:
    """Measure a process from start to exit; raises BenchError unless its exit code is 0.

    `output` counts the records in the sink so far; `state_dir` is the folder of the state.
    """
    started = time.monotonic()
    child = Child(command, log_path)
    samples: list[tuple[float, int]] = []
    computed: dict[int, float] = {}
    peak_rss = peak_state = 0
    try:
        while not child.wait(_SAMPLE_S):
            now = time.monotonic() - started
            if now > timeout_s:
                raise BenchError(
                    "BENCH_TIMEOUT", f"still running after {timeout_s:.0f} s:\n{child.log_tail()}"
                )
            peak_rss = max(peak_rss, tree_rss_bytes(child.pid))
            for pid in process_tree(child.pid):
                computed[pid] = processor_s(pid, computed.get(pid, 0.0))
            peak_state = max(peak_state, folder_bytes(state_dir))
            samples.append((now, output()))
        seconds = time.monotonic() - started
    finally:
        stop_tree(child)
    if child.exit_code != 0:
        raise BenchError(
            "BENCH_ENGINE_FAILED", f"exit code {child.exit_code}; {log_path}:\n{child.log_tail(40)}"
        )
    peak_state = max(peak_state, folder_bytes(state_dir))
    computed_s = sum(computed.values())
    return Measurement(seconds, computed_s, warm_share_per_s(samples), peak_rss, peak_state)


def warm_share_per_s(samples: Sequence[tuple[float, int]]) -> float:
    """Share of the output per second, between 25 % and 90 % of it; 0 if it came at once.

    >>> warm_share_per_s([(0.0, 0), (5.0, 0), (6.0, 25), (7.0, 50), (8.0, 75), (9.0, 100)])
    0.25
    """
    total = samples[-1][1] if samples else 0
    if total == 0:
        return 0.0
    start = next(s for s in samples if s[1] >= _WARM_FROM * total)
    end = next(s for s in samples if s[1] >= _WARM_TO * total)
    return (end[1] - start[1]) / total / (end[0] - start[0]) if end[0] > start[0] else 0.0


class SinkProgress:
    """Counts the records of a topic, committed or not."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "rejoin-bench-progress",
                "isolation.level": "read_uncommitted",  # to count records of open transactions
                "log_level": 3,
            }
        )
        self._last = 0

    def __call__(self) -> int:
        """The current count; the last one if the broker does not answer in time."""
        try:
            ends = [
                self._consumer.get_watermark_offsets(p, timeout=_QUERY_TIMEOUT_S, cached=False)
                for p in self._partitions
            ]
        except KafkaException:
            return self._last
        self._last = sum(high for low, high in ends)
        return self._last

    def close(self) -> None:
        self._consumer.close()


def process_tree(root: int) -> list[int]:
    """The process and its descendants; only the process itself where there is no /proc."""
    children: dict[int, list[int]] = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def tree_rss_bytes(root: int) -> int:
    """Resident memory of a process and its descendants."""
    return sum(rss_bytes(pid) for pid in process_tree(root))


def rss_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if it has ended or there is no /proc."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def processor_s(pid: int, last: float = 0.0) -> float:
    """Seconds that a process computed so far; `last` if it has ended or there is no /proc."""
    ticks = _ticks(pid)
    return last if ticks is None else sum(ticks[:2]) / os.sysconf("SC_CLK_TCK")


def ended_children_s(pid: int) -> float:
    """Seconds that children of a process computed which have ended; 0 if it has ended itself."""
    ticks = _ticks(pid)
    return 0.0 if ticks is None else sum(ticks[2:]) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> list[int] | None:
    """Processor time of a process, user's and system's, and the same of its ended children."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return [int(ticks) for ticks in fields[11:15]]


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder, which may change meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except OSError:  # renamed or removed meanwhile
                continue
    return total


def stop_tree(child: Child) -> None:
    """Stop the process and its descendants by their ids; does nothing if they have ended."""
    pids = process_tree(child.pid) if child.exit_code is None else []
    child.stop(_STOP_GRACE_S)
    for pid in pids[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue

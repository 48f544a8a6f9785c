"""Runs one engine's job at a fixed rate, and describes how old its results were."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.latency.engines import Engine
from bench.latency.traffic import KEYS, Feed, Latency, Watcher
from bench.latency.workloads import RESULT, Workload, job
from bench.load import create_topics
from bench.measure import BenchError, process_tree, processor_s, stop_tree
from bench.workloads.records import PARTITIONS
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child

_START_WITHIN_S = 240.0


@dataclass(frozen=True, slots=True)
class Load:
    """Stamped records a second, and how long they come: until and after the measurement begins.

    `every_s`: the measurement is described in parts of that length besides; None: as a whole only.
    """

    rate: int
    warmup_s: float
    seconds: float
    every_s: float | None = None

    @property
    def parts_s(self) -> list[float]:
        """The lengths of the parts; the last may be shorter.

        >>> Load(1000, 0.0, 25.0, 10.0).parts_s
        [10.0, 10.0, 5.0]
        """
        every_s = self.every_s or self.seconds
        whole, rest = divmod(self.seconds, every_s)
        return [every_s] * int(whole) + [rest] * (rest > 0)


@dataclass(frozen=True, slots=True)
class Moment:
    """The clock that stamps the records, and processor seconds of the job so far."""

    clock_s: float
    computed_s: float


def measure(engine: Engine, workload: Workload, load: Load) -> Iterator[dict[str, object]]:
    """Run one job and describe the latencies that the consumer saw after the warm-up."""
    with tempfile.TemporaryDirectory() as folder, _broker(Path(folder)) as broker:
        servers = broker.bootstrap_servers
        create_topics(servers, ("l", "r", RESULT))
        file = Path(folder) / "job.sql"
        file.write_text(
            job(workload, servers, engine.settings(Path(folder)), engine.sink), encoding="utf-8"
        )
        feed = Feed(servers)
        for id_ in range(KEYS):
            feed.right(id_)
        feed.wait()
        child = Child(engine.command(file, Path(folder)), Path(folder) / "run.log")
        try:
            with Watcher(servers) as watcher:
                _wait_for_first(feed, workload, watcher, child)
                feed.run(load.rate, load.warmup_s, moves=workload.moves)
                moments = [_moment(child)]
                for part_s in load.parts_s:
                    feed.run(load.rate, part_s, moves=workload.moves)
                    moments.append(_moment(child))
                yield from described_in_parts(watcher.results(), moments, load)
        finally:
            stop_tree(child)
            feed.close()


def _broker(folder: Path) -> Broker:
    """Its collections stop what is measured, each for 25 ms and more: large, so that they are rare.

    With 10,000 records a second there is one in a minute; with the default heap there is one in
    each second.
    """
    return Broker(folder / "broker", heap="8g", young="6g")


def _wait_for_first(feed: Feed, workload: Workload, watcher: Watcher, child: Child) -> None:
    """Send records until the consumer has seen a result."""
    deadline = time.monotonic() + _START_WITHIN_S
    while not watcher.has_started:
        if child.exit_code is not None or time.monotonic() > deadline:
            raise BenchError("BENCH_ENGINE_FAILED", f"no result:\n{child.log_tail(40)}")
        feed.left(range(10 * PARTITIONS))  # a partition without records would hold back the time
        if workload.moves:
            feed.move_watermarks()
        time.sleep(0.2)


def _moment(child: Child) -> Moment:
    return Moment(time.time(), sum(processor_s(pid, 0.0) for pid in process_tree(child.pid)))


def described_in_parts(
    found: Sequence[Latency], moments: Sequence[Moment], load: Load
) -> Iterator[dict[str, object]]:
    """The parts, if there are to be any, by the second at which each begins; then the whole."""
    first, last = moments[0], moments[-1]
    if load.every_s is not None:
        for begin, end in pairwise(moments):
            yield {"from_s": round(begin.clock_s - first.clock_s), **_between(found, begin, end)}
    yield _between(found, first, last)


def _between(found: Sequence[Latency], begin: Moment, end: Moment) -> dict[str, object]:
    """Latencies of what was sent between two moments, whenever its results came."""
    taken = sorted(ms for sent_s, ms in found if begin.clock_s <= sent_s < end.clock_s)
    return {**described(taken), "cpu_s": round(end.computed_s - begin.computed_s, 1)}


def described(taken: Sequence[float]) -> dict[str, object]:
    """Percentiles of sorted latencies in milliseconds."""
    if not taken:
        return {"results": 0}

    def at(share: float) -> float:
        return round(taken[min(int(len(taken) * share), len(taken) - 1)], 1)

    return {
        "results": len(taken),
        "p50_ms": at(0.5),
        "p90_ms": at(0.9),
        "p99_ms": at(0.99),
        "max_ms": round(taken[-1], 1),
    }

"""Runs one engine's job at a fixed rate, and describes how old its results were."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.latency.engines import Engine
from bench.latency.traffic import KEYS, Feed, Watchers
from bench.latency.workloads import RESULT, Workload, job
from bench.load import create_topics
from bench.measure import BenchError, process_tree, processor_s, stop_tree
from bench.workloads.records import PARTITIONS
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child

_START_WITHIN_S = 240.0


def measure(
    engine: Engine, workload: Workload, rate: int, seconds: float, warmup_s: float
) -> Iterator[dict[str, object]]:
    """Run one job and describe the latencies that each consumer saw after the warm-up."""
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "broker") as broker:
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
            with Watchers(servers) as watchers:
                _wait_for_first(feed, workload, watchers, child)
                feed.run(rate, warmup_s, moves=workload.moves)
                since = time.time()
                cpu = _computed_s(child)
                feed.run(rate, seconds, moves=workload.moves)
                cpu = _computed_s(child) - cpu
                for isolation, found in watchers.results():
                    taken = sorted(ms for sent_s, ms in found if sent_s >= since)
                    yield {"consumer": isolation, **described(taken), "cpu_s": round(cpu, 1)}
        finally:
            stop_tree(child)
            feed.close()


def _wait_for_first(feed: Feed, workload: Workload, watchers: Watchers, child: Child) -> None:
    """Send records until both consumers have seen a result."""
    deadline = time.monotonic() + _START_WITHIN_S
    while not watchers.have_started:
        if child.exit_code is not None or time.monotonic() > deadline:
            raise BenchError("BENCH_ENGINE_FAILED", f"no result:\n{child.log_tail(40)}")
        for id_ in range(10 * PARTITIONS):  # a partition without records would hold back the time
            feed.left(id_)
        if workload.moves:
            feed.move_watermarks()
        time.sleep(0.2)


def _computed_s(child: Child) -> float:
    """Processor seconds of the driver and its JVM so far."""
    return sum(processor_s(pid, 0.0) for pid in process_tree(child.pid))


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

"""`python -m bench.sidecar`: measures the sidecar under load, each on a core of its own.

The load is an open loop: request i is due at start + i / rate, however slow the others are. Its
latency counts from that moment, so that a stall affects every request that was due in it.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import cast

import uvloop

from bench.measure import processor_s
from bench.sidecar.job import keep_changing
from spark_jobs.embedded.process import LOOPBACK, Child, free_ports

CONNECTIONS = 64
WARM_S = 3.0
P99_MS = 20.0
RSS_EVERY_S = 10.0
MOST_GROWTH = 0.05
_UP_S = 30.0
_DRAIN_S = 5.0
_MIB = 2**20


@dataclass(slots=True)
class LoadResult:
    """The result of one load; latencies in seconds, memory in bytes."""

    latencies: list[float] = field(default_factory=list)
    errors: int = 0
    body_bytes: int = 0
    rss: list[int] = field(default_factory=list)
    seconds: float = 0.0
    cpu_s: float = 0.0

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000

    def growth(self) -> float:
        """Relative growth of memory since the second sample; the first may be of a cold process."""
        first, last = self.rss[min(1, len(self.rss) - 1)], self.rss[-1]
        return last / first - 1


class Load:
    """Requests that are due, and idle connections."""

    def __init__(self, request: bytes, until: float) -> None:
        self.request = request
        self.due: deque[float] = deque()
        self.free: deque[Connection] = deque()
        self.result = LoadResult()
        self.counts_from = until

    def pair(self) -> None:
        while self.due and self.free:
            self.free.popleft().send(self.due.popleft())

    def done(self, due: float, good: bool, size: int) -> None:
        if not good:
            self.result.errors += 1
        elif due >= self.counts_from:
            self.result.latencies.append(time.perf_counter() - due)
            self.result.body_bytes = size


class Connection(asyncio.Protocol):
    """A connection that has one request at a time."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._got = bytearray()
        self._wanted = 0
        self._due: float | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has its own class
        self._load.free.append(self)

    def send(self, due: float) -> None:
        self._due = due
        self._got.clear()
        self._wanted = 0
        if self._transport is not None:
            self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._wanted and (end := self._got.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._got[:end]).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._wanted = end + 4 + int(length)
        if self._wanted and len(self._got) >= self._wanted:
            self._finish(self._got.startswith(b"HTTP/1.1 200"))

    def connection_lost(self, error: Exception | None) -> None:
        if self._due is not None:
            self._load.done(self._due, good=False, size=0)

    def _finish(self, good: bool) -> None:
        due, self._due = self._due, None
        if due is not None:
            self._load.done(due, good, self._wanted)
        self._load.free.append(self)
        self._load.pair()


async def run_load(port: int, pid: int, rate: float, seconds: float, encoding: str) -> LoadResult:
    """Run the load for `seconds` after a warm-up, over `CONNECTIONS` connections."""
    request = (
        f"GET /metrics HTTP/1.1\r\nHost: {LOOPBACK}\r\nAccept-Encoding: {encoding}\r\n\r\n"
    ).encode()
    begin = time.perf_counter() + 0.2
    load = Load(request, begin + WARM_S)
    loop = asyncio.get_running_loop()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: Connection(load), LOOPBACK, port)
    memory_watch = asyncio.create_task(watch_memory(pid, load.result))
    used_s = processor_s(pid)
    sent, total = 0, int((WARM_S + seconds) * rate)
    while sent < total:
        present = time.perf_counter()
        while sent < total and begin + sent / rate <= present:
            load.due.append(begin + sent / rate)
            sent += 1
        load.pair()
        await asyncio.sleep(max(begin + sent / rate - time.perf_counter(), 0))
    deadline = time.perf_counter() + _DRAIN_S
    while len(load.free) < CONNECTIONS and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
    load.result.errors += len(load.due) + CONNECTIONS - len(load.free)
    load.result.seconds = time.perf_counter() - load.counts_from
    load.result.cpu_s = processor_s(pid) - used_s
    memory_watch.cancel()
    load.result.rss.append(resident(pid))
    return load.result


async def watch_memory(pid: int, result: LoadResult) -> None:
    began = time.perf_counter()
    while True:
        result.rss.append(resident(pid))
        at_s = time.perf_counter() - began
        sys.stdout.write(f"{at_s:6.0f} s  RSS {result.rss[-1] / _MIB:.1f} MiB\n")
        sys.stdout.flush()
        await asyncio.sleep(RSS_EVERY_S)


def resident(pid: int) -> int:
    """Resident memory of the process, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns exit code 1 if p99, rate, errors or memory missed the target."""
    options = _options(arguments)
    own, other = _cores()
    os.sched_setaffinity(0, {own})
    with tempfile.TemporaryDirectory(prefix="rejoin-sidecar-") as folder:
        writer = get_context("spawn").Process(
            target=keep_changing, args=(folder, options.partitions), daemon=True
        )
        writer.start()
        [port] = free_ports(1)
        command = ["taskset", "--cpu-list", str(other), sys.executable, "-m", "service.main"]
        command += ["--status-dir", folder, "--port", str(port)]
        child = Child(command, Path(folder) / "sidecar.log")
        try:
            _wait_until_up(port)
            encoding = "identity" if options.plain else "gzip"
            seconds = options.minutes * 60
            result = uvloop.run(run_load(port, child.pid, options.rate, seconds, encoding))
        finally:
            child.stop(5.0)
            writer.terminate()
            writer.join()
    return _report_result(result, options.rate)


def _report_result(result: LoadResult, rate: float) -> int:
    achieved = len(result.latencies) / result.seconds if result.seconds else 0.0
    if not result.latencies:
        sys.stdout.write(f"no request was answered, {result.errors} errors\n")
        return 1
    report = {
        "requests": len(result.latencies),
        "errors": result.errors,
        "asked_per_second": rate,
        "achieved_per_second": round(achieved, 1),
        "p50_ms": round(result.quantile_ms(0.5), 2),
        "p99_ms": round(result.quantile_ms(0.99), 2),
        "max_ms": round(result.quantile_ms(1.0), 2),
        "cpu_ms_per_request": round(result.cpu_s * 1000 / (rate * (result.seconds + WARM_S)), 3),
        "answer_bytes": result.body_bytes,
        "rss_mib": [round(n / _MIB, 1) for n in result.rss],
        "rss_growth": round(result.growth(), 4),
    }
    good = (
        result.errors == 0
        and achieved >= 0.99 * rate
        and result.quantile_ms(0.99) < P99_MS
        and result.growth() < MOST_GROWTH
    )
    sys.stdout.write(json.dumps({**report, "met": good}, indent=1) + "\n")
    return 0 if good else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sidecar", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0, help="requests per second")
    parser.add_argument("--minutes", type=float, default=10.0, help="duration after the warm-up")
    parser.add_argument("--partitions", type=int, default=50, help="per table, of six tables")
    parser.add_argument("--plain", action="store_true", help="request uncompressed answers")
    return parser.parse_args(arguments)


def _cores() -> tuple[int, int]:
    """The cores for the load and for the sidecar; the same core if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[-1], cores[0]


def _wait_until_up(port: int) -> None:
    deadline = time.monotonic() + _UP_S
    while True:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=5) as answer:
                if b"rejoin_epochs_total{" in answer.read():
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)

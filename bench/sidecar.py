"""`python -m bench.sidecar`: the sidecar under load, one core for it and another one for the load.

Open loop: request i is due at start + i / rate whatever became of the others, and its latency
counts from then, so that a stall is paid for by every request that was due in it.
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

from bench.sidecar_job import keep_changing
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
class Outcome:
    """Of one load: latencies in seconds, memory in bytes."""

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
        """From the second sample on: the first one may be of a process that still warms up."""
        first, last = self.rss[min(1, len(self.rss) - 1)], self.rss[-1]
        return last / first - 1


class Load:
    """Requests that are due, and the connections that wait for the next one."""

    def __init__(self, request: bytes, until: float) -> None:
        self.request = request
        self.due: deque[float] = deque()
        self.free: deque[Connection] = deque()
        self.outcome = Outcome()
        self.counts_from = until

    def pair(self) -> None:
        while self.due and self.free:
            self.free.popleft().send(self.due.popleft())

    def done(self, due: float, good: bool, size: int) -> None:
        if not good:
            self.outcome.errors += 1
        elif due >= self.counts_from:
            self.outcome.latencies.append(time.perf_counter() - due)
            self.outcome.body_bytes = size


class Connection(asyncio.Protocol):
    """One request at a time over one connection."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._got = bytearray()
        self._wanted = 0
        self._due: float | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's have a class of their own
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


async def drive(port: int, pid: int, rate: float, seconds: float, encoding: str) -> Outcome:
    """`seconds` of load after a warm-up, on as many connections as are ever needed at once."""
    request = (
        f"GET /metrics HTTP/1.1\r\nHost: {LOOPBACK}\r\nAccept-Encoding: {encoding}\r\n\r\n"
    ).encode()
    begin = time.perf_counter() + 0.2
    load = Load(request, begin + WARM_S)
    loop = asyncio.get_running_loop()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: Connection(load), LOOPBACK, port)
    watching = asyncio.create_task(watch(pid, load.outcome))
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
    load.outcome.errors += len(load.due) + CONNECTIONS - len(load.free)
    load.outcome.seconds = time.perf_counter() - load.counts_from
    load.outcome.cpu_s = processor_s(pid) - used_s
    watching.cancel()
    load.outcome.rss.append(resident(pid))
    return load.outcome


async def watch(pid: int, outcome: Outcome) -> None:
    began = time.perf_counter()
    while True:
        outcome.rss.append(resident(pid))
        at_s = time.perf_counter() - began
        sys.stdout.write(f"{at_s:6.0f} s  RSS {outcome.rss[-1] / _MIB:.1f} MiB\n")
        sys.stdout.flush()
        await asyncio.sleep(RSS_EVERY_S)


def resident(pid: int) -> int:
    """Bytes of the process that are in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def processor_s(pid: int) -> float:
    """What the process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if the sidecar missed the target: p99, rate, errors, memory."""
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
            outcome = uvloop.run(drive(port, child.pid, options.rate, seconds, encoding))
        finally:
            child.stop(5.0)
            writer.terminate()
            writer.join()
    return _judge(outcome, options.rate)


def _judge(outcome: Outcome, rate: float) -> int:
    achieved = len(outcome.latencies) / outcome.seconds if outcome.seconds else 0.0
    if not outcome.latencies:
        sys.stdout.write(f"no answer at all, {outcome.errors} errors\n")
        return 1
    told = {
        "requests": len(outcome.latencies),
        "errors": outcome.errors,
        "asked_per_second": rate,
        "achieved_per_second": round(achieved, 1),
        "p50_ms": round(outcome.quantile_ms(0.5), 2),
        "p99_ms": round(outcome.quantile_ms(0.99), 2),
        "max_ms": round(outcome.quantile_ms(1.0), 2),
        "cpu_ms_per_request": round(outcome.cpu_s * 1000 / (rate * (outcome.seconds + WARM_S)), 3),
        "answer_bytes": outcome.body_bytes,
        "rss_mib": [round(n / _MIB, 1) for n in outcome.rss],
        "rss_growth": round(outcome.growth(), 4),
    }
    good = (
        outcome.errors == 0
        and achieved >= 0.99 * rate
        and outcome.quantile_ms(0.99) < P99_MS
        and outcome.growth() < MOST_GROWTH
    )
    sys.stdout.write(json.dumps({**told, "met": good}, indent=1) + "\n")
    return 0 if good else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sidecar", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0, help="requests per second")
    parser.add_argument("--minutes", type=float, default=10.0, help="after a warm-up")
    parser.add_argument("--partitions", type=int, default=50, help="of each of the six tables")
    parser.add_argument("--plain", action="store_true", help="uncompressed, as nobody scrapes")
    return parser.parse_args(arguments)


def _cores() -> tuple[int, int]:
    """For the load and for the sidecar; the same one where there is no other."""
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


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.long_ttl`: what the list of due slots costs each batch, by how far it reaches.

Runs state machines in a JVM without Spark, with their state in memory: one key group, one row of a
new key per batch, and time that moves on by one slot (4.096 s) each time. A regular join's rows
expire, a deduplication's wait for the watermark. Cells and bytes do not depend on how busy the
machine is. Run it by hand.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.harness.gateway import new_machine
from tests.kernel.oracle.deduplicate import Deduplication, N
from tests.kernel.oracle.regular import Join
from tests.kernel.oracle.rows import K
from tests.kernel.oracle.sides import Side

Events: TypeAlias = list[Any]

SLOT_MS = 4_096
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
_LENGTHS = {"1h": HOUR_MS, "1d": 24 * HOUR_MS, "30d": 720 * HOUR_MS, "365d": 8_760 * HOUR_MS}
_MEASURED = 2_000
_CHUNK = 10_000


def expiring(ttl_ms: int) -> str:
    """As many batches as the TTL has slots, then those that are measured."""
    side = Side("no-unique-key", (), upsert=False)
    join = Join(side, side, "inner", (K,), (True,), None, ttl_ms=(ttl_ms, ttl_ms))
    machine = new_machine(json.dumps(join.node()))

    def batch(number: int) -> Events:
        now = START_MS + number * SLOT_MS
        return [["clock", now], ["left", "+I", [number, number, "a", 0, "text"]]]

    full = ttl_ms // SLOT_MS + 100
    for start in range(0, full, _CHUNK):
        run(machine, [batch(n) for n in range(start, min(start + _CHUNK, full))])
    return cost(machine, full, batch)


def waiting(ahead_ms: int) -> str:
    """Rows for all slots up to then, and the watermark behind them."""
    spec = Deduplication("first", "event", True, True, (N,), None, None, ttl_ms=0)
    machine = new_machine(json.dumps(spec.node()))
    full = ahead_ms // SLOT_MS

    def row(number: int) -> Events:
        return [0, "+I", ["a", number, 1, START_MS + number * SLOT_MS]]

    def batch(number: int) -> Events:
        return [row(number), ["watermark", 0, START_MS + (number - full) * SLOT_MS]]

    run(machine, [[["clock", START_MS], ["watermark", 0, START_MS - 1]]])
    for start in range(0, full, _CHUNK):
        run(machine, [[row(n) for n in range(start, min(start + _CHUNK, full))]])
    return cost(machine, full, batch)


def run(machine: Any, batches: list[Events]) -> None:
    machine.run(json.dumps(batches))


def cost(machine: Any, first: int, batch: Callable[[int], Events]) -> str:
    before = json.loads(machine.stateTraffic())
    run(machine, [batch(number) for number in range(first, first + _MEASURED)])
    after = json.loads(machine.stateTraffic())
    reads, writes, read, written = ((b - a) / _MEASURED for a, b in zip(before, after, strict=True))
    return (
        f"{first:>9,} slots: {reads:.1f} cells and {read:,.0f} bytes read, "
        f"{writes:.1f} cells and {written:,.0f} bytes written per batch"
    )


_CASES = {"expiring": expiring, "waiting": waiting}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.long_ttl", description=__doc__)
    parser.add_argument("--length", choices=_LENGTHS, nargs="+", default=["1h", "1d", "30d"])
    parser.add_argument("--case", choices=_CASES, nargs="+", default=list(_CASES))
    given = parser.parse_args()
    for name in given.case:
        for length in given.length:
            sys.stdout.write(f"{name}, {length:>4}, {_CASES[name](_LENGTHS[length])}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

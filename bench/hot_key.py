"""`python -m bench.hot_key`: measures the cost of a change when many rows share one join key.

Runs a regular join in a JVM without Spark, with its state in memory. Time per change and bytes per
row show whether the cost grows with the number of rows; the updates of one row in one batch, what
is left of them to be joined. Run it by hand.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.harness.gateway import new_machine
from tests.kernel.oracle.regular import Join
from tests.kernel.oracle.rows import ID, K
from tests.kernel.oracle.sides import Side

_SIDES = {
    "has-unique-key": Side("has-unique-key", (ID,), upsert=False),
    "no-unique-key": Side("no-unique-key", (), upsert=False),
}
_CASES = {
    "left join, hot left side": ("left", "left", (0, 0)),
    "inner join, hot right side": ("inner", "right", (0, 0)),
    "full join, hot left side, TTL": ("full", "left", (10**9, 10**9)),
    "semi join, hot right side": ("semi", "right", (0, 0)),
    "anti join, hot left side": ("anti", "left", (0, 0)),
}
_CHANGES = 2_000
_UPDATES, _MATCHES = 20, 20_000  # of one row in one batch, each of which meets so many others
_LOAD_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The mean cost of a change that is processed in a batch of its own."""

    micros: float
    cells: float
    kilobytes: float


def row(number: int, value: int) -> list[Any]:
    return [number, 1, "a", value, "text"]


def load(machine: Any, side: str, rows: int) -> float:
    """Insert all rows in large batches; returns the seconds."""
    started = time.perf_counter()
    for start in range(0, rows, _LOAD_BATCH):
        batch = [[side, "+I", row(n, 0)] for n in range(start, min(start + _LOAD_BATCH, rows))]
        machine.run(json.dumps([batch]))
    return time.perf_counter() - started


def measure(machine: Any, changes: Iterable[list[Any]]) -> Cost:
    batches = [[change] for change in changes]
    text = json.dumps(batches)
    before = json.loads(machine.stateTraffic())
    started = time.perf_counter()
    machine.run(text)
    seconds = time.perf_counter() - started
    after = json.loads(machine.stateTraffic())
    reads, writes, read, written = (b - a for a, b in zip(before, after, strict=True))
    n = len(batches)
    return Cost(seconds * 1e6 / n, (reads + writes) / n, (read + written) / n / 1024)


def run_case(name: str, layout: str, rows: int) -> None:
    join_type, hot, ttl_ms = _CASES[name]
    side = _SIDES[layout]
    join = Join(side, side, join_type, (K,), (True,), None, ttl_ms=ttl_ms)
    machine = new_machine(json.dumps(join.node()))
    seconds = load(machine, hot, rows)
    step = max(rows // _CHANGES, 1)
    picked = [n * step % rows for n in range(min(_CHANGES, rows))]
    other = "right" if hot == "left" else "left"
    costs = {
        "insert": measure(machine, ([hot, "+I", row(rows + n, 0)] for n in range(_CHANGES))),
        "delete": measure(machine, ([hot, "-D", row(n, 0)] for n in picked)),
    }
    if join_type == "semi":
        costs["left row"] = measure(machine, ([other, "+I", row(n, 0)] for n in range(_CHANGES)))
    per_row = machine.stateBytes() / sum(json.loads(machine.stateRows()))
    line = f"{name}, {layout}, {rows:>9,} rows: load {rows / seconds:>9,.0f} rows/s,"
    line += f" {per_row:5.1f} bytes/row"
    for change, cost in costs.items():
        line += f"; {change} {cost.micros:.0f} us, {cost.cells:.1f} cells, {cost.kilobytes:.1f} kB"
    say(line)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run_updates() -> None:
    """A row that all rows of the other side match is updated several times in one batch."""
    updated = Side("join-key-contains-unique-key", (K,), upsert=True)
    join = Join(updated, _SIDES["no-unique-key"], "inner", (K,), (True,), None)
    machine = new_machine(json.dumps(join.node()))
    load(machine, "right", _MATCHES)
    machine.run(json.dumps([[["left", "+U", row(0, 0)]]]))
    batch = [["left", "+U", row(0, value)] for value in range(1, _UPDATES + 1)]
    started = time.perf_counter()
    results = len(json.loads(machine.run(json.dumps([batch])))[0])
    seconds = time.perf_counter() - started
    say(
        f"{_UPDATES} updates of one row, {_MATCHES:,} matches: {seconds:.2f} s, {results:,} results"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hot_key", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--case", choices=_CASES, nargs="+", default=list(_CASES))
    given = parser.parse_args()
    run_updates()
    for name in given.case:
        for layout in _SIDES:
            for rows in given.rows:
                run_case(name, layout, rows)


if __name__ == "__main__":
    main()

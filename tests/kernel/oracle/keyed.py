"""What the models of operators with one result row per key share: time, TTL, the net change."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.kernel.oracle.check import Batch, Emitted, Event

Row: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[str, Row]
INPUT = 0
START = -(2**63)
ADDS = ("+I", "+U")


def output(
    where: str | None = None,
    pair_by: Sequence[str] | None = None,
    shown: Sequence[str] | None = None,
) -> dict[str, Any]:
    paired, listed = (
        None if names is None else [f"`{name}`" for name in names] for names in (pair_by, shown)
    )
    return {"where": where, "pairBy": paired, "timeZone": "UTC", "shown": listed}


def timing(ttl_ms: int = 0, watermarks: bool = False) -> dict[str, Any]:
    return {
        "inputs": [[{"topic": INPUT, "idleTimeoutMs": 0}]] if watermarks else [],
        "policy": "min",
        "forward": None,
        "tickMs": 0,
        "ttlMs": [ttl_ms, ttl_ms],
    }


@dataclass(slots=True)
class Time:
    """Processing time and the watermark of the only partition, from the marks of the batches."""

    now: int = 0
    before: int = START
    watermark: int = START

    def hear(self, batch: Batch) -> None:
        self.before = self.watermark
        self.now = max([self.now, *(e[1] for e in batch if e[0] == "clock")])
        marks = [e[2] for e in batch if e[0] == "watermark"]
        self.watermark = max([self.watermark, *marks])


@dataclass(slots=True)
class Lives:
    """When each key was last written; a key written at t is gone at t + ttl."""

    ttl_ms: int
    written: dict[Key, int] = field(default_factory=dict)

    def expired(self, now: int) -> list[Key]:
        if not self.ttl_ms:
            return []
        gone = [key for key, at in self.written.items() if at + self.ttl_ms <= now]
        for key in gone:
            del self.written[key]
        return gone


@dataclass(frozen=True, slots=True)
class Sink:
    """What stands behind the operator: a filter, perhaps an upsert sink keyed by `pair_by`.

    `shown`: the columns of a SELECT list that does not have them all.
    """

    accepts: Callable[[Row], bool] = lambda _: True
    pair_by: tuple[int, ...] | None = None
    shown: tuple[int, ...] | None = None

    def step(
        self, before: Row | None, after: Row | None, repeats: bool, inserts: str = "+I"
    ) -> list[Change]:
        """The only right output for a step from one row to another."""
        if before is not None and not self.accepts(before):
            before = None
        if after is not None and not self.accepts(after):
            after = None
        if after is None:
            return [] if before is None else [("-D", before)]
        if before is None:
            return [(inserts, after)]
        if self._show(before) == self._show(after) and not repeats:
            return []
        if self.pair_by is None:
            return [("-U", before), ("+U", after)]
        moved = any(before[i] != after[i] for i in self.pair_by)
        return [("-D", before), ("+U", after)] if moved else [("+U", after)]

    def _show(self, row: Row) -> Row:
        return row if self.shown is None else tuple(row[i] for i in self.shown)


def rows_of(batch: Batch) -> list[tuple[str, Row]]:
    return [(e[1], tuple(e[2])) for e in batch if e[0] == INPUT]


def compare(
    expected: dict[Key, list[Change]], emitted: Emitted, key_of: Callable[[Row], Key]
) -> list[str]:
    """Key by key, in order; keys may leave in any order."""
    found: dict[Key, list[Change]] = {}
    for kind, *values in emitted:
        row = tuple(values)
        found.setdefault(key_of(row), []).append((kind, row))
    keys: Iterable[Key] = {**expected, **found}
    return [
        f"{key}: emits {found.get(key, [])}, expected {expected.get(key, [])}"
        for key in keys
        if found.get(key, []) != expected.get(key, [])
    ]


class Marks:
    """Random marks between rows: the clock and the watermark go on in small and large steps."""

    def __init__(self, rng: random.Random, clock: bool, watermark: bool) -> None:
        self._rng = rng
        self._kinds = [k for k, on in (("clock", clock), ("watermark", watermark)) if on]
        self.clock = 0
        self.watermark = rng.choice([0, 0, -9_000])

    def next(self) -> list[Event]:
        if not self._kinds or self._rng.random() < 0.75:
            return []
        if self._rng.choice(self._kinds) == "clock":
            self.clock += self._rng.choice([1, 3, 10, 100, 4_096, 9_000])
            return [["clock", self.clock]]
        self.watermark += self._rng.choice([0, 1, 2, 5, 20, 4_096, 9_000])
        return [["watermark", INPUT, self.watermark]]

"""Regular joins whose rows expire: Flink's operators row by row, with an expiry in every row."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
)
from tests.kernel.oracle.regular import JOIN_TYPES, ChangelogWriter, Join, random_side
from tests.kernel.oracle.rows import PADDING, RESIDUALS, J, K, Row

_FAR = 10**12  # later than any expiry
_SHORT = (0, 30, 3_000, 5_000, 50_000)
_LONG = (0, 3_600_000, 30 * 24 * 3_600_000)  # with many times at which rows expire


@dataclass(slots=True)
class Stored:
    """A row with its copies, its match counter, and the time at which it is gone."""

    row: Row
    copies: int
    matches: int
    expiry: float


@dataclass(slots=True)
class ExpiringSide:
    """All rows of one side, whatever their join key."""

    name: str
    join: Join
    rows: dict[Row, Stored] = field(default_factory=dict)

    @property
    def ttl_ms(self) -> int:
        return self.join.ttl_ms[self.name == "right"]

    @property
    def keeps_counters(self) -> bool:
        return self.join.is_outer(self.name) or (self.join.left_only and self.name == "left")

    def identity(self, row: Row) -> Row:
        side = self.join.left if self.name == "left" else self.join.right
        if side.layout == "no-unique-key":
            return row
        return tuple(row[i] for i in (*self.join.key, *side.unique_key))

    def alive(self, now: int) -> Iterator[Stored]:
        return (stored for stored in self.rows.values() if stored.expiry > now)

    def find(self, row: Row, now: int) -> Stored | None:
        stored = self.rows.get(self.identity(row))
        return stored if stored is not None and stored.expiry > now else None

    def expiry(self, now: int) -> float:
        return now + self.ttl_ms if self.ttl_ms else float("inf")

    def add(self, row: Row, matches: int, now: int) -> None:
        known = self.find(row, now)
        copies = known.copies + 1 if known else 1
        self.rows[self.identity(row)] = Stored(row, copies, matches, self.expiry(now))

    def remove(self, row: Row, now: int) -> None:
        known = self.find(row, now)
        if known is None:
            return
        known.copies -= 1
        known.expiry = self.expiry(now)
        if known.copies == 0:
            del self.rows[self.identity(row)]


class ExpiringModel:
    """What Flink's operators would emit; compared by what it adds up to in each batch."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._sides = {name: ExpiringSide(name, join) for name in ("left", "right")}
        self._now = 0
        self._net: Counter[Row] = Counter()

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._net.clear()
        self._now = max([self._now, *(event[1] for event in batch if event[0] == "clock")])
        for side in ("left", "right"):
            for name, kind, *values in batch:
                if name == side:
                    self._change(self._sides[side], kind, tuple(values[0]))
        expected = {row: count for row, count in self._net.items() if count}
        found: Counter[Row] = Counter()
        problems = []
        for kind, *values in emitted:
            sign = 1 if kind in ("+I", "+U") else -1
            if found[tuple(values)] * sign < 0:
                problems.append(f"retracts and adds in one batch: {values}")
            found[tuple(values)] += sign
        if found != expected:
            problems.append(f"adds up to {dict(found)}, expected {expected}")
        return problems

    def state_rows(self) -> list[int] | None:
        """Cleaned up for certain only after all has expired."""
        if self._now < _FAR:
            return None
        return [sum(s.copies for s in side.alive(self._now)) for side in self._sides.values()]

    def _emit(self, input_side: ExpiringSide, row: Row, other: Row, count: int) -> None:
        joined = (row, other) if input_side.name == "left" else (other, row)
        if self._join.shows(*joined):
            self._net[joined[0] + joined[1]] += count

    def _change(self, side: ExpiringSide, kind: str, row: Row) -> None:
        spec = self._join.left if side.name == "left" else self._join.right
        known = side.find(row, self._now)
        if kind in ("+I", "+U"):
            if known and spec.layout != "no-unique-key":
                self._apply(side, known.row, -1)
            self._apply(side, row, 1)
        elif known:
            self._apply(side, known.row, -1)
        elif side.ttl_ms and not spec.upsert:
            self._apply(side, row, -1)

    def _apply(self, side: ExpiringSide, row: Row, sign: int) -> None:
        other = self._sides["right" if side.name == "left" else "left"]
        matches = [s for s in other.alive(self._now) if self._matches(side, row, s.row)]
        if self._join.left_only:
            self._left_only(side, row, matches, sign)
        else:
            self._pairs(side, row, matches, sign)
        if other.keeps_counters:
            for stored in matches:
                stored.matches += sign
                stored.expiry = other.expiry(self._now)
        if sign > 0:
            side.add(row, sum(s.copies for s in matches), self._now)
        else:
            side.remove(row, self._now)

    def _pairs(self, side: ExpiringSide, row: Row, matches: list[Stored], sign: int) -> None:
        other = self._sides["right" if side.name == "left" else "left"]
        for stored in matches:
            self._emit(side, row, stored.row, sign * stored.copies)
            if other.keeps_counters and stored.matches == (0 if sign > 0 else 1):
                self._emit(other, stored.row, PADDING, -sign * stored.copies)
        if side.keeps_counters and not matches:
            self._emit(side, row, PADDING, sign)

    def _left_only(self, side: ExpiringSide, row: Row, matches: list[Stored], sign: int) -> None:
        semi = self._join.join_type == "semi"
        if side.name == "left":
            if bool(matches) == semi:
                self._emit(side, row, PADDING, sign)
            return
        for stored in matches:
            if stored.matches == (0 if sign > 0 else 1):
                change = sign if semi else -sign
                self._emit(self._sides["left"], stored.row, PADDING, change * stored.copies)

    def _matches(self, side: ExpiringSide, row: Row, other: Row) -> bool:
        return (
            self._join.matches(row, other)
            if side.name == "left"
            else self._join.matches(other, row)
        )


def random_case(name: str, rng: random.Random, size: int) -> Case:
    key: tuple[int, ...] = rng.choice([(K,), (K,), (K, J), ()])
    left, right = random_side(key, rng), random_side(key, rng)
    is_long = rng.random() < 0.2
    ttls = _LONG if is_long else _SHORT
    join = Join(
        left,
        right,
        rng.choice(JOIN_TYPES),
        key=key,
        filter_nulls=tuple(rng.random() < 0.7 for _ in key),
        residual=rng.choice([None, None, *RESIDUALS]),
        ttl_ms=rng.choice([(a, b) for a in ttls for b in ttls if a or b]),
    )
    spread = rng.choice([1, 3]) if key else 1
    writers = [
        ChangelogWriter(name, side, rng, spread)
        for name, side in (("left", left), ("right", right))
    ]
    clock = _Clock(rng, join.ttl_ms, jumps=0.005 if is_long else 1)
    ticks = 0.5 if is_long else 0.2
    events: list[Event] = []
    while len(events) < (max(size, 600) if is_long else size):
        events += clock.tick() if rng.random() < ticks else writers[rng.random() < 0.5].write()
    batches = [*cut_into_batches(events, rng), [["clock", _FAR]]]
    model = ExpiringModel
    return Case(name, join.node(), batches, random_restarts(batches, rng), lambda: model(join))


class _Clock:
    """Jumps that end just before, at and just after an expiry, far ones, and small steps."""

    def __init__(self, rng: random.Random, ttl_ms: tuple[int, int], jumps: float) -> None:
        self._rng = rng
        self._ttl_ms = ttl_ms
        self._jumps = jumps
        self._now = 0

    def tick(self) -> list[Any]:
        ttl = self._rng.choice(self._ttl_ms)
        near = [max(ttl - 1, 0), ttl, ttl + 1]
        steps = [4_096, 20_000, 100_000]
        if self._rng.random() < self._jumps:
            steps = [1, 7, ttl // 3, ttl // 2, *near, 4_096, 20_000]
        self._now += self._rng.choice(steps)
        return [["clock", self._now]]

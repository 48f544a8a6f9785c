"""Interval joins of rows that change: the model recomputes the whole result after every step."""

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from tests.kernel.oracle import interval
from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
)
from tests.kernel.oracle.interval import END, ID, START, Join, K, Row, T, V

_ABSENT: Row = (None,) * 4
_SIDES = ("left", "right")


@dataclass(slots=True, eq=False)
class Known:
    """A row of an input. `met`: what a late row was joined with when it came; None if in time."""

    side: int
    time: int | None
    row: Row
    number: int
    met: frozenset[int] | None = None


class ChangesModel:
    """Keeps every row that counts, for ever, and joins all of them anew."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._rows: list[Known] = []
        self._marks = [START, START]
        self._watermark = START
        self._ended = False
        self._count = 0
        self._shown: Counter[Row] = Counter()

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        before = self._watermark
        for event in batch:
            if event[0] == "watermark":
                side = _SIDES.index(event[1])
                self._marks[side] = max(self._marks[side], event[2])
            self._ended |= event[0] == "end"
        for side, name in enumerate(_SIDES):
            for event in batch:
                if event[0] == name:
                    self._change(side, event[1], tuple(event[2]), before)
        pick = max if self._join.policy == "max" else min
        self._watermark = max(before, END if self._ended else pick(self._marks))
        return self._compare(emitted, before)

    def state_rows(self) -> list[int]:
        kept = [r.side for r in self._rows if self._is_kept(r)]
        return [kept.count(0), kept.count(1)]

    # --- which rows count -----------------------------------------------------------------------

    def _reach(self, side: int) -> int:
        return max(self._join.size(side), 0)

    def _is_open(self, side: int, time: int, watermark: int) -> bool:
        return watermark < END and time + self._reach(side) + self._join.min_cleanup > watermark

    def _is_padded(self, side: int, time: int) -> bool:
        if self._join.fires_early(side, time, self._watermark):
            return True
        return not self._is_open(side, time, self._watermark)

    def _is_kept(self, known: Known) -> bool:
        """As long as a row that may still change can be its partner."""
        join = self._join
        if known.time is None or known.met == frozenset() or join.lower > join.upper:
            return False
        last = known.time + (-join.lower if known.side == 0 else join.upper)
        partners = last + self._reach(1 - known.side) + join.min_cleanup
        return self._watermark < END and partners > self._watermark

    def _change(self, side: int, kind: str, row: Row, before: int) -> None:
        join = self._join
        time = row[T]
        self._count += 1
        new = Known(side, time, row, self._count)
        matchable = row[K] is not None or not join.nulls_never_match
        if time is None or join.lower > join.upper:
            self._add_or_remove(new, kind)
        elif self._is_open(side, time, before):
            if matchable or join.is_outer(side):
                self._add_or_remove(new, kind)
        elif kind == "+I":
            near = (r for r in self._rows if r.side != side and r.time is not None)
            open_ = [r for r in near if self._is_open(r.side, r.time or 0, before)]
            met = frozenset(r.number for r in open_ if self._match(new, r))
            self._rows.append(replace(new, met=met))

    def _add_or_remove(self, new: Known, kind: str) -> None:
        if kind in ("+I", "+U"):
            self._rows.append(new)
            return
        same = [r for r in self._rows if (r.side, r.row) == (new.side, new.row) and r.met is None]
        if same:
            self._rows.remove(same[-1])

    # --- what they make -------------------------------------------------------------------------

    def _match(self, one: Known, other: Known) -> bool:
        left, right = (one, other) if one.side == 0 else (other, one)
        if left.time is None or right.time is None or left.side == right.side:
            return False
        return interval.matches(self._join, left.time, left.row, right.time, right.row)

    def _pairs(self, left: Known, right: Known) -> bool:
        """A late row meets what it met, and what came later: of what was closed it sees nothing."""
        if not self._match(left, right) or frozenset() in (left.met, right.met):
            return False
        if left.met is not None and right.met is not None:
            return False
        late, other = (left, right) if left.met is not None else (right, left)
        return late.met is None or other.number in late.met or other.number > late.number

    def _result(self) -> Counter[Row]:
        join = self._join
        found: Counter[Row] = Counter()
        joined: set[int] = set()
        for left in (r for r in self._rows if r.side == 0):
            for right in (r for r in self._rows if r.side == 1):
                if self._pairs(left, right):
                    joined |= {left.number, right.number}
                    found[left.row + right.row] += 1
        for row in self._rows:
            alone = row.number not in joined and join.is_outer(row.side)
            empty = row.time is None or join.lower > join.upper or row.met is not None
            if alone and (empty or self._is_padded(row.side, row.time or 0)):
                found[row.row + _ABSENT if row.side == 0 else _ABSENT + row.row] += 1
        shown = (r for r in found if not join.where or r[4 + V] is None or r[4 + V] > 1)
        return Counter({r: found[r] for r in shown})

    def _compare(self, emitted: Emitted, before: int) -> list[str]:
        problems: list[str] = []
        changed: dict[Row, set[bool]] = {}
        for kind, *values in (change for change in emitted if change[0] != "watermark"):
            row, is_add = tuple(values), kind in ("+I", "+U")
            changed.setdefault(row, set()).add(is_add)
            self._shown[row] += 1 if is_add else -1
            if self._shown[row] < 0:
                problems.append(f"takes back what is not there: {row}")
        problems += [f"both ways: {row}" for row, signs in changed.items() if len(signs) > 1]
        wanted = self._result()
        problems += [f"missing: {row}" for row in (wanted - self._shown).elements()]
        problems += [f"too much: {row}" for row in (self._shown - wanted).elements()]
        marks = [change for change in emitted if change[0] == "watermark"]
        expected = [["watermark", self._held()]] if self._watermark > before else []
        return problems if marks == expected else [*problems, f"passes on {marks}, not {expected}"]

    def _held(self) -> int:
        join = self._join
        if self._watermark == END:
            return END
        left, right = -join.lower + self._reach(1), join.upper + self._reach(0)
        delay = 0 if join.lower > join.upper else max(left, right) + join.min_cleanup
        return max(self._watermark - delay, START + 1)


class ChangeWriter:
    """Rows as the append-only writer has them; some are updated, moved, deleted, or unknown."""

    def __init__(self, rng: random.Random, join: Join, scale: int) -> None:
        self._rng = rng
        self._is_empty = join.lower > join.upper
        self._fresh = interval.EventWriter(rng, join, scale)
        self._tables: dict[str, list[list[Any]]] = {"left": [], "right": []}

    def write(self) -> list[Event]:
        rng = self._rng
        event = self._fresh.write()
        if event[0] not in self._tables:
            return [event]
        side, _, row = event
        table = self._tables[side]
        pick = rng.random()
        if table and pick < 0.5:
            # mostly of the last rows, whose windows are open
            old = table.pop(max(len(table) - 1 - rng.choice([0, 0, 1, 2, 5, 20]), 0))
            if pick < 0.15:
                return [[side, "-D", old]]
            new = self._changed(old, row)
            table.append(new)
            return [[side, "-U", old], [side, "+U", new]]
        if pick > 0.98 and row[T] is not None and not self._is_empty:
            return [[side, "-D", [*row[:ID], "unknown"]]]
        table.append(row)
        return [[side, "+I", row]]

    def _changed(self, old: list[Any], row: list[Any]) -> list[Any]:
        """Another value, mostly at the same time under the same key."""
        moved = self._rng.random()
        time, key = (row[T] if moved < 0.15 else old[T]), (row[K] if moved > 0.85 else old[K])
        return [time, key, row[V], old[ID]]


def random_case(name: str, rng: random.Random, size: int) -> Case:
    scale = rng.choice([1, 1, 1000])
    bounds = [(-10, 20), (-5, 9), (-10, -7), (7, 10), (0, 0), (0, 10), (-10, 0), (1, 0), (-40, 40)]
    lower, upper = rng.choice(bounds)
    join = Join(
        join_type=rng.choice(["inner", "left", "right", "full"]),
        is_event_time=True,
        lower=lower * scale,
        upper=upper * scale,
        min_cleanup=rng.choice([0, 0, 0, 7, 15 * scale]),
        nulls_never_match=rng.random() < 0.7,
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        policy="max" if rng.random() < 0.2 else "min",
    )
    return _case(name, rng, size, join, scale)


def random_early_case(name: str, rng: random.Random, size: int) -> Case:
    """Rows are padded early, and change while they are."""
    scale = rng.choice([1, 1, 1000])
    lower, upper = rng.choice([(-10, 20), (-5, 9), (-10, -7), (7, 10), (0, 0), (-40, 40)])
    join = Join(
        join_type=rng.choice(["left", "right", "full"]),
        is_event_time=True,
        lower=lower * scale,
        upper=upper * scale,
        min_cleanup=rng.choice([0, 0, 7, 15 * scale]),
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        early_fire=rng.choice([1, 3, 5 * scale, 15 * scale, END]),
    )
    return _case(name, rng, size, join, scale)


def _case(name: str, rng: random.Random, size: int, join: Join, scale: int) -> Case:
    writer = ChangeWriter(rng, join, scale)
    batches = cut_into_batches([e for _ in range(size) for e in writer.write()], rng)
    restarts = random_restarts(batches, rng)
    node = join.node() | {"changes": True}
    return Case(name, node, batches, restarts, lambda: ChangesModel(join))

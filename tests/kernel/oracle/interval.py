"""Interval joins: the model keeps every row for ever and asks of each what its times say."""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
    struct,
)

Row: TypeAlias = tuple[Any, ...]

LEFT = (("l_t", "long"), ("l_k", "string"), ("l_v", "integer"), ("l_id", "string"))
RIGHT = (("r_t", "long"), ("r_k", "string"), ("r_v", "integer"), ("r_id", "string"))
T, K, V, ID = range(4)
START, END = -(2**63), 2**63 - 1
FORWARD = 1 << 14
_ABSENT: Row = (None, None, None, None)
_RESIDUAL = "`l_v` < `r_v`"
_WHERE = "`r_v` IS NULL OR `r_v` > 1"


@dataclass(frozen=True, slots=True)
class Join:
    """An interval join as the model understands it; each input has one partition.

    `paired`: the sink is keyed by the left row's id, all of whose rows have one join key.
    `early_fire`: the delay after which rows are padded that may still find a partner.
    """

    join_type: str
    is_event_time: bool
    lower: int
    upper: int
    min_cleanup: int = 0
    nulls_never_match: bool = True
    residual: bool = False
    where: bool = False
    policy: str = "min"
    paired: bool = False
    early_fire: int | None = None

    def node(self) -> dict[str, Any]:
        side = {"layout": "no-unique-key", "uniqueKey": [], "upsert": False}
        time = {"time": T} if self.is_event_time else {}
        early = {} if self.early_fire is None else {"earlyFireMs": self.early_fire}
        return {
            "kind": "interval-join",
            "joinType": self.join_type,
            "time": "event" if self.is_event_time else "processing",
            "lowerMs": self.lower,
            "upperMs": self.upper,
            "minCleanupMs": self.min_cleanup,
            "left": {"schema": struct(LEFT)} | side,
            "right": {"schema": struct(RIGHT)} | side,
            "key": struct([("k", "string")]),
            "filterNulls": [self.nulls_never_match],
            "residual": _RESIDUAL if self.residual else None,
            "output": {
                "where": _WHERE if self.where else None,
                "pairBy": ["`l_id`"] if self.paired else None,
                "timeZone": "UTC",
            },
            "timing": {
                "inputs": [[{"topic": i, "idleTimeoutMs": 0}] for i in (0, 1)],
                "policy": self.policy,
                "forward": FORWARD,
                "tickMs": None if self.is_event_time else 1000,
                "ttlMs": [0, 0],
            },
            "rows": [{"schema": struct(c), "key": [K]} | time for c in (LEFT, RIGHT)],
        } | early

    def is_outer(self, side: int) -> bool:
        return self.join_type in (("left", "full"), ("right", "full"))[side]

    def size(self, side: int) -> int:
        """How much younger than a row of this side its youngest partner may be."""
        return (-self.lower, self.upper)[side]

    def fires_early(self, side: int, time: int, now: int) -> bool:
        """Whether a row of this side that may still find a partner is padded meanwhile."""
        if self.early_fire is None or not self.is_outer(side):
            return False
        return now == END or time + self.early_fire <= now


@dataclass(slots=True)
class Seen:
    """A row that has arrived; `cached`: it stayed when it came."""

    side: int
    time: int
    row: Row
    cached: bool = False
    matched: bool = False
    cleaned: bool = False


class IntervalModel:
    """Tries every row against all earlier ones."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._seen: list[Seen] = []
        self._marks = [START, START]
        self._watermark = START
        self._clock = START
        self._ended = False

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        before = self._watermark
        self._hear(batch)
        expected: list[Row] = []
        if not self._join.is_event_time:
            self._clean_up(self._clock, expected)
        for side, name in enumerate(("left", "right")):
            for event in batch:
                if event[0] == name:
                    self._arrive(side, tuple(event[2]), before, expected)
        if self._join.is_event_time:
            self._clean_up(self._watermark, expected)
        elif self._ended:
            self._clean_up(END, expected)
        return self._compare(expected, emitted, before)

    def state_rows(self) -> list[int]:
        alive = [s.side for s in self._seen if s.cached and not s.cleaned]
        return [alive.count(0), alive.count(1)]

    def _hear(self, batch: Batch) -> None:
        for event in batch:
            if event[0] == "clock":
                self._clock = max(self._clock, event[1])
            elif event[0] == "watermark":
                side = ("left", "right").index(event[1])
                self._marks[side] = max(self._marks[side], event[2])
            elif event[0] == "end":
                self._ended = True
        pick = max if self._join.policy == "max" else min
        self._watermark = max(self._watermark, END if self._ended else pick(self._marks))

    def _arrive(self, side: int, row: Row, before: int, expected: list[Row]) -> None:
        join = self._join
        time = row[T] if join.is_event_time else self._clock
        new = Seen(side, time, row)
        if time is None or join.lower > join.upper:
            self._pad(new, expected)
            return
        alive = [s for s in self._seen if s.side != side and s.cached and not s.cleaned]
        for other in sorted(alive, key=lambda s: s.time):
            left, right = (new, other) if side == 0 else (other, new)
            if self._matches(left, right):
                expected.append(left.row + right.row)
                new.matched = other.matched = True
        if not join.is_event_time:
            new.cached = join.size(side) >= 0
        else:
            new.cached = before < END and time + join.size(side) > before
        drops_null = row[K] is None and join.nulls_never_match and not join.is_outer(side)
        if new.cached and not drops_null:
            self._seen.append(new)
        elif not new.cached and not new.matched:
            self._pad(new, expected)

    def _matches(self, left: Seen, right: Seen) -> bool:
        return matches(self._join, left.time, left.row, right.time, right.row)

    def _clean_up(self, now: int, expected: list[Row]) -> None:
        due = [s for s in self._seen if s.cached and not s.cleaned and self._is_due(s, now)]
        for seen in sorted(due, key=lambda s: s.time):
            seen.cleaned = True
            if not seen.matched:
                self._pad(seen, expected)

    def _is_due(self, seen: Seen, now: int) -> bool:
        at = seen.time + self._join.size(seen.side) + self._join.min_cleanup + 1
        return now == END or at <= now

    def _pad(self, seen: Seen, expected: list[Row]) -> None:
        if self._join.is_outer(seen.side):
            expected.append(seen.row + _ABSENT if seen.side == 0 else _ABSENT + seen.row)

    def _compare(self, expected: list[Row], emitted: Emitted, before: int) -> list[str]:
        marks = [change for change in emitted if change[0] == "watermark"]
        found = [tuple(c[1:]) for c in emitted if c[0] == "+I"]
        wanted = self._written(expected)
        problems = [] if len(marks) + len(found) == len(emitted) else ["emits more than +I"]
        lost, added = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        problems += [f"missing: {row}" for row in lost.elements()]
        problems += [f"too much: {row}" for row in added.elements()]
        for key in {_key(row) for row in wanted}:
            pairs = [_pairs(rows, key) for rows in (wanted, found)]
            if not problems and not self._join.paired and pairs[0] != pairs[1]:
                problems.append(f"order of {key}: {pairs[1]}, expected {pairs[0]}")
        forwarded = self._forwarded() if self._watermark > before else []
        if emitted[len(emitted) - len(forwarded) :] != forwarded or marks != forwarded:
            problems.append(f"passes on {marks}, expected {forwarded} after the rows")
        return problems

    def _written(self, expected: list[Row]) -> list[Row]:
        """What passes WHERE; of a sink's key, the last row of the batch."""
        value = len(LEFT) + V
        shown = [r for r in expected if not self._join.where or r[value] is None or r[value] > 1]
        if not self._join.paired:
            return shown
        return list({(_key(row), row[ID]): row for row in shown}.values())

    def _forwarded(self) -> list[list[Any]]:
        held = END if self._watermark == END else max(self._watermark - self._delay(), START + 1)
        return [["watermark", held]]

    def _delay(self) -> int:
        join = self._join
        if join.lower > join.upper or not join.is_event_time:
            return 0
        return max(-join.lower, join.upper)


class EarlyModel(IntervalModel):
    """What the join emits without early padding, and the paddings of rows that still wait."""

    def __init__(self, join: Join) -> None:
        super().__init__(join)
        self._lasting: Counter[Row] = Counter()
        self._shown: Counter[Row] = Counter()

    def _compare(self, expected: list[Row], emitted: Emitted, before: int) -> list[str]:
        self._lasting.update(expected)
        wanted = self._lasting.copy()
        wanted.update(
            s.row + _ABSENT if s.side == 0 else _ABSENT + s.row
            for s in self._seen
            if s.cached and not s.cleaned and not s.matched and self._is_padded(s)
        )
        problems: list[str] = []
        added, taken = set(), set()
        for kind, *values in (change for change in emitted if change[0] != "watermark"):
            row = tuple(values)
            is_padding = _ABSENT in (row[: len(LEFT)], row[len(LEFT) :])
            (taken if kind == "-U" else added).add(row)
            self._shown[row] += -1 if kind == "-U" else 1
            if self._shown[row] < 0:
                problems.append(f"takes back what is not there: {row}")
            if kind not in ("-U", "+I") if is_padding else kind not in ("+I", "+U"):
                problems.append(f"{kind} of {row}")
        problems += [f"both ways: {row}" for row in added & taken]
        wanted = Counter({row: wanted[row] for row in self._written(list(wanted))})
        problems += [f"missing: {row}" for row in (wanted - self._shown).elements()]
        problems += [f"too much: {row}" for row in (self._shown - wanted).elements()]
        forwarded = self._forwarded() if self._watermark > before else []
        marks = [change for change in emitted if change[0] == "watermark"]
        return problems if marks == forwarded else [*problems, f"passes on {marks}"]

    def _is_padded(self, seen: Seen) -> bool:
        now = self._watermark if self._join.is_event_time else self._clock
        return self._join.fires_early(seen.side, seen.time, END if self._ended else now)

    def _delay(self) -> int:
        delay = super()._delay()
        join = self._join
        has_window = join.is_event_time and join.lower <= join.upper
        return delay + join.min_cleanup + 1 if has_window else delay


def matches(join: Join, left_time: int, left: Row, right_time: int, right: Row) -> bool:
    """Whether two rows are partners."""
    if left[K] != right[K] or (left[K] is None and join.nulls_never_match):
        return False
    if not right_time + join.lower <= left_time <= right_time + join.upper:
        return False
    low, high = left[V], right[V]
    return not join.residual or (low is not None and high is not None and low < high)


def _key(row: Row) -> Any:
    return row[K] if row[: len(LEFT)] != _ABSENT else row[len(LEFT) + K]


def _pairs(rows: list[Row], key: Any) -> list[Row]:
    sides = ((row, row[: len(LEFT)], row[len(LEFT) :]) for row in rows if _key(row) == key)
    return [row for row, *pair in sides if _ABSENT not in pair]


class EventWriter:
    """Rows and marks around a time that moves on; some rows late, some times far away."""

    def __init__(self, rng: random.Random, join: Join, scale: int) -> None:
        self._rng = rng
        self._join = join
        self._scale = scale
        self._now = rng.choice([-50, 0, 0, 1_600_000_000_000, START + 40 * scale, END - 60 * scale])
        self._pace = rng.choice([1, 5, 20]) * scale
        self._keys = [*"abcdef"[: rng.choice([1, 1, 2, 6])], None][: rng.choice([1, 9])]
        self._filler = "x" * rng.choice([0, 0, 50, 900, 2500])
        self._is_null_time_seen = rng.random() < 0.3

    def write(self) -> Event:
        rng = self._rng
        self._now = min(self._now + rng.choice([0, 0, 1, self._pace]), END)
        pick = rng.random()
        if pick < 0.75:
            return [rng.choice(["left", "right"]), "+I", self._row()]
        if pick < 0.9975:
            lag = rng.choice([0, 0, 1, 5, 20]) * rng.choice([1, self._scale])
            if not self._join.is_event_time and rng.random() < 0.8:
                return ["clock", min(max(self._now, START), END - 1)]
            return ["watermark", rng.choice(["left", "right"]), max(self._now - lag, START)]
        return ["end"]

    def _row(self) -> list[Any]:
        rng = self._rng
        key = rng.choice(self._keys) if rng.random() < 0.95 else None
        value = None if rng.random() < 0.1 else rng.randrange(5)
        away = rng.choice([-100, -20, -10, -5, -2, -1, 0, 0, 0, 1, 2, 5, 20])
        near = self._now + away * rng.choice([1, self._scale]) + rng.choice([-1, 0, 1])
        is_null = self._is_null_time_seen and rng.random() < 0.1
        time = None if is_null else min(max(near, START + 1), END)
        return [time, key, value, f"{key}{rng.randrange(3)}{self._filler}"]


def _random_bounds(rng: random.Random, scale: int) -> tuple[int, int]:
    low, high = rng.choice(
        [(-10, 20), (-5, 9), (-10, -7), (7, 10), (0, 0), (0, 10), (-10, 0), (1, 0), (10, -10)]
    )
    low, high = low * scale, high * scale
    far = rng.random()
    if far < 0.04:
        low = rng.choice([START + 1, -(2**62)])
    elif far < 0.08:
        high = rng.choice([END, 2**62])
    return low, high


def random_case(name: str, rng: random.Random, size: int) -> Case:
    scale = rng.choice([1, 1, 1000])
    lower, upper = _random_bounds(rng, scale)
    paired = rng.random() < 0.2
    join = Join(
        join_type=rng.choice(["inner", "left"] if paired else ["inner", "left", "right", "full"]),
        is_event_time=rng.random() < 0.7,
        lower=lower,
        upper=upper,
        min_cleanup=rng.choice([0, 0, 0, 7, 15 * scale]),
        nulls_never_match=rng.random() < 0.7,
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        policy="max" if rng.random() < 0.2 else "min",
        paired=paired,
    )
    return _case(name, rng, size, join, scale)


def random_early_case(name: str, rng: random.Random, size: int) -> Case:
    """Rows are padded early, some of them only after their window."""
    scale = rng.choice([1, 1, 1000])
    bounds = [(-10, 20), (-5, 9), (-10, -7), (7, 10), (0, 0), (0, 10), (-10, 0), (-40, 40)]
    lower, upper = rng.choice(bounds)
    join = Join(
        join_type=rng.choice(["left", "right", "full"]),
        is_event_time=rng.random() < 0.7,
        lower=lower * scale,
        upper=upper * scale,
        min_cleanup=rng.choice([0, 0, 0, 7, 15 * scale]),
        nulls_never_match=rng.random() < 0.7,
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        policy="max" if rng.random() < 0.2 else "min",
        early_fire=rng.choice([1, 3, 5 * scale, 15 * scale, END]),
    )
    return _case(name, rng, size, join, scale)


def _case(name: str, rng: random.Random, size: int, join: Join, scale: int) -> Case:
    writer = EventWriter(rng, join, scale)
    batches = cut_into_batches([writer.write() for _ in range(size)], rng)
    restarts = random_restarts(batches, rng)
    model = IntervalModel if join.early_fire is None else EarlyModel
    return Case(name, join.node(), batches, restarts, lambda: model(join))

"""Event-time temporal joins: the model keeps every build row for ever and never cleans up."""

import random
from collections import Counter
from dataclasses import dataclass, field
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
Change: TypeAlias = tuple[str, Row]

LEFT = (("l_t", "long"), ("l_k", "string"), ("l_v", "integer"), ("l_id", "string"))
RIGHT = (("r_t", "long"), ("r_k", "string"), ("r_v", "integer"))
T, K, V, ID = range(4)
_WIDTH = len(LEFT)
_PADDING: Row = (None, None, None)
_START = -(2**63)
_RESIDUAL = "`l_v` < `r_v`"
_WHERE = "`r_v` IS NULL OR `r_v` > 1"


@dataclass(frozen=True, slots=True)
class Join:
    """A temporal join as the model understands it; each input has one partition.

    `paired`: the sink is keyed by the probe row's id, all of whose changes have one join key.
    """

    is_left: bool
    nulls_never_match: bool
    residual: bool
    where: bool
    policy: str
    idle_timeout_ms: int
    paired: bool

    def node(self) -> dict[str, Any]:
        return {
            "kind": "temporal-join",
            "joinType": "left" if self.is_left else "inner",
            "left": {"schema": struct(LEFT)},
            "right": {"schema": struct(RIGHT), "upsert": False},
            "key": struct([("k", "string")]),
            "leftKey": [K],
            "rightKey": [K],
            "leftTime": T,
            "rightTime": T,
            "filterNulls": [self.nulls_never_match],
            "residual": _RESIDUAL if self.residual else None,
            "where": _WHERE if self.where else None,
            "leftTopics": [0],
            "rightTopics": [1],
            "idleTimeoutMs": self.idle_timeout_ms,
            "watermarkPolicy": self.policy,
            "pairBy": ["`l_id`"] if self.paired else None,
            "updateBefore": not self.paired,
        }


@dataclass(slots=True)
class Partition:
    """The only partition of an input: its watermark and when, by the clock, that last moved."""

    watermark: int = _START
    moved_at: int = _START


@dataclass(slots=True)
class TimeModel:
    """The watermark of the join, as docs/semantics.md has it."""

    join: Join
    clock: int
    inputs: dict[str, Partition] = field(default_factory=dict)
    current: int = _START

    def apply(self, event: Event) -> None:
        if event[0] == "clock":
            self.clock = max(self.clock, event[1])
            return
        side = event[0].removeprefix("watermark_")
        partition = self._partition(side)
        if event[1] > partition.watermark:
            partition.watermark = event[1]
            partition.moved_at = self.clock

    def advance(self) -> None:
        active = [self._partition(side) for side in ("left", "right")]
        timeout = self.join.idle_timeout_ms
        if timeout:
            active = [p for p in active if self.clock - p.moved_at < timeout]
        marks = [p.watermark for p in active]
        if marks:
            pick = max(marks) if self.join.policy == "max" else min(marks)
            self.current = max(self.current, pick)

    def _partition(self, side: str) -> Partition:
        return self.inputs.setdefault(side, Partition(moved_at=self.clock))


class JoinModel:
    """Looks every version up in the list of all build rows ever seen."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._time = TimeModel(join, clock=0)
        self._build: list[tuple[int, str, Row]] = []
        self._waiting: list[tuple[str, Row]] = []
        self._sink: dict[Any, Row] = {}
        self._wanted: dict[Any, Row] = {}

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        before = self._time.current
        marks = [e for e in batch if len(e) == 2]
        for event in sorted(marks, key=lambda e: e[0]):  # "clock" first
            self._time.apply(event)
        self._time.advance()
        for _, kind, values in (e for e in batch if e[0] == "right"):
            self._add_build(kind, tuple(values))
        for _, kind, values in (e for e in batch if e[0] == "left"):
            if values[T] > before:
                self._waiting.append((kind, tuple(values)))
        return self._compare(emitted)

    def state_rows(self) -> None:
        """How many versions are kept is the machine's business."""

    def _add_build(self, kind: str, row: Row) -> None:
        if kind == "-U":
            return
        time = row[T]
        if time is None:  # a tombstone takes the time of the key's last row
            earlier = [t for t, _, r in self._build if r[K] == row[K]]
            if not earlier:
                return
            time = earlier[-1]
        self._build.append((time, kind, row))

    def _compare(self, emitted: Emitted) -> list[str]:
        due = [(kind, row) for kind, row in self._waiting if row[T] <= self._time.current]
        self._waiting = [(kind, row) for kind, row in self._waiting if row[T] > self._time.current]
        expected = [change for kind, row in due for change in self._joined(kind, row)]
        found = [(change[0], tuple(change[1:])) for change in emitted]
        if self._join.paired:
            return self._compare_sinks(expected, found)
        wanted, seen = Counter(expected), Counter(found)
        problems = [f"missing: {change}" for change in (wanted - seen).elements()]
        problems += [f"too much: {change}" for change in (seen - wanted).elements()]
        return problems or self._wrong_order(expected, found)

    def _compare_sinks(self, expected: list[Change], found: list[Change]) -> list[str]:
        """The last change of a key says what the sink holds."""
        ids = [row[ID] for _, row in found]
        problems = [f"written twice in one batch: {i}" for i in ids if ids.count(i) > 1]
        problems += [f"emits a -U: {row}" for kind, row in found if kind == "-U"]
        for changes, sink in ((expected, self._wanted), (found, self._sink)):
            for kind, row in changes:
                if kind in ("+I", "+U"):
                    sink[row[ID]] = row
                else:
                    sink.pop(row[ID], None)
        keys = {*self._wanted, *self._sink}
        wrong = [k for k in keys if self._wanted.get(k) != self._sink.get(k)]
        return problems + [
            f"{k}: {self._sink.get(k)}, expected {self._wanted.get(k)}" for k in wrong
        ]

    def _joined(self, kind: str, row: Row) -> list[Change]:
        version = self._version(row)
        if version is not None and self._join.residual:
            left, right = row[V], version[V]
            if left is None or right is None or not left < right:
                version = None
        if version is None and not self._join.is_left:
            return []
        joined = row + (_PADDING if version is None else version)
        shown = joined[_WIDTH + V] is None or joined[_WIDTH + V] > 1
        return [(kind, joined)] if shown or not self._join.where else []

    def _version(self, row: Row) -> Row | None:
        if row[K] is None and self._join.nulls_never_match:
            return None
        valid = [b for b in self._build if b[2][K] == row[K] and b[0] <= row[T]]
        if not valid:
            return None
        newest = max(time for time, _, _ in valid)
        _, kind, version = [b for b in valid if b[0] == newest][-1]
        return None if kind == "-D" else version

    def _wrong_order(self, expected: list[Change], found: list[Change]) -> list[str]:
        """Rows of one key leave in arrival order."""
        problems = []
        for key in {row[K] for _, row in expected}:
            wanted = [c for c in expected if c[1][K] == key]
            seen = [c for c in found if c[1][K] == key]
            if wanted != seen:
                problems.append(f"order of {key}: {seen}, expected {wanted}")
        return problems


class EventWriter:
    """Rows and marks around a time that moves on; some rows late, some times before 1970."""

    def __init__(self, rng: random.Random, join: Join) -> None:
        self._rng = rng
        self._timeout_ms = join.idle_timeout_ms
        self._keyed = join.paired
        self._probes: dict[str, list[Any]] = {}
        self._now = rng.choice([-50, 0, 0, 1_600_000_000_000])
        self._pace = rng.choice([1, 5, 100])
        self._keys = [*"abcdef"[: rng.choice([1, 2, 6])], None]
        self._clock = 0

    def write(self) -> list[Event]:
        rng = self._rng
        self._now += rng.choice([0, 0, 1, self._pace])
        pick = rng.random()
        if pick < 0.40:
            return self._probe()
        if pick < 0.75:
            return [self._build()]
        if pick < 0.97 or not self._timeout_ms:
            side = rng.choice(["left", "right"])
            return [[f"watermark_{side}", self._now - rng.choice([0, 1, 5, 20])]]
        self._clock += rng.choice([1, self._timeout_ms // 2, self._timeout_ms])
        return [["clock", self._clock]]

    def _probe(self) -> list[Event]:
        rng = self._rng
        row: list[Any] = [self._near(), self._key(), self._small(), "x"]
        if not self._keyed:
            return [["left", rng.choice(["+I", "+I", "+I", "+U", "-U", "-D"]), row]]
        row[ID] = f"{row[K]}{rng.randrange(3)}"
        old = self._probes.pop(row[ID], None)
        if old is None:
            self._probes[row[ID]] = row
            return [["left", "+I", row]]
        if rng.random() < 0.4:
            old = [rng.choice([old[T], row[T]]), *old[1:]]
            return [["left", "-D", old]]
        self._probes[row[ID]] = row
        return [["left", "-U", old], ["left", "+U", row]]

    def _build(self) -> Event:
        rng = self._rng
        kind = rng.choice(["+I", "+U", "+U", "+U", "-U", "-D"])
        time = None if kind == "-D" and rng.random() < 0.3 else self._near()
        return ["right", kind, [time, self._key(), self._small()]]

    def _near(self) -> int:
        return self._now + self._rng.choice([-100, -20, -5, -2, -1, 0, 0, 0, 1, 2, 5, 20])

    def _key(self) -> str | None:
        return self._rng.choice(self._keys) if self._rng.random() < 0.95 else None

    def _small(self) -> int | None:
        return None if self._rng.random() < 0.1 else self._rng.randrange(5)


def random_case(name: str, rng: random.Random, size: int) -> Case:
    join = Join(
        is_left=rng.random() < 0.5,
        nulls_never_match=rng.random() < 0.7,
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        policy="max" if rng.random() < 0.2 else "min",
        idle_timeout_ms=rng.choice([0, 0, 10]),
        paired=rng.random() < 0.4,
    )
    writer = EventWriter(rng, join)
    events: list[Event] = []
    while len(events) < size:
        events += writer.write()
    batches = cut_into_batches(events, rng)
    return Case(name, join.node(), batches, random_restarts(batches, rng), lambda: JoinModel(join))

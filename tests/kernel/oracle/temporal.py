"""Event-time temporal joins: the model keeps every build row until its key's idle time is over."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
)
from tests.kernel.oracle.marks import END, NEVER, TimeModel
from tests.kernel.oracle.probes import IDENTITIES, Memory
from tests.kernel.oracle.temporal_events import ID, LEFT, EventWriter, Join, K, T, V

Row: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[str, Row]

_WIDTH = len(LEFT)
_PADDING: Row = (None, None, None)


@dataclass(slots=True)
class Life:
    """When a key's idle time is over; the first time at which the watermark will use it."""

    deadline: int | None = None
    use: int | None = None

    def refresh(self, clock: int, ttl_ms: int) -> None:
        """Flink: at least the TTL is left, at most one and a half."""
        if ttl_ms and clock != NEVER and (not self.deadline or clock + ttl_ms > self.deadline):
            self.deadline = clock + ttl_ms * 3 // 2


ADDS = ("+I", "+U")
DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A probe row in arrival order; `met`: its time and version, where it does not look for one."""

    order: int
    kind: str
    row: Row
    met: Any = None


class JoinModel:
    """Looks every version up in the list of all build rows ever seen."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._time = TimeModel(join.policy, join.idle_timeout_ms)
        self._before = NEVER
        self._build: list[tuple[int, str, Row]] = []
        self._unhealed: list[Row] = []
        self._known = 0
        self._waiting: list[Waiting] = []
        self._due: list[Waiting] = []
        self._late: list[Row] = []
        self._arrived = 0
        self._memory = Memory(join.ttl_ms)
        self._updates: dict[Row, list[Any]] = {}
        self._lives: dict[Any, Life] = {}
        self._sink: dict[Any, Row] = {}
        self._wanted: dict[Any, Row] = {}

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._before = self._time.current
        was_idle = self._time.is_idle
        self._time.hear(batch)
        self._expire()
        self._memory.expire(self._time.clock)
        self._unhealed = []
        self._known = len(self._build)
        for _, kind, values, *more in (e for e in batch if e[0] == "right"):
            self._add_build(kind, tuple(values), more[0]["missing"] if more else ())
        self._late, self._due, self._updates = [], [], {}
        for _, kind, values in (e for e in batch if e[0] == "left"):
            self._arrived += 1
            self._take_in(Waiting(self._arrived, kind, tuple(values)))
        marks = [e for e in emitted if e[0] in ("watermark", "idle")]
        problems = self._compare([e for e in emitted if e not in marks and e[0] != "reject"])
        rejects = [e for e in emitted if e[0] == "reject"]
        problems += self._wrong_rejects(self._late, [e for e in rejects if e[2] == "late"])
        problems += self._wrong_unhealed([e[3] for e in rejects if e[2] != "late"])
        self._used_by_watermark()
        return problems + self._wrong_marks(marks, was_idle)

    def state_rows(self) -> None:
        """How many versions are kept is the machine's business."""

    def _take_in(self, probe: "Waiting") -> None:
        is_late = probe.row[T] <= self._before
        changes = self._join.probes is not None
        if changes and probe.kind not in ADDS:
            self._retract(probe)
        elif changes and is_late and probe.kind == "+U":
            halves = self._updates.get(self._update_of(probe.row, probe.row[T]))
            met = halves.pop(0) if halves else None
            if met == DROPPED:
                self._late.append(probe.row)
            elif met is None and self._join.joins_late:
                self._wait(probe)
            else:
                self._change(probe, met)
        elif is_late and not self._join.joins_late:
            self._late.append(probe.row)
        else:
            self._wait(probe)

    def _retract(self, probe: "Waiting") -> None:
        """A row that waits just goes; one that has left is taken back with what it has met."""
        row = probe.row
        leaving = [w for w in self._due if w.kind in ADDS and self._id(w.row) == self._id(row)]
        if leaving:
            self._due.remove(leaving[-1])
            met = leaving[-1].met
            if probe.kind == "-U" and met is not None:
                self._updates.setdefault(self._update_of(row, met[0]), []).append(met)
            return
        for other in reversed(self._waiting):
            same = other.kind in ADDS and self._id(other.row) == self._id(row)
            if same and other.row[T] == row[T]:
                self._waiting.remove(other)
                return
        partners = self._memory.partners(self._id(row))
        if partners:
            met = partners[0]
            self._memory.take(self._id(row), met, self._time.clock)
            if probe.kind == "-U":
                self._updates.setdefault(self._update_of(row, met[0]), []).append(met)
            self._change(probe, met)
        elif self._join.joins_late or row[T] > self._before:
            self._wait(probe)
        else:
            if probe.kind == "-U":
                self._updates.setdefault(self._update_of(row, row[T]), []).append(DROPPED)
            self._late.append(row)

    def _wait(self, probe: "Waiting") -> None:
        self._waiting.append(probe)
        self._use(probe.row[K], probe.row[T])

    def _change(self, probe: "Waiting", met: Any) -> None:
        """Leaves in this batch, wherever the watermark is."""
        self._due.append(replace(probe, met=met))
        life = self._lives.setdefault(probe.row[K], Life())
        life.refresh(self._time.clock, self._join.ttl_ms)

    def _id(self, row: Row) -> Row:
        return (row[K], row[ID]) if self._join.probes == "key" else row

    def _update_of(self, row: Row, time: int) -> Row:
        return (row[K], row[ID], time) if self._join.probes == "key" else (row[K], time)

    def _add_build(self, kind: str, row: Row, missing: Sequence[int]) -> None:
        if kind == "-U":
            return
        if missing:
            # a database logs in order: what is missing is that of the row which arrived before
            last = next((b for b in reversed(self._build) if b[2][K] == row[K]), None)
            if last is None or last[1] == "-D" or self._is_obsolete(last):
                self._unhealed.append(row)
                return
            row = tuple(last[2][i] if i in missing else v for i, v in enumerate(row))
        time = row[T]
        if time is None:  # a tombstone takes the time of the key's last row
            earlier = [t for t, _, r in self._build if r[K] == row[K]]
            if not earlier:
                return
            time = earlier[-1]
        self._build.append((time, kind, row))
        self._use(row[K], time)

    def _is_obsolete(self, version: tuple[int, str, Row]) -> bool:
        """Whether an earlier batch has forgotten it: a newer version was valid already."""
        known = self._build[: self._known]
        times = [t for t, _, r in known if r[K] == version[2][K] and t <= self._before]
        return any(v is version for v in known) and version[0] < max(times, default=version[0])

    def _use(self, key: Any, time: int) -> None:
        life = self._lives.setdefault(key, Life())
        life.use = time if life.use is None else min(life.use, time)
        life.refresh(self._time.clock, self._join.ttl_ms)

    def _used_by_watermark(self) -> None:
        moved = self._time.current > self._before
        place = K if self._join.probes == "row" else 0
        known = {identity[place] for identity in self._memory.known}
        for key, life in list(self._lives.items()):
            waiting = [w.row[T] for w in self._waiting if w.row[K] == key]
            if moved and life.use is not None and life.use <= self._time.current:
                life.use = min(waiting, default=None)
                life.refresh(self._time.clock, self._join.ttl_ms)
            is_kept = waiting or key in known or any(row[K] == key for _, _, row in self._build)
            if not is_kept:
                del self._lives[key]

    def _expire(self) -> None:
        for key, life in list(self._lives.items()):
            if life.deadline is not None and life.deadline <= self._time.clock:
                self._build = [b for b in self._build if b[2][K] != key]
                self._waiting = [w for w in self._waiting if w.row[K] != key]
                del self._lives[key]

    def _wrong_rejects(self, late: list[Row], found: Emitted) -> list[str]:
        names = [name for name, _ in LEFT]
        values = [
            json.dumps(dict(zip(names, row, strict=True)), separators=(",", ":")) for row in late
        ]
        topic = self._join.late_topic
        wanted = [
            ["reject", topic, "late", v.replace(": ", ":").replace(", ", ",")] for v in values
        ]
        if sorted(found) == (sorted(wanted) if topic else []):
            return []
        return [f"sets aside {found}, expected {wanted}"]

    def _wrong_unhealed(self, found: list[str]) -> list[str]:
        wanted = [json.dumps(list(row), separators=(",", ":")) for row in self._unhealed]
        return [] if sorted(found) == sorted(wanted) else [f"rejects {found}, expected {wanted}"]

    def _wrong_marks(self, found: Emitted, was_idle: bool) -> list[str]:
        wanted = self._time.passed_on(self._before, was_idle) if self._join.forwards else []
        return [] if found == wanted else [f"passes on {found}, expected {wanted}"]

    def _compare(self, emitted: Emitted) -> list[str]:
        until = self._time.current if self._time.current > self._before else NEVER
        due = [*self._due, *(w for w in self._waiting if w.row[T] <= until)]
        self._waiting = [w for w in self._waiting if w.row[T] > until]
        expected = [c for w in sorted(due, key=lambda w: w.order) for c in self._joined(w)]
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

    def _joined(self, probe: "Waiting") -> list[Change]:
        kind, row = probe.kind, probe.row
        version = self._version(row) if self._join.probes is None else self._met(probe)
        if version is not None and self._join.residual:
            left, right = row[V], version[V]
            if left is None or right is None or not left < right:
                version = None
        if version is None and not self._join.is_left:
            return []
        joined = row + (_PADDING if version is None else version)
        shown = joined[_WIDTH + V] is None or joined[_WIDTH + V] > 1
        return [(kind, joined)] if shown or not self._join.where else []

    def _met(self, probe: "Waiting") -> Row | None:
        """The version that the row has met before, if it is a change; an added row's is kept."""
        identity, met = self._id(probe.row), probe.met
        if met is None and probe.kind not in ADDS and self._memory.partners(identity):
            met = self._memory.partners(identity)[0]
            self._memory.take(identity, met, self._time.clock)
        version: Row | None = self._version(probe.row) if met is None else met[1]
        if probe.kind in ADDS:
            self._memory.add(identity, (probe.row[T], version), self._time.clock)
        return version

    def _version(self, row: Row) -> Row | None:
        if row[K] is None and self._join.nulls_never_match:
            return None
        until = max(row[T], self._before)  # what the watermark has made obsolete is gone
        valid = [b for b in self._build if b[2][K] == row[K] and b[0] <= until]
        newest = max((time for time, _, _ in valid), default=END)
        if newest > row[T]:
            return None
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


def random_case(name: str, rng: random.Random, size: int) -> Case:
    join = Join(
        is_left=rng.random() < 0.5,
        nulls_never_match=rng.random() < 0.7,
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        policy="max" if rng.random() < 0.2 else "min",
        idle_timeout_ms=rng.choice([0, 0, 10]),
        paired=rng.random() < 0.4,
        ttl_ms=rng.choice([0, 0, 7, 10_000]),
        joins_late=rng.random() < 0.3,
        forwards=rng.random() < 0.2,
        late_topic=rng.choice([None, None, "late-rows"]),
        probes=rng.choice([None, *IDENTITIES]),
    )
    if join.paired and join.probes == "row":  # the sink's key would stand for several rows
        join = replace(join, probes="key")
    writer = EventWriter(rng, join)
    events: list[Event] = [["clock", writer.clock]]
    while len(events) < size:
        events += writer.write()
    if rng.random() < 0.3:
        events.append(["end"])
    batches = cut_into_batches(events, rng)
    return Case(name, join.node(), batches, random_restarts(batches, rng), lambda: JoinModel(join))

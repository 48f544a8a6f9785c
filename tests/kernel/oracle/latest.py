"""Processing-time temporal joins: the model keeps the build side as a plain list of rows."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from tests.kernel.oracle.marks import NEVER, TimeModel
from tests.kernel.oracle.nodes import RESIDUAL, output_node, probe_node, side_node, timing_node
from tests.kernel.oracle.probes import IDENTITIES, Identity, Memory, ProbeWriter

Row: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[str, Row]

LEFT = (("l_id", "string"), ("l_k", "string"), ("l_v", "integer"))
RIGHT = (("r_id", "integer"), ("r_k", "string"), ("r_v", "integer"))
ID, K, V = range(3)
_WIDTH = len(LEFT)
_PADDING: Row = (None, None, None)
_SINGLE = "join-key-contains-unique-key"
LAYOUTS = (_SINGLE, "has-unique-key", "no-unique-key")


@dataclass(frozen=True, slots=True)
class Gate:
    """What a probe row waits for, if anything; times in milliseconds, a timeout lets it go."""

    kind: str = "none"
    at_ms: int = 0
    timeout_ms: int = 0

    def node(self) -> dict[str, Any]:
        timeout = {"timeoutMs": self.timeout_ms, "onTimeout": "go"}
        return {"kind": self.kind, "atMs": self.at_ms, **timeout, "table": "rates"}


@dataclass(frozen=True, slots=True)
class Join:
    """A processing-time temporal join; `paired` as for event time, with one build row per key.

    `probes`: what the probe rows, which change, are known by; None where the join does not care.
    """

    is_left: bool
    layout: str
    upsert: bool = False
    nulls_never_match: bool = True
    residual: bool = False
    where: bool = False
    paired: bool = False
    idle_timeout_ms: int = 0
    ttl_ms: int = 0
    forwards: bool = False
    gate: Gate = field(default_factory=Gate)
    probes: Identity | None = None

    def node(self) -> dict[str, Any]:
        unique = {_SINGLE: (K,), "has-unique-key": (ID,), "no-unique-key": ()}[self.layout]
        return {
            "kind": "temporal-join",
            "joinType": "left" if self.is_left else "inner",
            "time": "processing",
            "gate": self.gate.node(),
            "lateProbe": "drop",
            "left": probe_node(LEFT, self.probes, ID),
            "probeChanges": self.probes is not None,
            "right": side_node(RIGHT, self.layout, unique, self.upsert),
            "key": struct([("k", "string")]),
            "filterNulls": [self.nulls_never_match],
            "residual": RESIDUAL if self.residual else None,
            "output": output_node(self.where, self.paired),
            "timing": timing_node(self.idle_timeout_ms, "min", self.forwards, self.ttl_ms),
            "rows": [
                {"schema": struct(LEFT), "key": [K], "time": None},
                {"schema": struct(RIGHT), "key": [K], "time": None},
            ],
        }


@dataclass(slots=True)
class GateModel:
    """Open for ever from the batch on in which what it waits for is there."""

    gate: Gate
    is_open: bool
    opened_at: int = NEVER
    is_loaded: bool = False
    waits_since: int = NEVER
    build_watermark: int = NEVER

    def hear(self, batch: Batch, time: TimeModel) -> None:
        self.is_loaded = self.is_loaded or ["loaded", "right"] in batch
        if not self.is_open and (self._is_ready(time) or self._is_timed_out(time)):
            self.is_open = True
            self.opened_at = time.clock

    def _is_ready(self, time: TimeModel) -> bool:
        if time.ended:
            return True
        if self.gate.kind == "loaded":
            return self.is_loaded
        mark = time.watermark_of("right")
        return mark is not None and mark >= self.gate.at_ms

    def _is_timed_out(self, time: TimeModel) -> bool:
        if self.waits_since == NEVER:
            self.waits_since = time.clock
        mark = time.watermark_of("right") if self.gate.kind == "watermark" else None
        if mark is not None and mark > self.build_watermark:
            self.build_watermark, self.waits_since = mark, time.clock
        if not self.gate.timeout_ms or self.waits_since == NEVER:
            return False
        return time.clock - self.waits_since >= self.gate.timeout_ms


class JoinModel:
    """Looks every probe row up in all build rows of the moment."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._time = TimeModel("min", join.idle_timeout_ms, sides=("left",))
        self._gate = GateModel(join.gate, is_open=join.gate.kind == "none")
        self._build: list[Row] = []
        self._unhealed: list[Row] = []
        self._waiting: list[tuple[str, Row]] = []
        self._memory = Memory(join.ttl_ms)
        self._deadlines: dict[Any, int] = {}
        self._sink: dict[Any, Row] = {}
        self._wanted: dict[Any, Row] = {}

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        passed_on = self._time.current if self._gate.is_open else NEVER
        was_idle = self._time.is_idle
        waited = len(self._waiting)
        self._time.hear(batch)
        self._gate.hear(batch, self._time)
        self._expire()
        self._memory.expire(self._time.clock)
        self._unhealed = []
        for _, kind, values, *more in (e for e in batch if e[0] == "right"):
            self._change(kind, tuple(values), more[0]["missing"] if more else ())
        self._waiting += [(kind, tuple(v)) for _, kind, v in (e for e in batch if e[0] == "left")]
        rows = [e for e in emitted if e[0] not in ("watermark", "idle", "reject")]
        found = [(e[0], tuple(e[1:])) for e in rows]
        expected = self._join_waiting(waited, found) if self._gate.is_open else []
        compare = self._compare_sinks if self._join.paired else self._compare
        marks = [e for e in emitted if e[0] in ("watermark", "idle")]
        problems = compare(expected, found) + self._wrong_marks(passed_on, marks, was_idle)
        return problems + self._wrong_unhealed([e[3] for e in emitted if e[0] == "reject"])

    def state_rows(self) -> list[int] | None:
        """With retention, rows may stay for a while after their end."""
        probes = len(self._waiting) + len(self._memory.known)
        return None if self._join.ttl_ms else [probes, len(self._build)]

    def _change(self, kind: str, row: Row, missing: Sequence[int] = ()) -> None:
        if row[K] is None and self._join.nulls_never_match:
            return
        if self._join.layout == "no-unique-key":
            same = [r for r in self._build if r == row][:1]
            replaced = [] if kind in ("+I", "+U") else same
        else:
            by = (K,) if self._join.layout == _SINGLE else (K, ID)
            replaced = [r for r in self._build if all(r[i] == row[i] for i in by)]
        if missing and not replaced:
            self._unhealed.append(row)
            return
        row = tuple(replaced[0][i] if i in missing else v for i, v in enumerate(row))
        for old in replaced:
            self._build.remove(old)
        if kind in ("+I", "+U"):
            self._build.append(row)
            self._refresh(row[K])
        elif not any(r[K] == row[K] for r in self._build):
            self._deadlines.pop(row[K], None)

    def _join_waiting(self, waited: int, found: list[Change]) -> list[Change]:
        seen = Counter(found)
        changes = []
        rows = [*self._without_pairs(self._waiting[:waited]), *self._waiting[waited:]]
        for kind, row in rows:
            joined = self._shown([(kind, row + match) for match in self._met(kind, row, seen)])
            seen.subtract(joined)
            changes += joined
        self._waiting = []
        return changes

    def _shown(self, changes: list[Change]) -> list[Change]:
        return [c for c in changes if not self._join.where or c[1][_WIDTH + V] in (None, 2, 3, 4)]

    def _without_pairs(self, changes: list[tuple[str, Row]]) -> list[tuple[str, Row]]:
        """A row that was taken back while it waited has never been there."""
        if self._join.probes is None:
            return changes
        left: list[tuple[str, Row]] = []
        for kind, row in changes:
            same = [c for c in left if c[0] in ("+I", "+U") and self._id(c[1]) == self._id(row)]
            if kind in ("+I", "+U") or not same:
                left.append((kind, row))
            else:
                del left[max(i for i, c in enumerate(left) if c is same[-1])]
        return left

    def _id(self, row: Row) -> Row:
        return (row[K], row[ID]) if self._join.probes == "key" else row

    def _met(self, kind: str, row: Row, seen: Counter[Change]) -> list[Row]:
        """What a row is joined with: a retraction, with what its row was.

        Of equal rows it may be any; then the output says which.
        """
        matches = self._matches(row)
        if self._join.probes is None or (row[K] is None and self._join.nulls_never_match):
            return matches
        clock, identity = self._time.clock, self._id(row)
        if kind in ("+I", "+U"):
            self._memory.add(identity, sorted(matches, key=repr), clock)
            return matches
        partners = self._memory.partners(identity)
        if not partners:
            return matches
        fitting = [p for p in partners if self._is_in(kind, row, p, seen)]
        partner: list[Row] = (fitting or partners)[0]
        self._memory.take(identity, partner, clock)
        return partner

    def _is_in(self, kind: str, row: Row, partner: list[Row], seen: Counter[Change]) -> bool:
        shown = self._shown([(kind, row + match) for match in partner])
        return Counter(shown) <= seen

    def _matches(self, row: Row) -> list[Row]:
        candidates = [r for r in self._build if r[K] == row[K]]
        if candidates:
            self._refresh(row[K])
        if self._join.residual:
            known = [r for r in candidates if r[V] is not None and row[V] is not None]
            candidates = [r for r in known if row[V] < r[V]]
        return candidates or ([_PADDING] if self._join.is_left else [])

    def _end_of(self, key: Any) -> int | None:
        """When the key expires; no idle time passes while the gate is closed."""
        if key not in self._deadlines:
            return None
        if not self._gate.is_open:
            return 2**70
        longest = self._join.ttl_ms * 3 // 2
        return max(self._deadlines[key], self._gate.opened_at + longest)

    def _refresh(self, key: Any) -> None:
        ttl, clock = self._join.ttl_ms, self._time.clock
        end = self._end_of(key)
        if ttl and clock != NEVER and (end is None or clock + ttl > end):
            self._deadlines[key] = clock + ttl * 3 // 2

    def _expire(self) -> None:
        for key in list(self._deadlines):
            end = self._end_of(key)
            if end is not None and end <= self._time.clock:
                del self._deadlines[key]
                self._build = [r for r in self._build if r[K] != key]

    def _wrong_unhealed(self, found: list[str]) -> list[str]:
        wanted = [json.dumps(list(row), separators=(",", ":")) for row in self._unhealed]
        return [] if sorted(found) == sorted(wanted) else [f"rejects {found}, expected {wanted}"]

    def _wrong_marks(self, passed_on: int, found: Emitted, was_idle: bool) -> list[str]:
        passes = self._gate.is_open and self._join.forwards
        wanted = self._time.passed_on(passed_on, was_idle) if passes else []
        return [] if found == wanted else [f"passes on {found}, expected {wanted}"]

    def _compare(self, expected: list[Change], found: list[Change]) -> list[str]:
        wanted, seen = Counter(expected), Counter(found)
        problems = [f"missing: {change}" for change in (wanted - seen).elements()]
        problems += [f"too much: {change}" for change in (seen - wanted).elements()]
        return problems or self._wrong_order(expected, found)

    def _wrong_order(self, expected: list[Change], found: list[Change]) -> list[str]:
        """Probe rows of one key leave in arrival order; the matches of one row in any."""
        problems = []
        for key in {row[K] for _, row in expected}:
            wanted = [(kind, row[:_WIDTH]) for kind, row in expected if row[K] == key]
            seen = [(kind, row[:_WIDTH]) for kind, row in found if row[K] == key]
            if wanted != seen:
                problems.append(f"order of {key}: {seen}, expected {wanted}")
        return problems

    def _compare_sinks(self, expected: list[Change], found: list[Change]) -> list[str]:
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


class EventWriter:
    """Rows without times, marks of both sides, and a clock that passes deadlines now and then."""

    def __init__(self, rng: random.Random, join: Join) -> None:
        self._rng = rng
        self._join = join
        self._keys = [*"abcdef"[: rng.choice([1, 2, 6])], None]
        self._probes: dict[str, list[Any]] = {}
        self._count = 0
        self._leaves_out = rng.choice([0.0, 0.3])
        self._changing = join.probes and ProbeWriter(
            rng, ID, join.probes, self._fresh, self._changed
        )
        self._now = 0
        self._pace = rng.choice([1, 5])
        self.clock = rng.choice([0, 1_700_000_000_000])
        self._pauses = [
            t for t in (join.idle_timeout_ms, join.ttl_ms, join.gate.timeout_ms) if t
        ] or [1]

    def write(self) -> list[Event]:
        rng = self._rng
        self._now += rng.choice([0, self._pace])
        pick = rng.random()
        if pick < 0.40:
            return self._probe()
        if pick < 0.78:
            return [self._build()]
        if pick < 0.90:
            return [["watermark", rng.choice(["left", "right"]), self._now - rng.randrange(3)]]
        if pick < 0.91:
            return [["loaded", "right"]]
        self.clock += rng.choice([1, rng.choice(self._pauses) // 2, rng.choice(self._pauses)])
        return [["clock", self.clock]]

    def _probe(self) -> list[Event]:
        rng = self._rng
        if self._changing is not None:
            return self._changing.write()
        self._count += 1
        row: list[Any] = [str(self._count), self._key(), self._small()]
        if not self._join.paired:
            return [["left", rng.choice(["+I", "+I", "+I", "+U", "-U", "-D"]), row]]
        row[ID] = f"{row[K]}{rng.randrange(3)}"
        old = self._probes.pop(row[ID], None)
        if old is None:
            self._probes[row[ID]] = row
            return [["left", "+I", row]]
        if rng.random() < 0.4:
            return [["left", "-D", old]]
        self._probes[row[ID]] = row
        return [["left", "-U", old], ["left", "+U", row]]

    def _fresh(self) -> list[Any]:
        key = self._key()
        name = f"{key}{self._rng.randrange(3)}" if self._join.paired else self._rng.choice("xyzuvw")
        return [name, key, self._small()]

    def _changed(self, old: list[Any]) -> list[Any]:
        key = self._key() if self._rng.random() < 0.3 and not self._join.paired else old[K]
        return [old[ID], key, self._small()]

    def _build(self) -> Event:
        rng = self._rng
        if self._join.upsert and rng.random() < self._leaves_out:
            return ["right", "+U", [rng.randrange(4), self._key(), None], {"missing": [V]}]
        kind = rng.choice(["+I", "+I", "+U", "-U", "-D"])
        return ["right", kind, [rng.randrange(4), self._key(), self._small()]]

    def _key(self) -> str | None:
        return self._rng.choice(self._keys) if self._rng.random() < 0.95 else None

    def _small(self) -> int | None:
        return None if self._rng.random() < 0.1 else self._rng.randrange(5)


def random_case(name: str, rng: random.Random, size: int) -> Case:
    layout = rng.choice(LAYOUTS)
    kind = rng.choice(["none", "loaded", "watermark"])
    gate = Gate(kind, rng.choice([0, size // 4, size]), rng.choice([0, 50, 20_000]))
    join = Join(
        is_left=rng.random() < 0.5,
        layout=layout,
        upsert=layout != "no-unique-key" and rng.random() < 0.5,
        nulls_never_match=rng.random() < 0.7,
        residual=rng.random() < 0.3,
        where=rng.random() < 0.2,
        paired=layout == _SINGLE and rng.random() < 0.5,
        idle_timeout_ms=rng.choice([0, 0, 10]),
        ttl_ms=rng.choice([0, 0, 7, 10_000]),
        forwards=rng.random() < 0.5,
        gate=gate if kind != "none" else Gate(),
        probes=rng.choice([None, *IDENTITIES]),
    )
    if join.paired and join.probes == "row":  # the sink's key would stand for several rows
        join = replace(join, probes="key")
    writer = EventWriter(rng, join)
    events: list[Event] = [["clock", writer.clock]]
    while len(events) < size:
        events += writer.write()
    if rng.random() < 0.5:
        events.append(["end"])
    batches = cut_into_batches(events, rng)
    return Case(name, join.node(), batches, random_restarts(batches, rng), lambda: JoinModel(join))

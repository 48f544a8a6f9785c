"""Sink materialisation: Flink's two algorithms over plain lists, searched from the front."""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
    struct,
)
from tests.kernel.oracle.keyed import (
    ADDS,
    INPUT,
    START,
    Change,
    Key,
    Lives,
    Marks,
    Row,
    Time,
    compare,
    output,
    rows_of,
    timing,
)

COLUMNS = (("pk", "string"), ("uk", "integer"), ("v", "integer"), ("c", "string"), ("t", "long"))
PK, UK, V, C, T = range(5)


@dataclass(frozen=True, slots=True)
class Materializer:
    """A materialiser as the model understands it; `timed` rows carry the time they wait for."""

    strategy: str
    upsert_key: tuple[int, ...]
    ttl_ms: int = 0
    watermarks: bool = False
    timed: bool = False

    def node(self) -> dict[str, Any]:
        return {
            "kind": "sink-materializer",
            "strategy": self.strategy,
            "upsertKey": list(self.upsert_key),
            "schema": struct(COLUMNS),
            "output": output(None, ["pk"]),
            "timing": timing(self.ttl_ms, self.watermarks),
            "rows": [{"schema": struct(COLUMNS), "key": [PK], "time": T if self.timed else None}],
        }

    def identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self.upsert_key) if self.upsert_key else row


def _key(row: Row) -> Key:
    return (row[PK],)


@dataclass(slots=True)
class Held:
    """One row of a list; it keeps its place when its content is replaced."""

    row: Row


@dataclass(slots=True)
class SinkKey:
    """The list of one sink key and which of its rows the sink shows."""

    spec: Materializer
    rows: list[Held] = field(default_factory=list)
    shown: Held | None = None

    def apply(self, kind: str, row: Row) -> bool:
        """Whether anything was written."""
        same = [h for h in self.rows if self.spec.identity(h.row) == self.spec.identity(row)]
        if kind in ADDS:
            if same and self.spec.upsert_key:
                self.shown = same[0]
                self.shown.row = row
            else:
                self.shown = Held(row)
                self.rows.append(self.shown)
            return True
        if not same:
            return False
        was_newest = same[0] is self.rows[-1]
        self.rows = [h for h in self.rows if h is not same[0]]
        if not self.rows:
            self.shown = None
        elif was_newest or self.shown is same[0]:
            self.shown = self.rows[-1]
        return True

    def row(self) -> Row | None:
        return None if self.shown is None else self.shown.row


class ListModel:
    """ON CONFLICT DO DEDUPLICATE."""

    def __init__(self, spec: Materializer) -> None:
        self._spec = spec
        self._keys: dict[Key, SinkKey] = {}
        self._time = Time()
        self._lives = Lives(spec.ttl_ms)

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._time.hear(batch)
        for key in self._lives.expired(self._time.now):
            del self._keys[key]
        before = {key: held.row() for key, held in self._keys.items()}
        added: set[Key] = set()
        retracted: dict[Key, Row] = {}
        for kind, row in rows_of(batch):
            key = _key(row)
            held = self._keys.setdefault(key, SinkKey(self._spec))
            if held.apply(kind, row):
                self._lives.written[key] = self._time.now
                if kind in ADDS:
                    added.add(key)
                else:
                    retracted[key] = row
        expected = {
            key: self._change(before.get(key), held.row(), key in added, retracted.get(key))
            for key, held in self._keys.items()
        }
        for key in [key for key, held in self._keys.items() if not held.rows]:
            del self._keys[key]
            self._lives.written.pop(key, None)
        return compare({k: c for k, c in expected.items() if c}, emitted, _key)

    def state_rows(self) -> list[int]:
        return [sum(len(held.rows) for held in self._keys.values()), 0]

    def _change(
        self, before: Row | None, after: Row | None, added: bool, retracted: Row | None
    ) -> list[Change]:
        if before is None:
            return [] if after is None else [("+I", after)]
        if after is None:
            return [] if retracted is None else [("-D", retracted)]
        repeats = added and self._spec.ttl_ms > 0
        return [("+U", after)] if before != after or repeats else []


class CompactingModel:
    """ON CONFLICT DO NOTHING."""

    def __init__(self, spec: Materializer) -> None:
        self._spec = spec
        self._shown: dict[Key, Row] = {}
        self._waiting: list[tuple[int, str, Row]] = []
        self._time = Time()

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._time.hear(batch)
        time = self._time
        for kind, row in rows_of(batch):
            timed = self._spec.timed and time.before != START
            self._waiting.append((row[T] if timed else time.before, kind, row))
        due: dict[Key, list[Change]] = {}
        still = []
        for at, kind, row in self._waiting:
            if at < time.watermark or not self._spec.watermarks:
                due.setdefault(_key(row), []).append((kind, row))
            else:
                still.append((at, kind, row))
        self._waiting = still
        expected = {key: self._compact(key, changes) for key, changes in due.items()}
        return compare({k: c for k, c in expected.items() if c}, emitted, _key)

    def state_rows(self) -> list[int]:
        return [len(self._shown) + len(self._waiting), 0]

    def _compact(self, key: Key, changes: list[Change]) -> list[Change]:
        before = self._shown.get(key)
        rows = [] if before is None else [before]
        for kind, row in _without_pairs(changes):
            same = [i for i, r in enumerate(rows) if self._identity(r) == self._identity(row)]
            if kind not in ADDS:
                rows = [r for i, r in enumerate(rows) if i not in same[:1]]
            elif same and self._spec.upsert_key:
                rows[same[0]] = row
            else:
                rows.append(row)
        if not rows:
            self._shown.pop(key, None)
            return [] if before is None else [("-D", before)]
        self._shown[key] = rows[0]
        if before is None:
            return [("+I", rows[0])]
        return [] if before == rows[0] else [("+U", rows[0])]

    def _identity(self, row: Row) -> Row:
        return self._spec.identity(row)


def _without_pairs(changes: list[Change]) -> list[Change]:
    left: list[Change] = []
    for kind, row in changes:
        opposite = [
            i for i, (k, r) in enumerate(left) if r == row and (k in ADDS) != (kind in ADDS)
        ]
        if opposite:
            del left[opposite[0]]
        else:
            left.append((kind, row))
    return left


class ChangelogWriter:
    """Adds rows and takes most of them back, in any order, some of them never added."""

    def __init__(self, rng: random.Random, spec: Materializer, marks: Marks) -> None:
        self._rng = rng
        self._spec = spec
        self._marks = marks
        self._live: list[list[Any]] = []
        self._keys = ["a", "b", None][: rng.choice([1, 2, 3])]
        self._spread = rng.choice([3, 8, 400])
        self._filling = rng.choice([0, 0, 700])
        self._growth = rng.choice([0.5, 0.6, 0.8])

    def write(self) -> list[Event]:
        rng = self._rng
        if rng.random() < self._growth or not self._live:
            row = self._row()
            self._live.append(row)
            return [*self._marks.next(), [INPUT, rng.choice(["+I", "+U"]), row]]
        if rng.random() < 0.1:
            return [[INPUT, "-D", self._row()]]
        place = rng.choice([0, -1, rng.randrange(len(self._live))])
        row = self._live.pop(place)
        if self._spec.upsert_key and rng.random() < 0.2:
            row = [*row[:V], None, *row[C:]]
        return [*self._marks.next(), [INPUT, rng.choice(["-U", "-D"]), row]]

    def _row(self) -> list[Any]:
        rng = self._rng
        filling = "x" * self._filling + rng.choice(["", "1"])
        time = self._marks.watermark + rng.choice([-5, 0, 0, 1, 3, 4_100])
        uk = rng.randrange(self._spread)
        return [rng.choice(self._keys), uk, rng.choice([None, 1, 2]), filling, time]


def random_case(name: str, rng: random.Random, size: int) -> Case:
    strategy = "deduplicate" if rng.random() < 0.6 else "nothing"
    is_list = strategy == "deduplicate"
    spec = Materializer(
        strategy,
        upsert_key=rng.choice([(), (UK,)]),
        ttl_ms=rng.choice([0, 0, 10, 5_000, 20_000]) if is_list else 0,
        watermarks=not is_list and rng.random() < 0.8,
        timed=not is_list and rng.random() < 0.5,
    )
    marks = Marks(rng, clock=is_list, watermark=not is_list)
    writer = ChangelogWriter(rng, spec, marks)
    events: list[Event] = []
    while len(events) < size:
        events += writer.write()
    batches = cut_into_batches(events, rng)
    restarts = random_restarts(batches, rng)
    model = ListModel if is_list else CompactingModel
    return Case(name, spec.node(), batches, restarts, lambda: model(spec))

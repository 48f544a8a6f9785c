"""Upsert normalisation: the last row of each primary key, as a complete changelog.

Rows may lack values, the table may be emptied, and a connector may repeat what it has said.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
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
    Change,
    Lives,
    Marks,
    Row,
    Sink,
    Time,
    compare,
    output,
    timing,
)

COLUMNS = (("a", "string"), ("b", "integer"), ("v", "integer"), ("c", "string"))
FILTERS: dict[str, Callable[[Row], bool]] = {
    "`v` < 3": lambda row: row[2] is not None and row[2] < 3,
    "`a` <> 'x'": lambda row: row[0] is not None and row[0] != "x",
}
UNAVAILABLE = "debezium-unavailable-value"


@dataclass(frozen=True, slots=True)
class Normalizer:
    """A normalisation as the model understands it.

    `positions`: its input repeats itself. `shown`: the columns of a SELECT list, None: all.
    """

    key: tuple[int, ...]
    filter: str | None
    update_before: bool
    ttl_ms: int = 0
    positions: bool = False
    shown: tuple[int, ...] | None = None

    def node(self) -> dict[str, Any]:
        pair_by = None if self.update_before else [COLUMNS[i][0] for i in self.key]
        shown = None if self.shown is None else [COLUMNS[i][0] for i in self.shown]
        return {
            "kind": "normalize",
            "schema": struct(COLUMNS),
            "key": list(self.key),
            "output": output(self.filter, pair_by, shown),
            "timing": timing(self.ttl_ms),
            "positions": self.positions,
            "rows": [{"schema": struct(COLUMNS), "key": list(self.key), "time": None}],
        }

    def identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)

    def sink(self) -> Sink:
        accepts = FILTERS[self.filter] if self.filter is not None else lambda _: True
        return Sink(accepts, None if self.update_before else self.key, self.shown)


def details(event: Event) -> dict[str, Any]:
    """What more is said of a row or a truncation."""
    return event[-1] if isinstance(event[-1], dict) else {}


def in_order(batch: Batch) -> list[Event]:
    """Rows and truncations as they are to be applied: a truncation takes away what other
    partitions say in its batch, and of its own what stands before it."""
    found = [e for e in batch if e[0] in (INPUT, "truncate")]
    places = {id(e): (details(e).get("partition", 0), n) for n, e in enumerate(found)}
    cuts = sorted((e for e in found if e[0] == "truncate"), key=lambda e: places[id(e)])
    ordered: list[Event] = []
    rows = [e for e in found if e[0] == INPUT]
    after = {id(e): _cuts_before(places[id(e)], [places[id(c)] for c in cuts]) for e in rows}
    for number in range(len(cuts) + 1):
        ordered += [e for e in rows if after[id(e)] == number]
        ordered += cuts[number : number + 1]
    return ordered


def _cuts_before(place: tuple[int, int], cuts: list[tuple[int, int]]) -> int:
    earlier = [n for n, cut in enumerate(cuts) if cut[0] == place[0] and cut[1] < place[1]]
    return max(earlier, default=-1) + 1


class NormalizeModel:
    """Compares what was stored before and after a batch with what the machine says of it.

    It knows nothing of positions in a log: what has a number that it has seen is a repetition.
    """

    def __init__(self, normalizer: Normalizer) -> None:
        self._normalizer = normalizer
        self._rows: dict[Row, Row] = {}
        self._time = Time()
        self._lives = Lives(normalizer.ttl_ms)
        self._seen: set[int] = set()
        self._last: dict[Row, int] = {}
        self._touched: set[Row] = set()
        self._unhealed: list[Row] = []

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._time.hear(batch)
        for key in self._lives.expired(self._time.now):
            self._rows.pop(key, None)
        before = dict(self._rows)
        self._touched, self._unhealed = set(), []
        for event in in_order(batch):
            self._take(event)
        sink = self._normalizer.sink()
        repeats = self._normalizer.ttl_ms > 0
        expected: dict[Row, list[Change]] = {
            key: sink.step(before.get(key), self._rows.get(key), repeats) for key in self._touched
        }
        rows = [change for change in emitted if change[0] not in ("watermark", "reject")]
        return compare(expected, rows, self._normalizer.identity) + self._wrong_rejects(emitted)

    def state_rows(self) -> list[int]:
        return [len(self._rows), 0]

    def _wrong_rejects(self, emitted: Emitted) -> list[str]:
        texts = [json.dumps(list(row), separators=(",", ":")) for row in self._unhealed]
        wanted = Counter(("reject", "rejects", UNAVAILABLE, text) for text in texts)
        found = Counter(tuple(e) for e in emitted if e[0] == "reject")
        return [] if wanted == found else [f"rejects {found}, expected {wanted}"]

    def _take(self, event: Event) -> None:
        number = details(event).get("event")
        is_new = number is None or number not in self._seen
        if event[0] == "truncate":
            # where places in the log are known they tell what the truncation takes away
            found = [k for k in self._rows if number is None or self._last.get(k, -1) < number]
            for key in found if is_new else ():
                self._set(key, None, number)
        else:
            self._change(event[1], tuple(event[2]), details(event), is_new)
        if number is not None and not details(event).get("first"):
            self._seen.add(number)

    def _change(self, kind: str, row: Row, more: dict[str, Any], is_new: bool) -> None:
        key = self._normalizer.identity(row)
        old = self._rows.get(key)
        # a truncation in another partition may have removed what the log has before it
        is_new = is_new and self._last.get(key, -1) <= more.get("event", self._last.get(key, -1))
        if "missing" in more:
            if old is None and (is_new or self._last.get(key, -1) < more["event"]):
                self._unhealed.append(row)
            if old is None or not is_new:
                return
            row = tuple(old[i] if i in more["missing"] else v for i, v in enumerate(row))
        if is_new:
            self._set(key, row if kind in ADDS else None, more.get("event"))

    def _set(self, key: Row, row: Row | None, number: int | None) -> None:
        if number is not None and (row is not None or key in self._rows or key in self._last):
            self._last[key] = number
        self._touched.add(key)
        if row is None:
            self._rows.pop(key, None)
            self._lives.written.pop(key, None)
        else:
            self._rows[key] = row
            self._lives.written[key] = self._time.now


@dataclass(slots=True)
class Log:
    """A database's log as its connector reads it: places that go up, until a server is replaced."""

    rng: random.Random
    place: int = 1_000
    time_ms: int = 0
    number: int = 0

    def next(self) -> dict[str, Any]:
        rng = self.rng
        self.time_ms += rng.choice([0, 0, 1, 500])
        self.place += rng.choice([1, 8, 300])
        self.number += 1
        return {"position": [self.place, self.time_ms], "event": self.number}

    def move(self) -> None:
        """To a new server, whose log begins anew."""
        self.place = self.rng.randrange(500)
        self.time_ms += 1


class Writer:
    """Random events of one table, each key in a partition of its own."""

    def __init__(self, normalizer: Normalizer, rng: random.Random) -> None:
        self._normalizer = normalizer
        self._rng = rng
        self._log = Log(rng)
        self._said: list[Event] = []
        self._partitions = rng.choice([1, 1, 3])
        self._leaves_out = rng.choice([0.0, 0.3])
        self._truncates = rng.choice([0.0, 0.0, 0.08])

    def write(self) -> list[Event]:
        rng = self._rng
        if self._normalizer.positions and self._said and rng.random() < 0.06:
            if rng.random() < 0.3 and not self._truncates:
                self._log.move()
                self._said = []
                return []
            said = [[*event] for event in self._said[-rng.randrange(1, 12) :]]
            return said[1:] if details(said[0]).get("half") else said
        events = self._truncation() if rng.random() < self._truncates else self._row()
        if self._normalizer.positions:
            place = self._log.next()
            events = [[*e[:-1], e[-1] | place] for e in events]
            if len(events) == 2:
                events[0][-1]["first"] = True
        self._said += events
        return events

    def _truncation(self) -> list[Event]:
        return [["truncate", INPUT, {"partition": self._rng.randrange(self._partitions)}]]

    def _row(self) -> list[Event]:
        rng = self._rng
        row = self._random_row()
        partition = sum(map(ord, repr(self._normalizer.identity(row)))) % self._partitions
        more: dict[str, Any] = {"partition": partition}
        if rng.random() < self._leaves_out:
            others = [i for i in range(len(COLUMNS)) if i not in self._normalizer.key]
            missing = rng.sample(others, rng.randrange(1, len(others) + 1))
            row = [None if i in missing else v for i, v in enumerate(row)]
            return [[INPUT, "+U", row, more | {"missing": missing}]]
        if rng.random() < 0.15:
            return [
                [INPUT, "-U", row, more],
                [INPUT, "+U", row[:2] + self._random_row()[2:], more | {"half": True}],
            ]
        kind = rng.choice(["+I", "+U", "+U", "+U", "-D"])
        if kind == "-D" and rng.random() < 0.5:
            row = [v if i in self._normalizer.key else None for i, v in enumerate(row)]
        return [[INPUT, kind, row, more]]

    def _random_row(self) -> list[Any]:
        rng = self._rng
        return [
            rng.choice(["x", "y", "z"]),
            rng.randrange(3),
            None if rng.random() < 0.1 else rng.randrange(5),
            rng.choice([None, "c", "dd"]),
        ]


def random_case(name: str, rng: random.Random, size: int) -> Case:
    normalizer = Normalizer(
        key=rng.choice([(0,), (0, 1)]),
        filter=rng.choice([None, *FILTERS]),
        update_before=rng.random() < 0.6,
        ttl_ms=rng.choice([0, 0, 10, 5_000, 20_000]),
    )
    if rng.random() < 0.4:
        # what a connector repeats it repeats before its rows expire
        normalizer = replace(normalizer, ttl_ms=0, positions=True)
    if rng.random() < 0.3:
        others = [i for i in range(len(COLUMNS)) if i not in normalizer.key and rng.random() < 0.5]
        normalizer = replace(normalizer, shown=(*normalizer.key, *others))
    marks = Marks(rng, clock=not normalizer.positions, watermark=False)
    writer = Writer(normalizer, rng)
    events: list[Event] = []
    while len(events) < size:
        events += [*marks.next(), *writer.write()]
    batches = records_together(cut_into_batches(events, rng))
    restarts = random_restarts(batches, rng)
    return Case(name, normalizer.node(), batches, restarts, lambda: NormalizeModel(normalizer))


def records_together(batches: list[Batch]) -> list[Batch]:
    """The batches, none of which begins with the second half of a record."""
    found: list[Batch] = []
    for batch in batches:
        rest = list(batch)
        while found and rest and details(rest[0]).get("half"):
            found[-1].append(rest.pop(0))
        found.append(rest)
    return found

"""Deduplication: the model keeps every row of a key's life and looks for the best of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
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
    INPUT,
    Change,
    Key,
    Lives,
    Marks,
    Row,
    Sink,
    Time,
    compare,
    output,
    rows_of,
    timing,
)

COLUMNS = (("k", "string"), ("n", "integer"), ("v", "integer"), ("t", "long"))
K, N, V, T = range(4)
FILTERS: dict[str, Callable[[Row], bool]] = {
    "`v` < 3": lambda row: row[V] is not None and row[V] < 3,
}


@dataclass(frozen=True, slots=True)
class Deduplication:
    """A deduplication as the model understands it."""

    keep: str
    time: str
    on_watermark: bool
    generate_insert: bool
    key: tuple[int, ...]
    filter: str | None
    pair_by: tuple[int, ...] | None
    ttl_ms: int

    def node(self) -> dict[str, Any]:
        pair_by = None if self.pair_by is None else [COLUMNS[i][0] for i in self.pair_by]
        return {
            "kind": "deduplicate",
            "keep": self.keep,
            "time": self.time,
            "onWatermark": self.on_watermark,
            "generateInsert": self.generate_insert,
            "schema": struct(COLUMNS),
            "output": output(self.filter, pair_by),
            "timing": timing(self.ttl_ms, watermarks=True),
            "rows": [{"schema": struct(COLUMNS), "key": list(self.key), "time": T}],
        }

    def identity(self, row: Row) -> Key:
        return tuple(row[i] for i in self.key)

    def best(self, rows: list[Row]) -> int | None:
        """The place of the row that shows."""
        if not rows:
            return None
        places = range(len(rows))
        if self.time == "processing":
            return places[-1] if self.keep == "last" else 0
        if self.keep == "last":
            return max(places, key=lambda i: (rows[i][T], i))
        return min(places, key=lambda i: (rows[i][T], i))

    def sink(self) -> Sink:
        accepts = FILTERS[self.filter] if self.filter else lambda _: True
        return Sink(accepts, self.pair_by)


class DeduplicateModel:
    """All rows of each key since it was last forgotten."""

    def __init__(self, spec: Deduplication) -> None:
        self._spec = spec
        self._rows: dict[Key, list[Row]] = {}
        self._shown: set[Key] = set()
        self._time = Time()
        self._lives = Lives(spec.ttl_ms)

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._time.hear(batch)
        for key in self._lives.expired(self._time.now):
            del self._rows[key]
            self._shown.discard(key)
        step = self._when_due if self._spec.on_watermark else self._at_once
        return compare(step(batch), emitted, self._spec.identity)

    def state_rows(self) -> list[int]:
        return [len(self._rows), 0]

    def _at_once(self, batch: Batch) -> dict[Key, list[Change]]:
        spec = self._spec
        before = {key: (spec.best(rows), len(rows)) for key, rows in self._rows.items()}
        for _, row in rows_of(batch):
            self._rows.setdefault(spec.identity(row), []).append(row)
        expected = {}
        inserts = "+I" if spec.generate_insert or spec.pair_by is None else "+U"
        for key, rows in self._rows.items():
            was, _ = before.get(key, (None, 0))
            best = spec.best(rows)
            if best is not None and best != was:
                self._lives.written[key] = self._time.now
                old = None if was is None else rows[was]
                expected[key] = spec.sink().step(old, rows[best], spec.ttl_ms > 0, inserts)
        return expected

    def _when_due(self, batch: Batch) -> dict[Key, list[Change]]:
        spec = self._spec
        for _, row in rows_of(batch):
            if row[T] >= self._time.before and spec.identity(row) not in self._shown:
                self._rows.setdefault(spec.identity(row), []).append(row)
        expected = {}
        for key, rows in self._rows.items():
            best = spec.best(rows)
            if key not in self._shown and best is not None:
                row = rows[best]
                if row[T] <= self._time.watermark:
                    expected[key] = spec.sink().step(None, row, repeats=False)
                    self._shown.add(key)
                    self._lives.written[key] = self._time.now
        return expected


def random_case(name: str, rng: random.Random, size: int) -> Case:
    keep = rng.choice(["first", "last"])
    time = rng.choice(["event", "event", "processing"])
    on_watermark = keep == "first" and time == "event" and rng.random() < 0.6
    key = rng.choice([(K,), (K, N)])
    spec = Deduplication(
        keep=keep,
        time=time,
        on_watermark=on_watermark,
        generate_insert=rng.random() < 0.7,
        key=key,
        filter=rng.choice([None, None, *FILTERS]),
        pair_by=None if on_watermark else rng.choice([None, key, (V,)]),
        ttl_ms=rng.choice([0, 0, 10, 5_000, 20_000]),
    )
    marks = Marks(rng, clock=True, watermark=True)
    keys = ["x", "y", "z", "ä", None][: rng.choice([2, 5])]
    events: list[Event] = []
    while len(events) < size:
        events += marks.next()
        time_of_row = marks.watermark + rng.choice([-3, -1, 0, 1, 2, 5, 9, 4_100])
        row = [rng.choice(keys), rng.randrange(2), rng.choice([None, 1, 2, 3, 4]), time_of_row]
        events.append([INPUT, "+I", row])
    batches = cut_into_batches(events, rng)
    restarts = random_restarts(batches, rng)
    return Case(name, spec.node(), batches, restarts, lambda: DeduplicateModel(spec))

"""Upsert normalisation: the last accepted row of each primary key, as a complete changelog."""

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
    ADDS,
    INPUT,
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

COLUMNS = (("a", "string"), ("b", "integer"), ("v", "integer"), ("c", "string"))
FILTERS: dict[str, Callable[[Row], bool]] = {
    "`v` < 3": lambda row: row[2] is not None and row[2] < 3,
    "`a` <> 'x'": lambda row: row[0] is not None and row[0] != "x",
}


@dataclass(frozen=True, slots=True)
class Normalizer:
    """A normalisation as the model understands it."""

    key: tuple[int, ...]
    filter: str | None
    update_before: bool
    ttl_ms: int = 0

    def node(self) -> dict[str, Any]:
        pair_by = None if self.update_before else [COLUMNS[i][0] for i in self.key]
        return {
            "kind": "normalize",
            "schema": struct(COLUMNS),
            "key": list(self.key),
            "output": output(self.filter, pair_by),
            "timing": timing(self.ttl_ms),
            "rows": [{"schema": struct(COLUMNS), "key": list(self.key), "time": None}],
        }

    def identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)

    def sink(self) -> Sink:
        return Sink(pair_by=None if self.update_before else self.key)


class NormalizeModel:
    """Compares what was stored before and after a batch with what the machine says of it."""

    def __init__(self, normalizer: Normalizer) -> None:
        self._normalizer = normalizer
        self._rows: dict[Row, Row] = {}
        self._time = Time()
        self._lives = Lives(normalizer.ttl_ms)

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._time.hear(batch)
        for key in self._lives.expired(self._time.now):
            self._rows.pop(key, None)
        before = dict(self._rows)
        touched = {self._apply(kind, row) for kind, row in rows_of(batch)}
        sink = self._normalizer.sink()
        repeats = self._normalizer.ttl_ms > 0
        expected = {
            key: sink.step(before.get(key), self._rows.get(key), repeats) for key in touched
        }
        emitted_rows = [change for change in emitted if change[0] != "watermark"]
        return compare(expected, emitted_rows, self._normalizer.identity)

    def state_rows(self) -> list[int]:
        return [len(self._rows), 0]

    def _apply(self, kind: str, row: Row) -> Row:
        key = self._normalizer.identity(row)
        accepted = self._normalizer.filter is None or FILTERS[self._normalizer.filter](row)
        if kind in ADDS and accepted:
            self._rows[key] = row
            self._lives.written[key] = self._time.now
        else:
            self._rows.pop(key, None)
            self._lives.written.pop(key, None)
        return key


def random_case(name: str, rng: random.Random, size: int) -> Case:
    normalizer = Normalizer(
        key=rng.choice([(0,), (0, 1)]),
        filter=rng.choice([None, *FILTERS]),
        update_before=rng.random() < 0.6,
        ttl_ms=rng.choice([0, 0, 10, 5_000, 20_000]),
    )
    marks = Marks(rng, clock=True, watermark=False)
    events: list[Event] = []
    while len(events) < size:
        events += [*marks.next(), _event(normalizer, rng)]
    batches = cut_into_batches(events, rng)
    restarts = random_restarts(batches, rng)
    return Case(name, normalizer.node(), batches, restarts, lambda: NormalizeModel(normalizer))


def _event(normalizer: Normalizer, rng: random.Random) -> Event:
    row: list[Any] = [
        rng.choice(["x", "y", "z"]),
        rng.randrange(3),
        None if rng.random() < 0.1 else rng.randrange(5),
        rng.choice([None, "c", "dd"]),
    ]
    kind = rng.choice(["+I", "+U", "+U", "+U", "-D", "-U"])
    if kind == "-D" and rng.random() < 0.5:
        row = [v if i in normalizer.key else None for i, v in enumerate(row)]
    return [INPUT, kind, row]

"""UNNEST: the model spreads every row by hand and nets the changes of each key and batch."""

import random
from collections import Counter
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
from tests.kernel.oracle.keyed import ADDS, INPUT, Key, Marks, Row, output, rows_of, timing

_ROW = struct([("f", "integer"), ("g", "string")])
TYPES: dict[str, Any] = {
    "numbers": {"type": "array", "elementType": "integer", "containsNull": True},
    "rows": {"type": "array", "elementType": _ROW, "containsNull": True},
    "map": {
        "type": "map",
        "keyType": "string",
        "valueType": "integer",
        "valueContainsNull": True,
    },
}
ELEMENTS = {
    "numbers": (("x", "integer"),),
    "rows": (("x", "integer"), ("g", "string")),
    "map": (("k", "string"), ("x", "integer")),
}


@dataclass(frozen=True, slots=True)
class Spread:
    """`residual`: only elements whose `x` is above 0 count. `pair_by`: of an upsert sink."""

    kind: str
    is_outer: bool
    ordinality: bool
    residual: bool
    pair_by: tuple[str, ...] | None

    @property
    def names(self) -> list[str]:
        elements = [name for name, _ in ELEMENTS[self.kind]]
        return ["id", "c", *elements, *(["n"] if self.ordinality else [])]

    def node(self) -> dict[str, Any]:
        columns = struct([("id", "integer"), ("c", TYPES[self.kind])])
        added = [*ELEMENTS[self.kind], *([("n", "integer")] if self.ordinality else [])]
        return {
            "kind": "unnest",
            "joinType": "left" if self.is_outer else "inner",
            "collection": 1,
            "spreads": self.kind == "rows",
            "ordinality": self.ordinality,
            "residual": "`x` > 0" if self.residual else None,
            "schema": columns,
            "elements": struct(added),
            "output": output(None, self.pair_by),
            "timing": timing(0),
            "rows": [{"schema": columns, "key": [0], "time": None}],
        }

    def rows(self, row: Row) -> list[Row]:
        ident, collection = row
        found = [(*row, *e) for e in self._elements(collection) if self._counts(e)]
        padding = (None,) * (len(self.names) - 2)
        return found or ([(ident, collection, *padding)] if self.is_outer else [])

    def _elements(self, collection: Any) -> list[Row]:
        found: list[Row] = []
        items = collection.items() if isinstance(collection, dict) else collection or ()
        for place, item in enumerate(items, 1):
            if self.kind == "rows" and item is None:
                continue
            values = (item,) if self.kind == "numbers" else tuple(item)
            found.append((*values, *((place,) if self.ordinality else ())))
        return found

    def _counts(self, element: Row) -> bool:
        x = element[1 if self.kind == "map" else 0]
        return not self.residual or (x is not None and x > 0)


def _text(row: Any) -> str:
    return repr(row)


class UnnestModel:
    """Keeps nothing: what is emitted depends on the batch alone."""

    def __init__(self, spec: Spread) -> None:
        self._spec = spec

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        net: dict[Key, Counter[str]] = {}
        for kind, row in rows_of(batch):
            for result in self._spec.rows(row):
                sign = 1 if kind in ADDS else -1
                counts = net.setdefault((row[0],), Counter())
                counts[_text(result)] += sign
        found: dict[Key, Counter[str]] = {}
        problems: list[str] = []
        added: set[Key] = set()
        for kind, *values in emitted:
            row, key = tuple(values), (values[0],)
            if kind in ADDS:
                added.add(key)
            elif key in added:
                problems.append(f"{row}: taken back behind what was added")
            if self._spec.pair_by is not None and kind == "-U":
                problems.append(f"{row}: -U into an upsert sink")
            found.setdefault(key, Counter())[_text(row)] += 1 if kind in ADDS else -1
        for key in {**net, **found}:
            wanted = self._wanted(net.get(key, Counter()))
            got = {row: n for row, n in found.get(key, Counter()).items() if n}
            if got != wanted:
                problems.append(f"{key}: emits {got}, expected {wanted}")
        return problems

    def _wanted(self, counts: Counter[str]) -> dict[str, int]:
        """Before an upsert sink by `id`, a row that is added replaces those that go."""
        left = {row: n for row, n in counts.items() if n}
        if self._spec.pair_by is None or not any(n > 0 for n in left.values()):
            return left
        return {row: n for row, n in left.items() if n > 0}

    def state_rows(self) -> list[int]:
        return [0, 0]


def random_case(name: str, rng: random.Random, size: int) -> Case:
    kind = rng.choice(list(TYPES))
    spec = Spread(
        kind,
        is_outer=rng.random() < 0.5,
        ordinality=rng.random() < 0.5,
        residual=rng.random() < 0.4,
        pair_by=rng.choice([None, None, ("id",)]),
    )
    marks = Marks(rng, clock=True, watermark=False)
    live: list[Row] = []
    events: list[Event] = []
    while len(events) < size:
        events += marks.next()
        if live and rng.random() < 0.45:
            row = live.pop(rng.randrange(len(live)))
            events.append([INPUT, rng.choice(["-U", "-D"]), list(row)])
        else:
            row = (rng.choice([1, 2, None]), _collection(rng, kind))
            live.append(row)
            events.append([INPUT, rng.choice(["+I", "+U"]), list(row)])
    batches = cut_into_batches(events, rng)
    return Case(
        name, spec.node(), batches, random_restarts(batches, rng), lambda: UnnestModel(spec)
    )


def _collection(rng: random.Random, kind: str) -> Any:
    if rng.random() < 0.15:
        return None
    size = rng.choice([0, 1, 2, 3, 20])
    if kind == "map":
        return {name: _number(rng) for name in rng.sample("abcdef", min(size, 6))}
    return [_number(rng) if kind == "numbers" else _item(rng) for _ in range(size)]


def _number(rng: random.Random) -> int | None:
    return rng.choice([-1, 0, 1, 2, None])


def _item(rng: random.Random) -> list[Any] | None:
    return None if rng.random() < 0.2 else [_number(rng), rng.choice(["p", "", None])]

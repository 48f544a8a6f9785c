"""Upsert normalisation: the last accepted row of each primary key, as a complete changelog."""

import random
from collections.abc import Callable
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

    def node(self) -> dict[str, Any]:
        return {
            "kind": "normalize",
            "schema": struct(COLUMNS),
            "key": list(self.key),
            "filter": self.filter,
            "updateBefore": self.update_before,
        }

    def identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)


class NormalizeModel:
    """Compares what was stored before and after a batch with what the machine says of it."""

    def __init__(self, normalizer: Normalizer) -> None:
        self._normalizer = normalizer
        self._rows: dict[Row, Row] = {}

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        before = dict(self._rows)
        for _, kind, values in batch:
            self._apply(kind, tuple(values))
        problems = []
        found: dict[Row, list[tuple[str, Row]]] = {}
        for change in emitted:
            row = tuple(change[1:])
            found.setdefault(self._normalizer.identity(row), []).append((change[0], row))
        for key in {**before, **self._rows, **found}:
            wanted = self._changes(before.get(key), self._rows.get(key))
            if found.get(key, []) != wanted:
                problems.append(f"{key}: emits {found.get(key, [])}, expected {wanted}")
        return problems

    def state_rows(self) -> None:
        """Normalisation has one side; its count is tested with the machine."""

    def _apply(self, kind: str, row: Row) -> None:
        accepted = self._normalizer.filter is None or FILTERS[self._normalizer.filter](row)
        if kind in ("+I", "+U") and accepted:
            self._rows[self._normalizer.identity(row)] = row
        else:
            self._rows.pop(self._normalizer.identity(row), None)

    def _changes(self, before: Row | None, after: Row | None) -> list[tuple[str, Row]]:
        if before == after:
            return []
        if before is None:
            return [("+I", row) for row in (after,) if row is not None]
        if after is None:
            return [("-D", before)]
        old = [("-U", before)] if self._normalizer.update_before else []
        return [*old, ("+U", after)]


def random_case(name: str, rng: random.Random, size: int) -> Case:
    normalizer = Normalizer(
        key=rng.choice([(0,), (0, 1)]),
        filter=rng.choice([None, *FILTERS]),
        update_before=rng.random() < 0.6,
    )
    batches = cut_into_batches([_event(normalizer, rng) for _ in range(size)], rng)
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
    return ["input", kind, row]

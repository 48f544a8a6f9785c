"""Top-N: the model keeps the rows of a key in a list and sorts it anew for every answer."""

import random
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
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

COLUMNS = (
    ("g", "string"),
    ("i", "integer"),
    ("s", "string"),
    ("d", "double"),
    ("e", "decimal(20,2)"),
    ("b", "boolean"),
)
G, _, _, _, DECIMAL, _ = range(len(COLUMNS))
_VALUES: tuple[tuple[Any, ...], ...] = (
    (-1, 0, 3, 2**31 - 1, None),
    ("", "a", "a\0", "a\0b", "ab", "z", "\N{EURO SIGN}", None),
    (-1.5, 0.0, 0.25, 1e300, -1e300, None),
    ("-1.00", "0.10", "12345678901234567.00", None),
    (True, False, None),
)


@dataclass(frozen=True, slots=True)
class TopN:
    """`order`: column, whether it descends, whether NULL comes first."""

    first: int
    last: int
    order: tuple[tuple[int, bool, bool], ...]
    append_only: bool
    numbered: bool
    pair_by: tuple[int, ...] | None
    ttl_ms: int

    def node(self) -> dict[str, Any]:
        names = [name for name, _ in COLUMNS] + ["n"]
        keys = [
            {"ordinal": c, "descends": descends, "nullsFirst": nulls_first}
            for c, descends, nulls_first in self.order
        ]
        pair_by = None if self.pair_by is None else [names[i] for i in self.pair_by]
        return {
            "kind": "rank",
            "first": self.first,
            "last": self.last,
            "order": keys,
            "appendOnly": self.append_only,
            "number": "n" if self.numbered else None,
            "schema": struct(COLUMNS),
            "output": output(None, pair_by),
            "timing": timing(self.ttl_ms),
            "rows": [{"schema": struct(COLUMNS), "key": [G], "time": None}],
        }

    def sorted(self, rows: list[Row]) -> list[Row]:
        """Equal rows stay as they came: every sort is stable, the last column sorts first."""
        rows = list(rows)
        for column, descends, nulls_first in reversed(self.order):
            nulls = [row for row in rows if row[column] is None]
            others = [row for row in rows if row[column] is not None]
            # a reversed sort keeps the order of equals, too
            others.sort(key=lambda row, c=column: _value(row, c), reverse=descends)
            rows = [*nulls, *others] if nulls_first else [*others, *nulls]
        return rows

    def taken(self, rows: list[Row]) -> list[Row]:
        return self.sorted(rows)[self.first - 1 : self.last]

    def steps(self, before: list[Row], after: list[Row]) -> list[Change]:
        sink = Sink(pair_by=self.pair_by)
        if not self.numbered and self.first != self.last:
            return self._rows_gone_and_come(sink, before, after)
        changes: list[Change] = []
        for i in range(max(len(before), len(after))):
            number = (self.first + i,) if self.numbered else ()
            old, new = ((*rows[i], *number) if i < len(rows) else None for rows in (before, after))
            changes += sink.step(old, new, repeats=False)
        return changes

    def _rows_gone_and_come(self, sink: Sink, before: list[Row], after: list[Row]) -> list[Change]:
        gone, come = _without(before, after), _without(after, before)
        changes: list[Change] = []
        waiting = list(come)
        for row in gone:
            same = [new for new in waiting if self._same_key(new, row)]
            new = same[0] if same and self._is_first(row, gone, same[0]) else None
            if new is not None:
                waiting.remove(new)
            changes += sink.step(row, new, repeats=False)
        for row in waiting:
            changes += sink.step(None, row, repeats=False)
        return changes

    def _same_key(self, a: Row, b: Row) -> bool:
        return self.pair_by is not None and all(a[i] == b[i] for i in self.pair_by)

    def _is_first(self, row: Row, gone: list[Row], new: Row) -> bool:
        """Of several rows with one key, the first that goes is replaced by the first that comes."""
        return next(other for other in gone if self._same_key(new, other)) is row


def _value(row: Row, column: int) -> Any:
    value = row[column]
    if column == DECIMAL:
        return Decimal(value)
    return value.encode() if isinstance(value, str) else value


def _without(rows: list[Row], others: list[Row]) -> list[Row]:
    left = Counter(others)
    found = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
        else:
            found.append(row)
    return found


class RankModel:
    """The rows of every key in the order in which they came."""

    def __init__(self, spec: TopN) -> None:
        self._spec = spec
        self._rows: dict[Key, list[Row]] = {}
        self._time = Time()
        self._lives = Lives(spec.ttl_ms)

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        self._time.hear(batch)
        for key in self._lives.expired(self._time.now):
            del self._rows[key]
        before = {key: list(rows) for key, rows in self._rows.items()}
        for kind, row in rows_of(batch):
            if self._apply(kind, row):
                self._lives.written[(row[G],)] = self._time.now
        expected = {}
        for key in {**before, **self._rows}:
            rows = self._rows.get(key, [])
            expected[key] = self._spec.steps(
                self._spec.taken(before.get(key, [])), self._spec.taken(rows)
            )
            if not rows:
                self._rows.pop(key, None)
                self._lives.written.pop(key, None)
        return compare(expected, emitted, lambda row: (row[G],))

    def _apply(self, kind: str, row: Row) -> bool:
        rows = self._rows.setdefault((row[G],), [])
        if kind not in ADDS:
            if row in rows:
                rows.remove(row)
                return True
            return False
        rows.append(row)
        if not self._spec.append_only or len(rows) <= self._spec.last:
            return True
        best = self._spec.sorted(rows)
        dropped = best.pop()
        last = len(rows) - 1 - rows[::-1].index(dropped)
        is_new = last == len(rows) - 1
        del rows[last]
        return not is_new

    def state_rows(self) -> list[int]:
        return [sum(map(len, self._rows.values())), 0]


class ChangelogWriter:
    """Rows with few different values; most retractions take back what is there."""

    def __init__(self, rng: random.Random, append_only: bool) -> None:
        self._rng = rng
        self._live: list[Row] = []
        self._groups = ["a", "b", None][: rng.choice([1, 3])]
        self._grows = 1.0 if append_only else rng.choice([0.5, 0.6, 0.9])
        self._strays = 0.0 if append_only else rng.choice([0.0, 0.05])

    def write(self) -> Event:
        rng = self._rng
        if not self._live or rng.random() < self._grows:
            row = self._row()
            self._live.append(row)
            return [INPUT, rng.choice(["+I", "+U"]), list(row)]
        if rng.random() < self._strays:
            return [INPUT, "-D", list(self._row())]
        row = rng.choice(self._live)
        self._live.remove(row)
        return [INPUT, rng.choice(["-U", "-D"]), list(row)]

    def _row(self) -> Row:
        values = (self._rng.choice(values) for values in _VALUES)
        return (self._rng.choice(self._groups), *values)


def random_case(name: str, rng: random.Random, size: int) -> Case:
    first = rng.choice([1, 1, 1, 2, 3])
    append_only = rng.random() < 0.4
    numbered = rng.random() < 0.5
    columns = rng.sample(range(1, len(COLUMNS)), rng.choice([0, 1, 1, 2, 3]))
    spec = TopN(
        first,
        last=first + rng.choice([0, 0, 1, 2, 9]),
        order=tuple((c, rng.random() < 0.5, rng.random() < 0.5) for c in columns),
        append_only=append_only,
        numbered=numbered,
        pair_by=rng.choice([None, (G,), (1,), (G, len(COLUMNS)) if numbered else (2, 3)]),
        ttl_ms=rng.choice([0, 0, 10, 5_000, 20_000]),
    )
    marks = Marks(rng, clock=True, watermark=False)
    writer = ChangelogWriter(rng, append_only)
    events: list[Event] = []
    while len(events) < size:
        events += [*marks.next(), writer.write()]
    batches = cut_into_batches(events, rng)
    restarts = random_restarts(batches, rng)
    return Case(name, spec.node(), batches, restarts, lambda: RankModel(spec))

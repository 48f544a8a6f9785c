"""Aggregation: the model keeps all rows of a group and computes every result from them anew."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from struct import pack, unpack
from typing import Any, TypeAlias

from tests.kernel.oracle.arrival import (
    BY_ARRIVAL,
    SEPARATOR,
    VARIANCES,
    distinct,
    in_order,
    variance,
)
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
    ("h", "integer"),
    ("i", "integer"),
    ("l", "long"),
    ("d", "decimal(10,2)"),
    ("f", "double"),
    ("r", "float"),
    ("s", "string"),
    ("t", "timestamp_ntz"),
    ("e", "date"),
    ("b", "boolean"),
)
G, H, INT, LONG, DECIMAL, DOUBLE, FLOAT, S, T, E, B = range(len(COLUMNS))
_SUMS = {
    INT: "integer",
    LONG: "long",
    DECIMAL: "decimal(38,2)",
    DOUBLE: "double",
    FLOAT: "float",
}
_AVERAGES = {**_SUMS, DECIMAL: "decimal(38,6)"}
Values: TypeAlias = "Counter[Any]"


@dataclass(slots=True)
class Group:
    """The rows of a group, each with how often it stands there, and how they came to be there."""

    rows: "Counter[Row]" = field(default_factory=Counter)
    history: list[tuple[int, Row]] = field(default_factory=list)

    def apply(self, sign: int, row: Row) -> None:
        self.history.append((sign, row))
        self.rows[row] += sign
        if self.rows[row] == 0:
            del self.rows[row]

    @property
    def size(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate function over a column; `nulls`: NULLs are elements of ARRAY_AGG."""

    function: str
    argument: int | None
    distinct: bool
    filtered: bool
    nulls: bool = False

    def type(self) -> Any:
        if self.function == "COUNT" or self.argument is None:
            return "long"
        own = COLUMNS[self.argument][1]
        if self.function in ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "LISTAGG"):
            return own
        if self.function == "ARRAY_AGG":
            return {"type": "array", "elementType": own, "containsNull": True}
        return (_SUMS if self.function == "SUM" else _AVERAGES)[self.argument]

    def json(self, append_only: bool) -> dict[str, Any]:
        written = {
            "function": self.function,
            "argument": self.argument,
            "distinct": self.distinct,
            "filter": B if self.filtered else None,
            "type": self.type(),
        }
        if self.function in BY_ARRIVAL:
            written |= {"appendOnly": append_only, "takesNulls": self.nulls}
        return written | ({"separator": SEPARATOR} if self.function == "LISTAGG" else {})

    def result(self, group: Group) -> Any:
        """The value over all rows; a row may stand there a negative number of times."""
        if self.argument is None or self.function not in (*BY_ARRIVAL, *VARIANCES):
            return self._of_rows(group.rows)
        values = [(sign, row[self.argument]) for sign, row in group.history if self._takes(row)]
        steps = distinct(values) if self.distinct else values
        if self.function in BY_ARRIVAL:
            return in_order(self.function, steps)
        return variance(self.function, steps, self.type())

    def _takes(self, row: Row) -> bool:
        is_value = self.argument is not None and (row[self.argument] is not None or self.nulls)
        return is_value and (not self.filtered or row[B] is True)

    def _of_rows(self, rows: "Counter[Row]") -> Any:
        passing = {row: n for row, n in rows.items() if not self.filtered or row[B] is True}
        if self.argument is None:
            return sum(passing.values())
        values: Values = Counter()
        for row, n in passing.items():
            if row[self.argument] is not None:
                values[row[self.argument]] += n
        there = {value for value, n in values.items() if n > 0}
        if self.function in ("MIN", "MAX"):
            return self._extreme(there)
        if self.distinct:
            values = Counter(dict.fromkeys(there, 1))
        count = sum(values.values())
        if self.function == "COUNT":
            return count
        return None if count == 0 else self._total(values.items(), count)

    def _extreme(self, values: set[Any]) -> Any:
        order: Callable[[Any], Any] = Decimal if self.argument == DECIMAL else lambda value: value
        pick = min if self.function == "MIN" else max
        return pick(values, key=order) if values else None

    def _total(self, values: Iterable[tuple[Any, int]], count: int) -> Any:
        average = self.function == "AVG"
        if self.argument == DECIMAL:
            with localcontext() as context:
                context.prec = 100
                total = sum((Decimal(v) * n for v, n in values), Decimal(0))
                exact = total / count if average else total
                places = Decimal("0.000001") if average else Decimal("0.01")
                return format(exact.quantize(places, ROUND_HALF_UP), "f")
        total = sum(v * n for v, n in values)
        bits = 32 if self.argument == INT else 64
        if self.argument in (DOUBLE, FLOAT):
            result = total / count if average else total
            return _as_float(result) if self.argument == FLOAT else result
        if average:
            wrapped = _wrap(total, 64)  # as a BIGINT, then in the result's type
            quotient = abs(wrapped) // abs(count)
            return _wrap(quotient if (wrapped < 0) == (count < 0) else -quotient, bits)
        return _wrap(total, bits)


def _as_float(value: float) -> float:
    [rounded] = unpack("<f", pack("<f", value))
    return float(rounded)


def _wrap(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation as the model understands it; `having` asks for COUNT(*) > 1.

    `append_only`: rows only come, and the machine knows it.
    """

    key: tuple[int, ...]
    calls: tuple[Call, ...]
    having: bool
    pair_by: tuple[int, ...] | None
    ttl_ms: int
    append_only: bool = False

    def names(self) -> list[tuple[str, Any]]:
        named = [(f"c{i}", call.type()) for i, call in enumerate(self.calls)]
        return [COLUMNS[i] for i in self.key] + named

    def node(self) -> dict[str, Any]:
        names = self.names()
        pair_by = None if self.pair_by is None else [names[i][0] for i in self.pair_by]
        return {
            "kind": "aggregate",
            "inputSchema": struct(COLUMNS),
            "key": struct([COLUMNS[i] for i in self.key]),
            "calls": [call.json(self.append_only) for call in self.calls],
            "schema": struct(names),
            "output": output("`c0` > 1" if self.having else None, pair_by),
            "timing": timing(self.ttl_ms),
            "rows": [{"schema": struct(COLUMNS), "key": list(self.key), "time": None}],
        }

    def result(self, key: Key, group: Group | None) -> Row | None:
        if group is None:
            return None
        return (*key, *(call.result(group) for call in self.calls))

    def sink(self) -> Sink:
        place = len(self.key)
        return Sink((lambda row: row[place] > 1) if self.having else lambda _: True, self.pair_by)


class AggregateModel:
    """Every group that has rows."""

    def __init__(self, spec: Aggregation) -> None:
        self._spec = spec
        self._groups: dict[Key, Group] = {}
        self._results: dict[Key, Row | None] = {}  # of the last step that touched the group
        self._time = Time()
        self._lives = Lives(spec.ttl_ms)

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        spec = self._spec
        self._time.hear(batch)
        for key in self._lives.expired(self._time.now):
            del self._groups[key]
            self._results.pop(key, None)
        touched = {tuple(row[i] for i in spec.key) for _, row in rows_of(batch)}
        before = {key: self._results.get(key) for key in touched}
        changed = {self._apply(kind, row) for kind, row in rows_of(batch)}
        expected = {}
        for key in touched & changed:
            repeats = spec.ttl_ms > 0
            self._results[key] = spec.result(key, self._groups.get(key))
            expected[key] = spec.sink().step(before[key], self._results[key], repeats)
            if key in self._groups:
                self._lives.written[key] = self._time.now
            else:
                self._lives.written.pop(key, None)
        return compare(expected, emitted, lambda row: row[: len(spec.key)])

    def state_rows(self) -> list[int]:
        return [len(self._groups), 0]

    def _apply(self, kind: str, row: Row) -> Key | None:
        key = tuple(row[i] for i in self._spec.key)
        if kind not in ADDS and key not in self._groups:
            return None
        group = self._groups.setdefault(key, Group())
        group.apply(1 if kind in ADDS else -1, row)
        if group.size == 0:
            del self._groups[key]
        return key


class ChangelogWriter:
    """Rows with few or many different values; most retractions take back what is there."""

    def __init__(self, rng: random.Random, spec: Aggregation, pages: bool) -> None:
        self._rng = rng
        self._live: list[Row] = []
        self._spread = rng.choice([10, 500]) if pages else rng.choice([2, 5, 1_000])
        self._filling = "x" * rng.choice([60, 150, 600]) if pages else ""
        self._groups = ["a", "b", "c", None][: 1 if pages else rng.choice([1, 2, 4])]
        self._drift = rng.choice([-20, -1, 0, 20]) if pages else 0
        self._written = 0
        self._growth = 0.75 if pages else rng.choice([0.5, 0.55, 0.8])
        if spec.append_only:
            self._growth = 1.0
        self._strays = 0.0 if _rounds(spec.calls) else rng.choice([0.0, 0.05])

    def write(self) -> Event:
        rng = self._rng
        if not self._live or rng.random() < self._growth:
            row = self._row()
            self._live.append(row)
            return [INPUT, rng.choice(["+I", "+U"]), list(row)]
        if rng.random() < self._strays:
            return [INPUT, "-D", list(self._row())]
        row = rng.choice([self._live[0], rng.choice(self._live), *self._extremes()])
        self._live.remove(row)
        return [INPUT, rng.choice(["-U", "-D"]), list(row)]

    def _extremes(self) -> list[Row]:
        texts = sorted((row[S], i) for i, row in enumerate(self._live) if row[S] is not None)
        return [self._live[texts[0][1]], self._live[texts[-1][1]]] if texts else []

    def _row(self) -> Row:
        self._written += 1
        n = self._rng.randrange(self._spread) - 1 + self._drift * self._written
        big = self._rng.choice([0, 2**62, -(2**62)])
        wide = self._rng.choice([0, 2**30, -(2**30)])
        day = f"2020-01-{self._rng.randrange(1, 29):02}"
        values = [n + wide, n + big, f"{n}.{abs(n) % 100:02}", n * 0.25, n * 0.5]
        texts = [f"{n + 50_000}{self._filling}", f"{day}T00:00:{abs(n) % 60:02}.000", day]
        checks = [self._rng.choice([True, False, None])]
        nulls = [None if self._rng.random() < 0.1 else v for v in [*values, *texts]]
        return (self._rng.choice(self._groups), self._rng.randrange(2), *nulls, *checks)


def random_case(name: str, rng: random.Random, size: int) -> Case:
    calls = tuple(_random_call(rng) for _ in range(rng.choice([0, 1, 2, 4])))
    having = rng.random() < 0.2
    if having:
        calls = (Call("COUNT", None, False, False), *calls)
    pages = size >= 100 and rng.random() < 0.4
    if pages:
        size *= 2
        paged = rng.choice([("MIN", "MAX"), ("FIRST_VALUE", "LAST_VALUE"), ("LISTAGG",)])
        calls = (*calls, *(Call(function, S, False, False) for function in paged))
    keys: list[tuple[int, ...]] = [(G,), (G, H), ()] if calls else [(G,), (G, H)]
    key = () if pages else rng.choice(keys)
    places = range(len(key) + len(calls))
    spec = Aggregation(
        key,
        calls,
        having,
        pair_by=rng.choice([None, tuple(range(len(key))), (rng.choice(places),)]),
        ttl_ms=0 if pages or _rounds(calls) else rng.choice([0, 0, 10, 5_000, 20_000]),
        append_only=rng.random() < 0.15,
    )
    marks = Marks(rng, clock=True, watermark=False)
    writer = ChangelogWriter(rng, spec, pages)
    events: list[Event] = []
    while len(events) < size:
        events += [*marks.next(), writer.write()]
    batches = cut_into_batches(events, rng)
    restarts = random_restarts(batches, rng)
    return Case(name, spec.node(), batches, restarts, lambda: AggregateModel(spec))


def _rounds(calls: tuple[Call, ...]) -> bool:
    """Sums that start anew at 0 values: they mean nothing where rows go that never came."""
    return any(call.argument in (DOUBLE, FLOAT) for call in calls)


def _random_call(rng: random.Random) -> Call:
    function = rng.choice(["COUNT", "SUM", "AVG", "MIN", "MAX", *VARIANCES, *BY_ARRIVAL])
    if function == "COUNT" and rng.random() < 0.3:
        return Call("COUNT", None, False, rng.random() < 0.3)
    anything = [*range(G, B + 1)]
    if function == "LISTAGG":
        anything = [G, S]
    argument = rng.choice([*_SUMS] if function in ("SUM", "AVG", *VARIANCES) else anything)
    nulls = function == "ARRAY_AGG" and rng.random() < 0.5
    return Call(function, argument, rng.random() < 0.4, rng.random() < 0.3, nulls)

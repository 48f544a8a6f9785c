"""What the jobs have to give: the plain joins of docs/semantics.md over all rows that were read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Mapping[str, Any]

NEVER = -(2**63)
TICK_MS = 5_000  # half of the idle timeout of the jobs


@dataclass(frozen=True, slots=True)
class Read:
    """A record that an epoch reads; `values` is None for a tombstone."""

    partition: int
    key: Any
    values: Values | None


@dataclass(frozen=True, slots=True)
class Epoch:
    """`records` and `counts` (of partitions, as the driver knows them) by scan."""

    records: Sequence[Sequence[Read]]
    counts: Sequence[int]
    at_ms: int


class Model(Protocol):
    """`contents`: what a reader of the sink holds after the epochs so far."""

    scans: int

    def epoch(self, epoch: Epoch) -> None: ...

    def contents(self) -> Counter[Row]: ...


@dataclass(slots=True)
class Table:
    """All rows; a record with a key replaces the one before it."""

    rows: dict[Any, Values] = field(default_factory=dict)
    count: int = 0

    def add(self, records: Sequence[Read]) -> None:
        for record in records:
            self.count += 1
            key = ("row", self.count) if record.key is None else record.key
            if record.values is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = record.values


def _left_join(left: Table, right: Table, on: tuple[str, str]) -> list[tuple[Values, Values]]:
    found: list[tuple[Values, Values]] = []
    by_value: dict[Any, list[Values]] = {}
    for row in right.rows.values():
        by_value.setdefault(row[on[1]], []).append(row)
    for row in left.rows.values():
        value = row.get(on[0])
        partners = [] if value is None else by_value.get(value, [])
        found += [(row, partner) for partner in partners or [{}]]
    return found


class LeftJoin:
    """A regular LEFT JOIN of two tables."""

    scans = 2

    def __init__(
        self, left_on: str, right_on: str, left: Sequence[str], right: Sequence[str]
    ) -> None:
        self._on = (left_on, right_on)
        self._columns = (left, right)
        self._tables = (Table(), Table())

    def epoch(self, epoch: Epoch) -> None:
        for table, records in zip(self._tables, epoch.records, strict=True):
            table.add(records)

    def contents(self) -> Counter[Row]:
        left, right = self._columns
        return Counter(
            (*(a[c] for c in left), *(b.get(c) for c in right))
            for a, b in _left_join(*self._tables, self._on)
        )


class Chain:
    """a LEFT JOIN b ON a.k = b.k LEFT JOIN d ON b.v = d.v."""

    scans = 3

    def __init__(self) -> None:
        self._tables = (Table(), Table(), Table())

    def epoch(self, epoch: Epoch) -> None:
        for table, records in zip(self._tables, epoch.records, strict=True):
            table.add(records)

    def contents(self) -> Counter[Row]:
        a, b, d = self._tables
        joined = Table(
            dict(enumerate({**x, "v": y.get("v")} for x, y in _left_join(a, b, ("k", "k"))))
        )
        return Counter((x["id"], x["v"], y.get("w")) for x, y in _left_join(joined, d, ("v", "v")))


class Union:
    """UNION ALL; each branch has scans of its own."""

    def __init__(self, *branches: Model) -> None:
        self._branches = branches
        self.scans = sum(branch.scans for branch in branches)

    def epoch(self, epoch: Epoch) -> None:
        at = 0
        for branch in self._branches:
            part = slice(at, at + branch.scans)
            branch.epoch(Epoch(epoch.records[part], epoch.counts[part], epoch.at_ms))
            at += branch.scans

    def contents(self) -> Counter[Row]:
        return sum((branch.contents() for branch in self._branches), Counter())


class Time:
    """The watermark of an operator over scans: docs/semantics.md, "Time".

    The clock ticks every `TICK_MS`, and when the number of partitions changes. A partition that the
    clock does not know of counts from its first record on.
    """

    def __init__(self, scans: int, bound_ms: int, idle_ms: int) -> None:
        self._bound_ms, self._idle_ms = bound_ms, idle_ms
        self._clock = NEVER
        self._told: tuple[int, ...] = (0,) * scans
        self._counts = [0] * scans
        self._watermarks: dict[tuple[int, int], int] = {}
        self._active: dict[tuple[int, int], int] = {}
        self.before = NEVER
        self.now = NEVER
        self.is_idle = False

    def epoch(self, epoch: Epoch, *others: int | None) -> None:
        """`others`: the watermarks of operators that feed this one; None for one that is idle."""
        counts = tuple(epoch.counts)
        if counts != self._told or epoch.at_ms - self._clock >= TICK_MS:
            self._clock, self._told = max(self._clock, epoch.at_ms), counts
            self._counts = [max(pair) for pair in zip(counts, self._counts, strict=True)]
        for scan, records in enumerate(epoch.records):
            for record in records:
                place = (scan, record.partition)
                self._counts[scan] = max(self._counts[scan], record.partition + 1)
                self._active[place] = self._clock
                self._watermarks.setdefault(place, NEVER)
                if record.values is not None:
                    seen = record.values["t"] - self._bound_ms
                    self._watermarks[place] = max(self._watermarks[place], seen)
        self.before = self.now
        found = [*others, *(self._of(scan) for scan in range(len(counts)))]
        inputs = [mark for mark in found if mark is not None]
        self.is_idle = not inputs
        if inputs:
            self.now = max(self.now, min(inputs))

    def _of(self, scan: int) -> int | None:
        places = [(scan, p) for p in range(self._counts[scan])]
        live = [
            place
            for place in places
            if self._clock - self._active.setdefault(place, self._clock) < self._idle_ms
        ]
        if not places:
            return NEVER
        return min((self._watermarks.get(place, NEVER) for place in live), default=None)


class IntervalLeft:
    """a LEFT JOIN b ON a.k = b.k AND a.t within `window_ms` of b.t: cases I1 to I6."""

    scans = 2

    def __init__(self, window_ms: int, bound_ms: int, idle_ms: int) -> None:
        self._window_ms = window_ms
        self._time = Time(2, bound_ms, idle_ms)
        self._left: list[list[Any]] = []  # row, whether it is matched
        self._right: list[Values] = []
        self._out: Counter[Row] = Counter()
        self.emitted: list[tuple[Values, Any]] = []  # left row and v, of the last epoch

    @property
    def passed_on(self) -> int | None:
        """The watermark for the next operator; None while this one is idle."""
        now = self._time.now
        earliest = NEVER + 1
        held = earliest if now < earliest + self._window_ms else now - self._window_ms
        return None if self._time.is_idle else held

    def epoch(self, epoch: Epoch) -> None:
        self.emitted = []
        self._time.epoch(epoch)
        self._expire(self._time.before)
        left, right = ([r.values for r in records if r.values] for records in epoch.records)
        for row in left:
            entry = [row, False]
            for other in self._right:
                self._pair(entry, other)
            if self._is_open(row):
                self._left.append(entry)
            elif not entry[1]:
                self._pad(row)
        for row in right:
            for entry in self._left:
                self._pair(entry, row)
            if self._is_open(row):
                self._right.append(row)
        self._expire(self._time.now)

    def contents(self) -> Counter[Row]:
        return +self._out

    def _pair(self, entry: list[Any], other: Values) -> None:
        row = entry[0]
        if row["k"] == other["k"] and abs(row["t"] - other["t"]) <= self._window_ms:
            entry[1] = True
            self._emit(row, other["v"])

    def _pad(self, row: Values) -> None:
        self._emit(row, None)

    def _emit(self, row: Values, v: Any) -> None:
        self._out[row["id"], row["k"], v] += 1
        self.emitted.append((row, v))

    def _is_open(self, row: Values) -> bool:
        return bool(self._time.before < row["t"] + self._window_ms)

    def _expire(self, time: int) -> None:
        def stays(row: Values) -> bool:
            return bool(time < row["t"] + self._window_ms + 1)

        for row, is_matched in self._left:
            if not stays(row) and not is_matched:
                self._pad(row)
        self._left = [entry for entry in self._left if stays(entry[0])]
        self._right = [row for row in self._right if stays(row)]


class TemporalLeft:
    """a LEFT JOIN b FOR SYSTEM_TIME AS OF a.t ON a.k = b.k: cases T1 to T4 and T8."""

    scans = 2

    def __init__(self, bound_ms: int, idle_ms: int) -> None:
        self._time = Time(2, bound_ms, idle_ms)
        self._versions: list[Values] = []
        self._waiting: list[Values] = []
        self._out: Counter[Row] = Counter()

    def epoch(self, epoch: Epoch) -> None:
        self._time.epoch(epoch)
        rows, versions = ([r.values for r in records if r.values] for records in epoch.records)
        self._versions += versions
        self._waiting += [row for row in rows if row["t"] > self._time.before]
        for row in self._waiting:
            if row["t"] <= self._time.now:
                self._out[row["id"], row["k"], version_of(self._versions, row, "v")] += 1
        self._waiting = [row for row in self._waiting if row["t"] > self._time.now]

    def contents(self) -> Counter[Row]:
        return +self._out


class TimedChain:
    """The results of an interval join, each with the version of d at its left row's time."""

    scans = 3

    def __init__(self, window_ms: int, bound_ms: int, idle_ms: int) -> None:
        self._first = IntervalLeft(window_ms, bound_ms, idle_ms)
        self._time = Time(1, bound_ms, idle_ms)
        self._versions: list[Values] = []
        self._waiting: list[tuple[Values, Any]] = []
        self._out: Counter[Row] = Counter()

    def epoch(self, epoch: Epoch) -> None:
        self._first.epoch(Epoch(epoch.records[:2], epoch.counts[:2], epoch.at_ms))
        self._time.epoch(
            Epoch(epoch.records[2:], epoch.counts[2:], epoch.at_ms), self._first.passed_on
        )
        self._versions += [r.values for r in epoch.records[2] if r.values]
        before, now = self._time.before, self._time.now
        self._waiting += [(row, v) for row, v in self._first.emitted if row["t"] > before]
        for row, v in self._waiting:
            if row["t"] <= now:
                self._out[row["id"], v, version_of(self._versions, row, "w")] += 1
        self._waiting = [(row, v) for row, v in self._waiting if row["t"] > now]

    def contents(self) -> Counter[Row]:
        return +self._out


def version_of(versions: Sequence[Values], row: Values, column: str) -> Any:
    valid = [v for v in versions if v["k"] == row["k"] and v["t"] <= row["t"]]
    newest = max((v["t"] for v in valid), default=None)
    return [v for v in valid if v["t"] == newest][-1][column] if valid else None

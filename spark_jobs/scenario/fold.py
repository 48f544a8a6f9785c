"""Folds changes into the rows they leave behind, and tells two results apart."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from spark_jobs.scenario.records import Change, keeps_kinds, physical_columns
from spark_jobs.scenario.values import Row
from spark_jobs.sql.catalog import Table

Mark: TypeAlias = Literal["same", "missing", "extra"]
_WORDS: dict[Mark, str] = {"same": "as expected", "missing": "missing", "extra": "too much"}


@dataclass(slots=True)
class View:
    """What a reader of the sink sees: rows by key for an upsert sink, a multiset for others."""

    key: tuple[int, ...] | None
    rows: Counter[Row] = field(default_factory=Counter)
    by_key: dict[Row, Row] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, table: Table) -> "View":
        return cls(sink_key(table))

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if self.key is not None:
                self._upsert(change, tuple(change.row[i] for i in self.key))
            elif change.kind in ("+I", "+U"):
                self.rows[change.row] += 1
            else:
                self._retract(change)

    def contents(self) -> Counter[Row]:
        if self.key is not None:
            return Counter(self.by_key.values())
        return +self.rows

    def _upsert(self, change: Change, key: Row) -> None:
        if change.kind in ("+I", "+U"):
            self.by_key[key] = change.row
        else:
            self.by_key.pop(key, None)

    def _retract(self, change: Change) -> None:
        if self.rows[change.row] == 0:
            self.problems.append(f"retracts a row that is not there: {show(change)}")
        self.rows[change.row] -= 1


def sink_key(table: Table) -> tuple[int, ...] | None:
    """Positions of the key by which a reader of the sink folds; None where rows are retracted."""
    if table.connector != "upsert-kafka":
        return None
    names = [c.name for c in physical_columns(table)]
    return tuple(names.index(k) for k in table.primary_key)


@dataclass(frozen=True, slots=True)
class Compared:
    """A change that a step should have made, or has made; `mark` says which."""

    mark: Mark
    change: Change

    @property
    def text(self) -> str:
        return f"{_WORDS[self.mark]}: {show(self.change)}"


def compared(table: Table, expected: Sequence[Change], actual: Sequence[Change]) -> list[Compared]:
    """What a step has made beside what it should have, as far as the sink's records can tell.

    A row that is too much stands below the missing one that is most like it.
    """
    wanted, found = _net(table, expected), _net(table, actual)
    extra = list((found - wanted).elements())
    rows: list[Compared] = []
    for change, count in wanted.items():
        same = min(count, found[change])
        rows += [Compared("same", change)] * same
        for _ in range(count - same):
            rows.append(Compared("missing", change))
            if (like := _most_like(change, extra)) is not None:
                extra.remove(like)
                rows.append(Compared("extra", like))
    return rows + [Compared("extra", change) for change in extra]


def net_difference(table: Table, expected: Sequence[Change], actual: Sequence[Change]) -> list[str]:
    """What is missing or too much in one step, in words."""
    return [row.text for row in compared(table, expected, actual) if row.mark != "same"]


def _most_like(change: Change, others: Sequence[Change]) -> Change | None:
    def likeness(other: Change) -> int:
        return sum(a == b for a, b in zip(change.row, other.row, strict=True))

    best = max(others, key=likeness, default=None)
    return best if best is not None and likeness(best) > 0 else None


def view_difference(expected: View, actual: View) -> list[str]:
    wanted, found = expected.contents(), actual.contents()
    missing = [f"missing: {show_row(row)}" for row in (wanted - found).elements()]
    extra = [f"too much: {show_row(row)}" for row in (found - wanted).elements()]
    return missing + extra


def _net(table: Table, changes: Iterable[Change]) -> Counter[Change]:
    """Of an upsert sink the last change per key; with row kinds where the sink keeps them."""
    key = sink_key(table)
    if key is not None:
        last = {tuple(change.row[i] for i in key): change for change in changes}
        return Counter(_keyed(key, change) for change in last.values())
    if keeps_kinds(table):
        return Counter(changes)
    sums: Counter[Row] = Counter()
    for change in changes:
        sums[change.row] += 1 if change.kind in ("+I", "+U") else -1
    return Counter({Change("+I" if n > 0 else "-D", row): abs(n) for row, n in sums.items() if n})


def _keyed(key: tuple[int, ...], change: Change) -> Change:
    """Of a deletion only the key counts."""
    if change.kind in ("+I", "+U"):
        return Change("+U", change.row)
    return Change("-D", tuple(v if i in key else None for i, v in enumerate(change.row)))


def show(change: Change) -> str:
    return f"{change.kind} {show_row(change.row)}"


def show_row(row: Row) -> str:
    return "(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")"

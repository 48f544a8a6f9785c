"""Folds changes into the rows that a sink's reader sees, and compares expected with actual."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from spark_jobs.scenario.records import Change, keeps_kinds, physical_columns
from spark_jobs.scenario.values import Row, Value
from spark_jobs.sql.catalog import Table

RowMark: TypeAlias = Literal["same", "missing", "extra"]
_WORDS: dict[RowMark, str] = {"same": "as expected", "missing": "missing", "extra": "unexpected"}


@dataclass(slots=True)
class SinkView:
    """The rows that a reader of a sink sees: by key for an upsert sink, else with duplicates."""

    key: tuple[int, ...] | None
    rows: Counter[Row] = field(default_factory=Counter)
    by_key: dict[Row, Row] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, table: Table) -> "SinkView":
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
            self.problems.append(f"retracts a row that does not exist: {change_text(change)}")
        self.rows[change.row] -= 1


def sink_key(table: Table) -> tuple[int, ...] | None:
    """Column positions of an upsert sink's key; None for a sink that retracts rows."""
    if table.connector != "upsert-kafka":
        return None
    names = [c.name for c in physical_columns(table)]
    return tuple(names.index(k) for k in table.primary_key)


@dataclass(frozen=True, slots=True)
class Compared:
    """A change that a step was expected to make, made, or both; `mark` says which."""

    mark: RowMark
    change: Change

    @property
    def text(self) -> str:
        return f"{_WORDS[self.mark]}: {change_text(self.change)}"


def compared(table: Table, expected: Sequence[Change], actual: Sequence[Change]) -> list[Compared]:
    """Compare the changes of a step, as far as the sink's records can show them.

    An extra change follows the missing one that is most like it.
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
    """What is missing or unexpected in one step, as text."""
    return [row.text for row in compared(table, expected, actual) if row.mark != "same"]


def _most_like(change: Change, others: Sequence[Change]) -> Change | None:
    def likeness(other: Change) -> int:
        return sum(a == b for a, b in zip(change.row, other.row, strict=True))

    best = max(others, key=likeness, default=None)
    return best if best is not None and likeness(best) > 0 else None


def view_difference(expected: SinkView, actual: SinkView) -> list[str]:
    wanted, found = expected.contents(), actual.contents()
    missing = [f"missing: {row_text(row)}" for row in (wanted - found).elements()]
    extra = [f"unexpected: {row_text(row)}" for row in (found - wanted).elements()]
    return missing + extra


def _net(table: Table, changes: Iterable[Change]) -> Counter[Change]:
    """What is left of a step's changes after those that cancel out, as the sink's records show it.

    A sink with a key leaves the last change of each key; one whose records have row kinds leaves
    all; any other, for each row, how many times it was inserted minus how many times deleted.
    """
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
    """Only the key of a deletion is compared, and an insertion equals an update."""
    if change.kind in ("+I", "+U"):
        return Change("+U", change.row)
    return Change("-D", tuple(v if i in key else None for i, v in enumerate(change.row)))


def change_text(change: Change) -> str:
    return f"{change.kind} {row_text(change.row)}"


def row_text(row: Row) -> str:
    return "(" + ", ".join(map(_value_text, row)) + ")"


def _value_text(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case Decimal():
            return f"{value:f}"
        case tuple():
            return row_text(value)
        case _:
            return str(value)

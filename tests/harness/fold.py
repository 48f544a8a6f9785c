"""Folds changes into the rows they leave behind, and tells two results apart."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spark_jobs.sql.catalog import Table
from tests.harness.records import Change, keeps_kinds, sink_columns
from tests.harness.values import Row


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
    names = [c.name for c in sink_columns(table) if c.kind == "physical"]
    return tuple(names.index(k) for k in table.primary_key)


def net_difference(table: Table, expected: Sequence[Change], actual: Sequence[Change]) -> list[str]:
    """What is missing or too much in one step, as far as the sink's records can tell."""
    key = sink_key(table)
    if key is not None:
        return _difference(_last_by_key(key, expected), _last_by_key(key, actual))
    if keeps_kinds(table):
        return _difference(Counter(map(show, expected)), Counter(map(show, actual)))
    return _difference(_net(expected), _net(actual))


def view_difference(expected: View, actual: View) -> list[str]:
    wanted, found = expected.contents(), actual.contents()
    missing = [f"missing: {show_row(row)}" for row in (wanted - found).elements()]
    extra = [f"too much: {show_row(row)}" for row in (found - wanted).elements()]
    return missing + extra


def _last_by_key(key: tuple[int, ...], changes: Iterable[Change]) -> Counter[str]:
    last: dict[Row, str] = {}
    for change in changes:
        of_key = tuple(change.row[i] for i in key)
        add = change.kind in ("+I", "+U")
        last[of_key] = f"+U {show_row(change.row)}" if add else f"-D {show_row(of_key)}"
    return Counter(last.values())


def _net(changes: Iterable[Change]) -> Counter[str]:
    """Signed: `+ row` or `- row`, as often as it remains."""
    sums: Counter[Row] = Counter()
    for change in changes:
        sums[change.row] += 1 if change.kind in ("+I", "+U") else -1
    signed = {f"{'+' if n > 0 else '-'} {show_row(row)}": abs(n) for row, n in sums.items() if n}
    return Counter(signed)


def _difference(expected: Counter[str], actual: Counter[str]) -> list[str]:
    missing = [f"missing: {text}" for text in (expected - actual).elements()]
    return missing + [f"too much: {text}" for text in (actual - expected).elements()]


def show(change: Change) -> str:
    return f"{change.kind} {show_row(change.row)}"


def show_row(row: Row) -> str:
    return "(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")"

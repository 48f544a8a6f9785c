"""What a table contained at the time of another row: by event time, and by the steps of the run."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from spark_jobs.scenario.values import Row
from tests.differential.tables import ADDS, Change, Contents, Table

_END = datetime(9999, 1, 1)
LAST_STEP = 1_000_000_000


@dataclass(slots=True)
class Versions:
    """The row that each key had at each time; None from the time of a row that was deleted."""

    table: Table
    _by_key: dict[Row, dict[datetime, Row | None]] = field(default_factory=dict)

    def apply(self, change: Change, before: Contents) -> None:
        """`before`: the contents before the change. A deletion has the time of the key's row."""
        at = self.table.rowtime
        if at is None:
            return
        versions = self._by_key.setdefault(self.table.identity(change.row), {})
        if change.kind in ADDS:
            versions[change.row[at]] = change.row
        elif change.kind == "-D" and (stored := before.stored(change.row)) is not None:
            versions[stored[at]] = None

    def rows(self) -> Iterator[Row]:
        """The versions, each with the times from which and until which it is valid."""
        for versions in self._by_key.values():
            times = [*sorted(versions), _END]
            for since, until in pairwise(times):
                if (row := versions[since]) is not None:
                    yield (*row, since, until)


@dataclass(slots=True)
class Stays:
    """How long each row stayed in a table, in steps."""

    _present: dict[Row, list[int]] = field(default_factory=dict)
    _ended: list[Row] = field(default_factory=list)

    def after(self, step: int, rows: list[Row]) -> None:
        now = Counter(rows)
        for row in [*self._present]:
            begun = self._present[row]
            while len(begun) > now[row]:
                self._ended.append((*row, begun.pop(), step))
        for row, count in now.items():
            begun = self._present.setdefault(row, [])
            begun += [step] * (count - len(begun))

    def rows(self) -> Iterator[Row]:
        yield from self._ended
        for row, begun in self._present.items():
            yield from ((*row, step, LAST_STEP) for step in begun)

    def latest(self) -> list[Row]:
        """The rows that are there, each with the step in which it came."""
        return [(*row, step) for row, begun in self._present.items() for step in begun]

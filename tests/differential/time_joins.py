"""Random interval and temporal joins of two relations that have times."""

import random
from dataclasses import dataclass

from tests.differential.expressions import Expressions, Scope
from tests.differential.tables import ROWTIME, Table

_LENGTHS = ("'0' SECOND", "'1' SECOND", "'3' SECOND", "'10' SECOND", "'1' MINUTE")
_LONG = ("'20' MINUTE", "'1' HOUR", "'3' HOUR")
_KINDS = ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass(frozen=True, slots=True)
class TimeJoins:
    """`left` and `right`: the columns of the two relations."""

    rng: random.Random
    left: Scope
    right: Scope

    def interval(self, equalities: list[str]) -> tuple[str, str]:
        """JOIN or an outer join and its condition; no condition if a side has no event time."""
        times = [[c.text for c in side if c.type == ROWTIME] for side in (self.left, self.right)]
        if not all(times):
            return "", ""
        a, b = (self.rng.choice(side) for side in times)
        if self.rng.random() < 0.5:
            a, b = b, a
        parts = [*equalities, self._bounds(a, b)]
        if self.rng.random() < 0.2:
            parts.append(Expressions(self.rng).predicate((*self.left, *self.right), 1))
        self.rng.shuffle(parts)
        return self.rng.choice(_KINDS), " AND ".join(parts)

    def _bounds(self, a: str, b: str) -> str:
        lower, upper = self._length(), self._length()
        match self.rng.randrange(8):
            case 0:
                return f"{a} = {b}"
            case 1:
                return f"{a} BETWEEN {b} AND {b} + INTERVAL {upper}"
            case 2:
                return f"{a} BETWEEN {b} - INTERVAL {lower} AND {b}"
            case 3:
                return f"{a} > {b} - INTERVAL {lower} AND {a} < {b} + INTERVAL {upper}"
            case 4:
                return f"{b} - INTERVAL {lower} <= {a} AND {b} + INTERVAL {upper} > {a}"
            case 5:
                return f"{a} BETWEEN {b} + INTERVAL {lower} AND {b} + INTERVAL {upper}"
            case _:
                return f"{a} BETWEEN {b} - INTERVAL {lower} AND {b} + INTERVAL {upper}"

    def _length(self) -> str:
        return self.rng.choice(_LENGTHS if self.rng.random() < 0.6 else _LONG)

    def temporal(self, table: Table, alias: str, clocks: tuple[str, ...]) -> str | None:
        """A join with the row that `table` has at the time of the left row; None without times.

        By processing time the left rows come from tables that only get rows. What an updated left
        row meets depends on when its update is read.
        """
        times = [c.text for c in self.left if c.type == ROWTIME]
        word = self.rng.choice(["JOIN", "LEFT JOIN"])
        as_of = f"{word} {table.name} FOR SYSTEM_TIME AS OF"
        by_time = table.is_versioned and times
        if clocks and table.mode != "view" and (not by_time or self.rng.random() < 0.5):
            pairs = self._equalities([c.text for c in self.right])
            condition = self.rng.choice(pairs) if pairs else None
            as_of = f"{as_of} {self.rng.choice(clocks)} AS {alias} ON"
        elif by_time:
            condition = self._of_key([f"{alias}.{table.columns[i][0]}" for i in table.key])
            as_of = f"{as_of} {self.rng.choice(times)} AS {alias} ON"
        else:
            return None
        if condition is None:
            return None
        if self.rng.random() < 0.25:
            condition += f" AND {Expressions(self.rng).predicate((*self.left, *self.right), 1)}"
        return f"{as_of} {condition}"

    def _equalities(self, columns: list[str]) -> list[str]:
        return [
            f"({a.text} = {b.text})"
            for b in self.right
            for a in self.left
            if b.text in columns and a.type == b.type != ROWTIME
        ]

    def _of_key(self, columns: list[str]) -> str | None:
        """Equalities for all columns of the key; None if one has none of its type."""
        parts = []
        for column in columns:
            pairs = self._equalities([column])
            if not pairs:
                return None
            parts.append(self.rng.choice(pairs))
        return " AND ".join(parts)

"""Random subqueries: as conditions of WHERE, and as values in any expression."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.expressions import Expressions, Scope
from tests.differential.tables import ROWTIME

_COUNTED = ("> 0", "= 0", ">= 1", "< 1", "> 1")


@dataclass(frozen=True, slots=True)
class Subqueries:
    """`joined` makes any condition between two scopes, `equal` equalities alone, if there are."""

    rng: random.Random
    joined: Callable[[Scope, Scope], str]
    equal: Callable[[Scope, Scope], list[str]]

    def condition(self, outer: Scope, text: str, inner: Scope) -> str:
        """What WHERE may have; `text` is the FROM of the subquery, `inner` its columns."""
        match self.rng.randrange(8):
            case 0 | 1:
                word = self.rng.choice(["EXISTS", "NOT EXISTS"])
                where = f" WHERE {self.joined(outer, inner)}"
                return f"{word} ({_selected('1', text, where)})"
            case 2 | 3:
                return self._in(outer, text, inner)
            case 4:
                return self._compared(outer, text, inner)
            case 5 | 6:
                return self._below(outer, text, inner)
            case _:
                counted = _selected("COUNT(*)", text, self._correlated(outer, inner, 1))
                return f"({counted}) {self.rng.choice(_COUNTED)}"

    def value(self, outer: Scope, text: str, inner: Scope) -> tuple[str, str]:
        """An element of a select list, and its type."""
        usable = [c for c in inner if c.type not in (ROWTIME, "BOOLEAN")]
        where = self._correlated(outer, inner, 0.8)
        roll = self.rng.random()
        if roll < 0.35 and usable:
            column, call = self.rng.choice(usable), self.rng.choice(["MIN", "MAX"])
            return f"({_selected(f'{call}({column.text})', text, where)})", column.type
        if roll < 0.6 and where:
            return f"({_selected('COUNT(*)', text, where)})", "BIGINT"
        return f"CASE WHEN {self._truth(outer, text, inner)} THEN 1 ELSE 0 END", "INT"

    def of_type(self, kind: str, text: str, inner: Scope) -> str | None:
        """The least or the greatest value of a column of this type, if there is one."""
        usable = [c for c in inner if c.type == kind != ROWTIME]
        if not usable:
            return None
        call = self.rng.choice(["MIN", "MAX"])
        return f"({_selected(f'{call}({self.rng.choice(usable).text})', text)})"

    def _below(self, outer: Scope, text: str, inner: Scope) -> str:
        """A subquery below OR or NOT."""
        other, truth = Expressions(self.rng).predicate(outer, 1), self._truth(outer, text, inner)
        match self.rng.randrange(3):
            case 0:
                return f"({other} OR {truth})"
            case 1:
                return f"({other} OR NOT ({truth}))"
            case _:
                return f"(CASE WHEN {other} THEN NOT ({truth}) ELSE {truth} END)"

    def _truth(self, outer: Scope, text: str, inner: Scope) -> str:
        where = self._correlated(outer, inner, 0.7)
        if self.rng.random() < 0.5 or (pair := self._pair(outer, inner)) is None:
            word = self.rng.choice(["EXISTS", "NOT EXISTS"])
            return f"{word} ({_selected('1', text, where)})"
        word = self.rng.choice(["IN", "NOT IN"])
        return f"{pair[0]} {word} ({_selected(pair[1], text, where)})"

    def _correlated(self, outer: Scope, inner: Scope, chance: float) -> str:
        """A WHERE of equalities with the outer query, or none."""
        equal = self.equal(outer, inner) if self.rng.random() < chance else []
        return f" WHERE {' AND '.join(equal)}" if equal else ""

    def _compared(self, outer: Scope, text: str, inner: Scope) -> str:
        """A comparison with an aggregate, of all rows or of those with an equal column."""
        pair = self._pair(outer, inner)
        if pair is None:
            return "TRUE"
        where = ""
        if self.rng.random() < 0.5 and (equal := self._pair(outer, inner)) is not None:
            where = f" WHERE {equal[1]} = {equal[0]}"
        op, call = self.rng.choice([">", "=", "<="]), self.rng.choice(["MIN", "MAX"])
        return f"{pair[0]} {op} ({_selected(f'{call}({pair[1]})', text, where)})"

    def _in(self, outer: Scope, text: str, inner: Scope) -> str:
        pair = self._pair(outer, inner)
        if pair is None:
            return "TRUE"
        word = self.rng.choice(["IN", "IN", "NOT IN"])
        where = ""
        if self.rng.random() < 0.4:
            where = f" WHERE {Expressions(self.rng).predicate(inner, 1)}"
        second = self._pair(outer, inner)
        if second is not None and word == "IN" and self.rng.random() < 0.3:
            columns = f"{pair[1]}, {second[1]}"
            left = f"({pair[0]}, {second[0]})"
            return f"{left} IN ({_selected(columns, text, where)})"
        return f"{pair[0]} {word} ({_selected(pair[1], text, where)})"

    def _pair(self, outer: Scope, inner: Scope) -> tuple[str, str] | None:
        pairs = [(a.text, b.text) for a in outer for b in inner if a.type == b.type != ROWTIME]
        return self.rng.choice(pairs) if pairs else None


def _selected(what: str, source: str, where: str = "") -> str:
    return f"SELECT {what} FROM {source}{where}"  # noqa: S608 - of names made here

"""Random expressions that have no parentheses where Flink's precedences make them needless.

dialect.py gives DuckDB the parentheses that are left out. Left out by the generator, not by the
engines: IS DISTINCT FROM, and predicates beside IS and NOT, where grouping is not by precedence
alone (spark_jobs/sql/parse/grouping.py).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

OR, AND, NOT, IS, COMPARISON, PREDICATE, SUM, PRODUCT, SIGN, ATOM = (
    22, 24, 26, 28, 30, 32, 40, 60, 80, 100,
)  # fmt: skip
_LITERALS = {"INT": ("0", "1", "2", "7"), "STRING": ("''", "'a'", "'b'", "'ab'")}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_TESTS = ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE")


@dataclass(frozen=True, slots=True)
class Grouped:
    """A text and how strongly its outermost operator holds its operands."""

    text: str
    strength: int

    def beside(self, strength: int) -> str:
        """The text as an operand of an operator that takes operands of at least this strength."""
        if self.strength == ATOM:
            return self.text
        return f"⟦{self.text}⟧" if self.strength >= strength else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Flat:
    """`columns`: texts of columns by type, INT, STRING and BOOLEAN."""

    rng: random.Random
    columns: dict[str, Sequence[str]]

    def value(self, kind: str, depth: int) -> Grouped:
        if kind == "BOOLEAN":
            return self.condition(depth)
        if depth <= 0 or self.rng.random() < 0.3:
            return self._atom(kind)
        if kind == "STRING":
            return self._infix("||", PRODUCT, kind, depth)
        match self.rng.randrange(6):
            case 0:
                column = self._atom(kind)
                return Grouped(f"- {column.text}", SIGN)
            case 1:
                left = self.value(kind, depth - 1).beside(PRODUCT)
                return Grouped(f"{left} {self.rng.choice(['/ 2', '% 3'])}", PRODUCT)
            case 2 | 3:
                return self._infix("*", PRODUCT, kind, depth)
            case _:
                return self._infix(self.rng.choice("+-"), SUM, kind, depth)

    def condition(self, depth: int) -> Grouped:
        if depth <= 0:
            booleans = self.columns.get("BOOLEAN", ())
            if booleans and self.rng.random() < 0.3:
                return Grouped(self.rng.choice(booleans), ATOM)
            return self._comparison(depth)
        match self.rng.randrange(9):
            case 0 | 1:
                return self._infix("AND", AND, "BOOLEAN", depth)
            case 2 | 3:
                return self._infix("OR", OR, "BOOLEAN", depth)
            case 4:
                return Grouped(f"NOT {self.condition(depth - 1).beside(NOT)}", NOT)
            case 5:
                return self._is(depth)
            case 6:
                return self._predicate(depth)
            case 7:
                return self._infix(self.rng.choice(["=", "<>"]), COMPARISON, "BOOLEAN", depth)
            case _:
                return self._comparison(depth)

    def _comparison(self, depth: int) -> Grouped:
        kind = self.rng.choice(["INT", "INT", "STRING"])
        left, right = (self.value(kind, depth).beside(SUM) for _ in range(2))
        return Grouped(f"{left} {self.rng.choice(_COMPARISONS)} {right}", COMPARISON)

    def _is(self, depth: int) -> Grouped:
        test = self.rng.choice(_TESTS)
        kind = self.rng.choice(["INT", "STRING", "BOOLEAN"]) if "NULL" in test else "BOOLEAN"
        value = self.value(kind, depth - 1)
        least = COMPARISON if value.strength != PREDICATE else ATOM
        return Grouped(f"{value.beside(least)} {test}", IS)

    def _predicate(self, depth: int) -> Grouped:
        word = self.rng.choice(["", "", "NOT "])
        kind = self.rng.choice(["INT", "STRING"])
        value = self.value(kind, depth - 1).beside(SUM)
        match self.rng.randrange(3):
            case 0:
                low, high = (self.value(kind, depth - 1).beside(SUM) for _ in range(2))
                return Grouped(f"{value} {word}BETWEEN {low} AND {high}", PREDICATE)
            case 1 if kind == "STRING":
                pattern = self.rng.choice(["a%", "%b", "_", "%a%"])
                return Grouped(f"{value} {word}LIKE '{pattern}'", PREDICATE)
            case _:
                listed = ", ".join(self.rng.choice(_LITERALS[kind]) for _ in range(2))
                return Grouped(f"{value} {word}IN ({listed})", PREDICATE)

    def _infix(self, word: str, strength: int, kind: str, depth: int) -> Grouped:
        """Of equal operators the first takes its operands first."""
        left, right = self.value(kind, depth - 1), self.value(kind, depth - 1)
        text = f"{left.beside(strength)} {word} {right.beside(strength + 1)}"
        return Grouped(text, strength)

    def _atom(self, kind: str) -> Grouped:
        columns = self.columns.get(kind, ())
        if columns and self.rng.random() < 0.75:
            return Grouped(self.rng.choice(columns), ATOM)
        return Grouped(self.rng.choice(_LITERALS[kind]), ATOM)

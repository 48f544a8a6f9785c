"""Typed random expressions that mean the same in Flink SQL and in DuckDB.

Generated around, because the two differ by definition: division by anything but a whole constant,
rounding (DOUBLE or DECIMAL to INT), NaN, negative zero and infinity, GREATEST, LEAST and CONCAT
with NULL, texts of BOOLEAN, DOUBLE and TIMESTAMP, days of the week, a global aggregate of no rows
(Flink has no row for it: such a query gets HAVING COUNT(*) > 0).
"""

import random
from dataclasses import dataclass

from tests.differential.precedence import Flat
from tests.differential.tables import ROWTIME

TYPES = ("INT", "BIGINT", "STRING", "BOOLEAN", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP")
NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL")
_LITERALS = {
    "INT": ["0", "1", "2", "-1", "7"],
    "BIGINT": ["CAST(1 AS BIGINT)", "10000000000"],
    "STRING": ["''", "'a'", "'b'", "'it''s'", "'ab'"],
    "BOOLEAN": ["TRUE", "FALSE"],
    "DOUBLE": ["CAST(1 AS DOUBLE)", "CAST(0.5 AS DOUBLE)"],
    "DECIMAL": ["1.00", "0.25", "2.5"],
    "DATE": ["DATE '2024-02-29'", "DATE '2024-01-01'"],
    "TIMESTAMP": ["TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-31 23:59:59.999'"],
}
_TYPE_NAMES = {"DECIMAL": "DECIMAL(10, 2)", "TIMESTAMP": "TIMESTAMP(3)"}
# {T} is an expression of the type; a form is taken only if no literal alone would fill it
_FORMS: dict[str, list[str]] = {
    "INT": [
        "({INT} + {INT})",
        "({INT} - {INT})",
        "({INT} * {INT})",
        "({INT} / 2)",
        "({INT} % 3)",
        "ABS({INT})",
        "(- {INT})",
        "CHAR_LENGTH({STRING})",
        "SIGN({INT})",
        "MOD({INT}, 2)",
        "POSITION('a' IN {STRING})",
        "INSTR({STRING}, 'b')",
        "GREATEST(COALESCE({INT}, 0), 1)",
        "CAST(CAST({INT} AS STRING) AS INT)",
        "IFNULL({INT}, {INT})",
        "CASE {INT} WHEN {INT} THEN {INT} WHEN 2 THEN {INT} ELSE {INT} END",
    ],
    "BIGINT": [
        "CAST({INT} AS BIGINT)",
        "({BIGINT} + {INT})",
        "({BIGINT} - {BIGINT})",
        "EXTRACT(YEAR FROM {DATE})",
        "EXTRACT(MONTH FROM {TIMESTAMP})",
        "({BIGINT} / 3)",
        "({BIGINT} % 2)",
        "EXTRACT(DAY FROM {DATE})",
        "EXTRACT(HOUR FROM {TIMESTAMP})",
    ],
    "STRING": [
        "({STRING} || {STRING})",
        "UPPER({STRING})",
        "LOWER({STRING})",
        "TRIM({STRING})",
        "SUBSTRING({STRING}, 1, 1)",
        "SUBSTRING({STRING}, 2)",
        "REPLACE({STRING}, 'a', 'zz')",
        "REVERSE({STRING})",
        "CAST({INT} AS STRING)",
        "CAST({BIGINT} AS STRING)",
        "CAST({DATE} AS STRING)",
        "LPAD({STRING}, 3, '*')",
        "RPAD({STRING}, 2, '-')",
        "LEFT({STRING}, 1)",
        "RIGHT({STRING}, 1)",
        "REPEAT({STRING}, 2)",
        "MD5({STRING})",
        "CONCAT(COALESCE({STRING}, ''), '/', COALESCE({STRING}, '-'))",
    ],
    "DOUBLE": [
        "({DOUBLE} + {DOUBLE})",
        "({DOUBLE} + {INT})",
        "CAST({INT} AS DOUBLE)",
        "CAST({DECIMAL} AS DOUBLE)",
        "({DOUBLE} - {DOUBLE})",
    ],
    "DECIMAL": [
        "({DECIMAL} + {DECIMAL})",
        "({DECIMAL} - {INT})",
        "({DECIMAL} * 2)",
        "CAST({INT} AS DECIMAL(10, 2))",
        "ABS({DECIMAL})",
        "({DECIMAL} * 0.5)",
        "(- {DECIMAL})",
        "LEAST(COALESCE({DECIMAL}, 0.00), 1.00)",
    ],
    "DATE": [
        "CAST(({DATE} + INTERVAL '1' DAY) AS DATE)",
        "CAST(({DATE} + INTERVAL '1' MONTH) AS DATE)",
        "CAST({TIMESTAMP} AS DATE)",
    ],
    "TIMESTAMP": [
        "CAST({DATE} AS TIMESTAMP(3))",
        "({TIMESTAMP} + INTERVAL '1' DAY)",
        "({TIMESTAMP} - INTERVAL '2' HOUR)",
    ],
}
_COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


@dataclass(frozen=True, slots=True)
class Column:
    """How an expression refers to a column, and the name of its type."""

    text: str
    type: str


Scope = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Expressions:
    """Random expressions over the columns of a scope."""

    rng: random.Random

    def any(self, scope: Scope) -> Column:
        """A column, or an expression with one in it."""
        usable = [c for c in scope if c.type != ROWTIME]
        if self.rng.random() < 0.6 or not usable:
            return self.rng.choice(scope)
        kind = self.rng.choice(usable).type
        return Column(self.of(kind, scope, 2), kind)

    def of(self, kind: str, scope: Scope, depth: int) -> str:
        if kind == "BOOLEAN" and depth > 0:
            return f"({self.predicate(scope, depth - 1)})"
        roll = self.rng.random()
        if depth > 0 and kind in ("INT", "STRING") and roll > 0.95:
            return f"({self._flat(scope).value(kind, depth).text})"
        if depth > 0 and _FORMS.get(kind) and roll < 0.45:
            return self._filled(self.rng.choice(_FORMS[kind]), scope, depth - 1)
        if depth > 0 and roll < 0.65:
            return self._general(kind, scope, depth - 1)
        columns = [c.text for c in scope if c.type == kind]
        if columns and self.rng.random() < 0.8:
            return self.rng.choice(columns)
        return self.literal(kind)

    def literal(self, kind: str) -> str:
        if self.rng.random() < 0.05:
            return f"CAST(NULL AS {_TYPE_NAMES.get(kind, kind)})"
        return self.rng.choice(_LITERALS[kind])

    def constant(self, kind: str) -> str:
        """A literal that is not NULL."""
        return self.rng.choice(_LITERALS[kind])

    def _general(self, kind: str, scope: Scope, depth: int) -> str:
        a, b = self.of(kind, scope, depth), self.of(kind, scope, depth)
        match self.rng.randrange(4):
            case 0:
                return f"COALESCE({a}, {b})"
            case 1:
                return f"NULLIF({a}, {b})"
            case 2:
                return f"CASE WHEN {self.predicate(scope, depth)} THEN {a} ELSE {b} END"
            case _:
                return f"CASE WHEN {self.predicate(scope, depth)} THEN {a} END"

    def _filled(self, form: str, scope: Scope, depth: int) -> str:
        for kind in TYPES:
            while f"{{{kind}}}" in form:
                form = form.replace(f"{{{kind}}}", self.of(kind, scope, depth), 1)
        return form

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        roll = self.rng.random()
        if depth > 0 and roll < 0.3:
            word = self.rng.choice(["AND", "OR"])
            parts = [self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)]
            return f"({parts[0]} {word} {parts[1]})"
        if depth > 0 and roll < 0.4:
            return f"(NOT ({self.predicate(scope, depth - 1)}))"
        if depth > 0 and roll < 0.55:
            return f"({self._flat(scope).condition(3).text})"
        usable = [c for c in scope if c.type != ROWTIME]
        if not usable:
            return "TRUE"
        column = self.rng.choice(usable)
        return self._test(column, scope, depth)

    def _flat(self, scope: Scope) -> Flat:
        kinds = ("INT", "STRING", "BOOLEAN")
        return Flat(self.rng, {k: [c.text for c in scope if c.type == k] for k in kinds})

    def _test(self, column: Column, scope: Scope, depth: int) -> str:
        match self.rng.randrange(7):
            case 0:
                return f"({column.text} IS {self.rng.choice(['', 'NOT '])}NULL)"
            case 1 if column.type == "BOOLEAN":
                word = self.rng.choice(["", " IS TRUE", " IS NOT TRUE", " IS FALSE"])
                return f"({column.text}{word})"
            case 1 if column.type == "STRING":
                pattern = self.rng.choice(["a%", "%b", "_", "%a%", ""])
                return f"({column.text} {self.rng.choice(['', 'NOT '])}LIKE '{pattern}')"
            case 2 if column.type != "BOOLEAN":
                low, high = self.constant(column.type), self.constant(column.type)
                return f"({column.text} {self._perhaps_not()}BETWEEN {low} AND {high})"
            case 3:
                values = ", ".join(self.literal(column.type) for _ in range(2))
                return f"({column.text} {self._perhaps_not()}IN ({values}))"
            case _:
                other = self.of(self._comparable(column.type), scope, depth)
                return f"({column.text} {self.rng.choice(_COMPARISONS)} {other})"

    def _perhaps_not(self) -> str:
        return self.rng.choice(["", "", "NOT "])

    def _comparable(self, kind: str) -> str:
        if kind in NUMBERS and self.rng.random() < 0.3:
            return self.rng.choice(NUMBERS)
        return kind

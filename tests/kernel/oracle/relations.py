"""Random queries as trees of relations: each knows its SQL, and its rows by nested loops.

Shares nothing with the planner or the machines: rows are dicts, NULL is None, a predicate is three
lines of Python beside its SQL.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = Any
Values: TypeAlias = dict[str, Value]
Tables: TypeAlias = Mapping[str, Sequence[Values]]

TYPES = {"id": "INT", "k": "INT", "j": "STRING", "v": "INT", "p": "STRING"}


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL text and what it says; true, or not."""

    sql: str
    holds: Callable[[Values], bool]


def equal(left: str, right: str, nulls_match: bool) -> Condition:
    def holds(row: Values) -> bool:
        return bool(row[left] == row[right] and (nulls_match or row[left] is not None))

    return Condition(f"{left} {'IS NOT DISTINCT FROM' if nulls_match else '='} {right}", holds)


def less(left: str, right: str) -> Condition:
    def holds(row: Values) -> bool:
        return row[left] is not None and row[right] is not None and bool(row[left] < row[right])

    return Condition(f"{left} < {right}", holds)


def above_one(column: str) -> Condition:
    return Condition(f"{column} > 1", lambda row: row[column] is not None and row[column] > 1)


def is_null(column: str) -> Condition:
    return Condition(f"{column} IS NULL", lambda row: row[column] is None)


def conjunction(conditions: Sequence[Condition]) -> Condition:
    return Condition(
        " AND ".join(c.sql for c in conditions), lambda row: all(c.holds(row) for c in conditions)
    )


@dataclass(frozen=True, slots=True)
class Base:
    """A table, or the UNION ALL of tables, under one prefix."""

    prefix: str
    tables: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        return [f"{self.prefix}_{name}" for name in TYPES]

    @property
    def sql(self) -> str:
        if self.tables == (self.prefix,):
            return self.prefix
        return f"({' UNION ALL '.join(map(self._renamed, self.tables))}) AS {self.prefix}"

    def _renamed(self, table: str) -> str:
        columns = ", ".join(f"{table}_{name} AS {self.prefix}_{name}" for name in TYPES)
        return f"SELECT {columns} FROM {table}"  # noqa: S608 - of names made here

    def rows(self, tables: Tables) -> Iterator[Values]:
        for table in self.tables:
            for row in tables[table]:
                yield {f"{self.prefix}_{name}": row[name] for name in TYPES}


@dataclass(frozen=True, slots=True)
class Joined:
    """`left kind JOIN right ON condition`."""

    kind: str
    left: "Base | Joined"
    right: Base
    on: Condition

    @property
    def columns(self) -> list[str]:
        return self.left.columns + self.right.columns

    @property
    def sql(self) -> str:
        return f"{self.left.sql} {self.kind.upper()} JOIN {self.right.sql} ON {self.on.sql}"

    def rows(self, tables: Tables) -> Iterator[Values]:
        lefts, rights = list(self.left.rows(tables)), list(self.right.rows(tables))
        matched: set[int] = set()
        for left in lefts:
            found = [n for n, right in enumerate(rights) if self.on.holds(left | right)]
            matched.update(found)
            yield from (left | rights[n] for n in found)
            if not found and self.kind in ("left", "full"):
                yield left | dict.fromkeys(self.right.columns)
        if self.kind in ("right", "full"):
            padding = dict.fromkeys(self.left.columns)
            yield from (padding | right for n, right in enumerate(rights) if n not in matched)


@dataclass(frozen=True, slots=True)
class Exists:
    """`WHERE [NOT] EXISTS (SELECT 1 FROM right WHERE condition)`."""

    negated: bool
    right: Base
    on: Condition

    @property
    def sql(self) -> str:
        word = "NOT EXISTS" if self.negated else "EXISTS"
        below = f"FROM {self.right.sql} WHERE {self.on.sql}"
        return f"{word} (SELECT 1 {below})"

    def keeps(self, row: Values, rights: Sequence[Values]) -> bool:
        return any(self.on.holds(row | right) for right in rights) != self.negated


@dataclass(frozen=True, slots=True)
class Aggregated:
    """Every kind of aggregate over one INT column, by group or over everything."""

    group: str | None
    argument: str

    COLUMNS = (("n", "BIGINT"), ("m", "BIGINT"), ("s", "INT"), ("lo", "INT"), ("hi", "INT"))

    @property
    def select(self) -> str:
        x = self.argument
        calls = f"COUNT(*) AS n, COUNT(DISTINCT {x}) AS m, SUM({x}) AS s, MIN({x}) AS lo"
        return f"{f'{self.group}, ' if self.group else ''}{calls}, MAX({x}) AS hi"

    def rows(self, rows: Sequence[Values]) -> Iterator[tuple[Value, ...]]:
        """No row for what has no rows, as for a global aggregate in a stream."""
        groups: dict[Value, list[Value]] = {}
        for row in rows:
            key = row[self.group] if self.group else None
            groups.setdefault(key, []).append(row[self.argument])
        for key, values in groups.items():
            known = [v for v in values if v is not None]
            sums = (sum(known), min(known), max(known)) if known else (None, None, None)
            head = (key,) if self.group else ()
            yield (*head, len(values), len(set(known)), *sums)


@dataclass(frozen=True, slots=True)
class Query:
    """`SELECT ... FROM chain WHERE ... [GROUP BY ...]`; `key` is that of an upsert sink."""

    chain: Base | Joined
    exists: Exists | None
    where: Condition | None
    aggregated: Aggregated | None
    key: str | None

    @property
    def columns(self) -> list[tuple[str, str]]:
        if self.aggregated is None:
            return [(name, _type(name)) for name in self.chain.columns]
        group = self.aggregated.group
        return [*([(group, _type(group))] if group else []), *Aggregated.COLUMNS]

    @property
    def sql(self) -> str:
        select = self.aggregated.select if self.aggregated else ", ".join(self.chain.columns)
        wheres = [c.sql for c in (self.where, self.exists) if c is not None]
        where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
        by = self.aggregated.group if self.aggregated else None
        rest = f"{self.chain.sql}{where}" + (f" GROUP BY {by}" if by else "")
        return f"SELECT {select} FROM {rest}"  # noqa: S608 - of names made here

    def rows(self, tables: Tables) -> Counter[tuple[Value, ...]]:
        found = list(self.chain.rows(tables))
        if self.where is not None:
            found = [row for row in found if self.where.holds(row)]
        if self.exists is not None:
            rights = list(self.exists.right.rows(tables))
            found = [row for row in found if self.exists.keeps(row, rights)]
        if self.aggregated is not None:
            return Counter(self.aggregated.rows(found))
        return Counter(tuple(row[name] for name in self.chain.columns) for row in found)


def _type(column: str) -> str:
    return TYPES[column.rpartition("_")[2]]

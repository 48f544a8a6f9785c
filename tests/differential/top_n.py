"""Top-N of a table, ordered by all of its columns: rows that are equal in all of them may tie."""

import random
from collections.abc import Sequence

from tests.differential.expressions import Column
from tests.differential.tables import ROWTIME, Table


def first_rows(rng: random.Random, table: Table) -> tuple[str, tuple[Column, ...]]:
    """A subquery, and its columns; with the row number, without it, or by LIMIT."""
    columns = [Column(n, "TIMESTAMP" if k == ROWTIME else k) for n, k in table.columns]
    names = [column.text for column in columns]
    last = rng.randint(1, 3)
    listed = ", ".join(names)
    if rng.random() < 0.25:
        limit = f"LIMIT {last}" + (f" OFFSET {rng.randint(1, 2)}" if rng.random() < 0.3 else "")
        ordered = _ordered(rng, names)
        text = f"SELECT {listed} FROM {table.name} ORDER BY {ordered} {limit}"  # noqa: S608
        return f"({text})", tuple(columns)
    by = rng.choice(names)
    over = f"PARTITION BY {by} ORDER BY {_ordered(rng, [n for n in names if n != by])}"
    inner = f"SELECT {listed}, ROW_NUMBER() OVER ({over}) AS rn FROM {table.name}"  # noqa: S608
    where = f"rn <= {last}" if rng.random() < 0.6 else f"rn BETWEEN {last} AND {last + 1}"
    if rng.random() < 0.5:
        columns.append(Column("rn", "BIGINT"))
        listed += ", rn"
    return f"(SELECT {listed} FROM ({inner}) WHERE {where})", tuple(columns)  # noqa: S608


def _ordered(rng: random.Random, names: Sequence[str]) -> str:
    mixed = rng.sample(names, len(names))
    return ", ".join(
        f"{name}{rng.choice(['', ' DESC'])} NULLS {rng.choice(['FIRST', 'LAST'])}" for name in mixed
    )

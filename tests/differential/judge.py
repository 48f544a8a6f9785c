"""DuckDB over what the inputs contain after each step."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb

from spark_jobs.scenario.values import Row
from tests.differential.tables import DATA_TYPES, Change, Contents, Table


class Judge:
    """One database for all cases; each begins with tables of its own."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        # `/` of integers is whole, as in Flink
        self._database.execute("SET integer_division = true")
        self._contents: dict[str, Contents] = {}
        self._made: list[str] = []

    def begin(self, tables: Sequence[Table], views: Sequence[tuple[str, str]]) -> None:
        for drop in reversed(self._made):
            self._database.execute(drop)
        self._contents = {table.name: Contents(table) for table in tables}
        self._made = []
        for table in tables:
            columns = ", ".join(f"{n} {DATA_TYPES[kind].sql()}" for n, kind in table.columns)
            self._database.execute(f"CREATE TABLE {table.name} ({columns})")
            self._made.append(f"DROP TABLE {table.name}")
        for name, text in views:
            self._database.execute(f"CREATE VIEW {name} AS {text}")
            self._made.append(f"DROP VIEW {name}")

    def apply(self, changes: Iterable[Change]) -> None:
        touched = set()
        for change in changes:
            self._contents[change.table].apply(change)
            touched.add(change.table)
        for name in sorted(touched):
            self._database.execute(f"TRUNCATE {name}")
            if rows := self._contents[name].rows:
                values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
                self._database.execute(" ".join(("INSERT INTO", name, "VALUES", values)))

    def answer(self, query: str) -> list[Row]:
        return self._database.execute(query).fetchall()


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return repr(value)

"""DuckDB over what the inputs contain after each step, and over what they contained before."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb

from spark_jobs.scenario.values import Row
from tests.differential.dialect import duckdb_text, view_of_versions
from tests.differential.history import Stays, Versions
from tests.differential.tables import DATA_TYPES, PROCTIME, Change, Contents, Table

# of Flink's functions; the first and the last value are asked for where all are the same
_MACROS = (
    "FIRST_VALUE(x) AS MIN(x)",
    "LAST_VALUE(x) AS MAX(x)",
    "ARRAY_JOIN(x, separator) AS "
    "CASE WHEN x IS NOT NULL THEN COALESCE(array_to_string(x, separator), '') END",
)


class Judge:
    """One database for all cases; each begins with tables of its own.

    Beside a table `t` are `t_steps` and, if it is versioned, `t_versions`: its rows with the steps,
    and with the times, from which and until which they are valid (dialect.py reads them). The
    processing time of a row is the number of the step in which it came.
    """

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        # `/` of integers is whole, as in Flink
        self._database.execute("SET integer_division = true")
        # DuckDB 2.0.0 loses rows where it evaluates a view once for both sides of `v JOIN v`, and
        # takes `HAVING SUM(x) <> 2` above a cross join for true by what it knows of x
        self._database.execute("SET disabled_optimizers = 'common_subplan,statistics_propagation'")
        for macro in _MACROS:
            self._database.execute(f"CREATE MACRO {macro}")
        self._contents: dict[str, Contents] = {}
        self._versions: dict[str, Versions] = {}
        self._stays: dict[str, Stays] = {}
        self._made: list[str] = []
        self._behind: set[str] = set()
        self._step = 0
        self._read = ""

    def begin(
        self, tables: Sequence[Table], views: Sequence[tuple[str, str]], query: str = ""
    ) -> None:
        """`query`: what will be asked, beside the views; histories are kept if it reads them."""
        for drop in reversed(self._made):
            self._database.execute(drop)
        self._contents = {table.name: Contents(table) for table in tables}
        self._versions = {table.name: Versions(table) for table in tables if table.is_versioned}
        self._stays = {table.name: Stays() for table in tables}
        self._step, self._behind = 0, set()
        self._made = []
        self._read = " ".join(duckdb_text(text) for text in (query, *(t for _, t in views)))
        for table in tables:
            self._make_tables(table)
        for name, text in views:
            self._make_view(name, duckdb_text(text))
            if (versions := view_of_versions(name, text)) is not None:
                self._make_view(*versions)

    def _make_view(self, name: str, text: str) -> None:
        self._database.execute(f"CREATE VIEW {name} AS {text}")
        self._made.append(f"DROP VIEW {name}")

    def _make_tables(self, table: Table) -> None:
        columns = [f"{n} {DATA_TYPES[kind].sql()}" for n, kind in table.columns]
        self._make(table.name, [*columns, *([f"{PROCTIME} INT"] if table.is_clocked else [])])
        self._make(f"{table.name}_steps", [*columns, "since INT", "until INT"])
        if table.is_versioned:
            times = ["since TIMESTAMP", "until TIMESTAMP"]
            self._make(f"{table.name}_versions", [*columns, *times])

    def _make(self, name: str, columns: list[str]) -> None:
        self._database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        self._made.append(f"DROP TABLE {name}")

    def apply(self, changes: Iterable[Change]) -> None:
        touched: set[str] = set()
        for change in changes:
            contents = self._contents[change.table]
            if contents.table.is_versioned:
                self._versions[change.table].apply(change, contents)
            contents.apply(change)
            touched.add(change.table)
        for name in sorted(touched):
            self._stays[name].after(self._step, self._contents[name].rows)
        self._behind |= touched
        self._step += 1

    def _fill_tables(self, name: str) -> None:
        contents, stays = self._contents[name], self._stays[name]
        self._fill(name, stays.latest() if contents.table.is_clocked else contents.rows)
        if f"{name}_steps" in self._read:
            self._fill(f"{name}_steps", [*stays.rows()])
        if name in self._versions and f"{name}_versions" in self._read:
            self._fill(f"{name}_versions", [*self._versions[name].rows()])

    def _fill(self, name: str, rows: Sequence[Row]) -> None:
        self._database.execute(f"TRUNCATE {name}")
        if rows:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            self._database.execute(" ".join(("INSERT INTO", name, "VALUES", values)))

    def answer(self, query: str) -> list[Row]:
        for name in sorted(self._behind):
            self._fill_tables(name)
        self._behind = set()
        text = duckdb_text(query)
        try:
            return self._database.execute(text).fetchall()
        except duckdb.InternalException:  # an assertion in its optimizer fails
            return self._unoptimized(text)

    def _unoptimized(self, text: str) -> list[Row]:
        self._database.execute("PRAGMA disable_optimizer")
        try:
            return self._database.execute(text).fetchall()
        finally:
            self._database.execute("PRAGMA enable_optimizer")


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

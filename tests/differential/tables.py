"""Input tables: random columns and changelogs, and the rows that a changelog leaves."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from spark_jobs.scenario.file import Kind
from spark_jobs.scenario.values import Row
from spark_jobs.sql.types.data_types import DataType

ADDS = ("+I", "+U")
ROWTIME = "ROWTIME"
_SERVERS = "'properties.bootstrap.servers' = 'localhost:9092'"
_FORMATS = {
    "append": "'connector' = 'kafka', 'format' = 'json'",
    "upsert": "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'",
    "retract": "'connector' = 'kafka', 'format' = 'changelog-json'",
    "debezium": "'connector' = 'kafka', 'format' = 'debezium-json'",
    "debezium-full": "'connector' = 'kafka', 'format' = 'debezium-json', "
    "'rejoin.debezium.replica-identity' = 'full'",
}
DATA_TYPES = {
    "INT": DataType("INT"),
    "BIGINT": DataType("BIGINT"),
    "STRING": DataType("STRING"),
    "BOOLEAN": DataType("BOOLEAN"),
    "DOUBLE": DataType("DOUBLE"),
    "DECIMAL": DataType("DECIMAL", precision=10, scale=2),
    "DATE": DataType("DATE"),
    "TIMESTAMP": DataType("TIMESTAMP", precision=3),
    ROWTIME: DataType("TIMESTAMP", precision=3),
}
# Doubles are binary fractions, so that their sums are exact in any order, and none is NaN.
_DOMAINS: dict[str, list[Any]] = {
    "INT": [-1, 0, 1, 2, 3],
    "BIGINT": [0, 1, 2, 3, 10_000_000_000],
    "STRING": ["", "a", "b", "ab", "B", "é", " x"],
    "BOOLEAN": [True, False],
    "DOUBLE": [-1.5, 0.0, 0.5, 1.0, 2.0],
    "DECIMAL": [Decimal(d) for d in ("-1.5", "0", "1", "2", "2.25")],
    "DATE": [date(2023, 12, 31), date(2024, 2, 29), date(2024, 3, 1)],
    "TIMESTAMP": [
        datetime(2024, 1, 1),
        datetime(2024, 1, 31, 23, 59, 59, 999000),
        datetime(1969, 12, 31, 12),
    ],
}
_START = datetime(2024, 1, 1)
_OPTIONAL = {
    "j": "STRING",
    "n": "BIGINT",
    "f": "BOOLEAN",
    "x": "DOUBLE",
    "d": "DECIMAL",
    "dt": "DATE",
    "ts": "TIMESTAMP",
}


@dataclass(frozen=True, slots=True)
class Table:
    """`key`: positions of the primary key. A column of type ROWTIME has the watermark."""

    name: str
    mode: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[int, ...] = ()

    @property
    def is_upsert(self) -> bool:
        """Whether changes carry no old rows, or none that is used."""
        return self.mode == "upsert" or (self.mode == "debezium" and bool(self.key))

    def ddl(self) -> str:
        lines = [f"{name} {DATA_TYPES[kind].sql()}" for name, kind in self.columns]
        times = [name for name, kind in self.columns if kind == ROWTIME]
        lines += [f"WATERMARK FOR {t} AS {t} - INTERVAL '1' DAY" for t in times]
        if self.key:
            names = ", ".join(self.columns[i][0] for i in self.key)
            lines.append(f"PRIMARY KEY ({names}) NOT ENFORCED")
        options = f"{_FORMATS[self.mode]}, 'topic' = '{self.name}', {_SERVERS}"
        return f"CREATE TABLE {self.name} (\n  {', '.join(lines)}\n) WITH ({options});"

    def identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key) or row


@dataclass(frozen=True, slots=True)
class Change:
    """A row that arrives."""

    table: str
    kind: Kind
    row: Row
    partition: int = 0


@dataclass(slots=True)
class Contents:
    """The rows of a table: by primary key, or with duplicates."""

    table: Table
    rows: list[Row] = field(default_factory=list)

    def takes(self, change: Change) -> bool:
        """Whether a changelog of the table may go on with this change."""
        never_null = [i for i, (_, kind) in enumerate(self.table.columns) if kind == ROWTIME]
        if any(change.row[i] is None for i in (*self.table.key, *never_null)):
            return False
        if self.table.is_upsert:
            return True
        if change.kind not in ADDS:
            return change.row in self.rows
        return not self.table.key or self.stored(change.row) is None

    def stored(self, row: Row) -> Row | None:
        same = self.table.identity(row)
        return next((r for r in self.rows if self.table.identity(r) == same), None)

    def apply(self, change: Change) -> None:
        if self.table.is_upsert:
            old = self.stored(change.row)
            if old is not None:
                self.rows.remove(old)
        elif change.kind not in ADDS:
            self.rows.remove(change.row)
        if change.kind in ADDS:
            self.rows.append(change.row)


Changes: TypeAlias = list[Change]


def random_table(name: str, rng: random.Random) -> Table:
    mode = rng.choice(["append", "append", "retract", "upsert", "upsert", "debezium"])
    optional = rng.sample(sorted(_OPTIONAL), rng.randint(2, 4))
    columns = [("id", "INT"), ("k", "INT"), *((c, _OPTIONAL[c]) for c in optional)]
    if mode == "append" and rng.random() < 0.5:
        columns.append(("rt", ROWTIME))
    keys: list[tuple[int, ...]] = [(0,), (0,), (0, 1), (1,)]
    if mode in ("retract", "debezium"):
        keys += [(), ()]
    key = () if mode == "append" else rng.choice(keys)
    if mode == "debezium" and key and rng.random() < 0.4:
        mode = "debezium-full"
    return Table(name, mode, tuple(columns), key)


class Changelog:
    """Writes the random changelog of one table; each call gives changes that stay together."""

    def __init__(self, table: Table, rng: random.Random) -> None:
        self._table = table
        self._rng = rng
        self._contents = Contents(table)
        self._nulls = rng.choice([0.0, 0.1, 0.1, 0.3])
        self._spread = rng.choice([2, 2, 3, 5])
        self._partitions = rng.choice([1, 3])
        self._times: set[datetime] = set()

    def next(self) -> Changes:
        changes = self._next()
        for change in changes:
            self._contents.apply(change)
        return changes

    def _next(self) -> Changes:
        rows, rng = self._contents.rows, self._rng
        action = "add" if self._table.mode == "append" or not rows else rng.choice(_ACTIONS)
        row = self._random_row()
        if action == "add":
            if not self._table.key and rows and rng.random() < 0.2:
                row = rng.choice(rows)
            old = self._contents.stored(row) if self._table.key else None
            return [self._change("+I", row)] if old is None else self._update(old, row)
        if action == "delete":
            if self._table.is_upsert and rng.random() < 0.2:
                return [self._change("-D", row)]
            return [self._change("-D", rng.choice(rows))]
        old = rng.choice(rows)
        return self._update(old, self._changed(old))

    def _update(self, old: Row, new: Row) -> Changes:
        if self._table.mode == "append":
            return []
        after = self._change("+U", new)
        if self._table.is_upsert:
            return [after]
        before = self._change("-U", old)
        return [before, after]

    def _changed(self, old: Row) -> Row:
        """Some columns anew, the primary key not."""
        new = self._random_row()
        keep = self._rng.choice([0.2, 0.8, 1.0])
        return tuple(
            o if i in self._table.key or self._rng.random() < keep else n
            for i, (o, n) in enumerate(zip(old, new, strict=True))
        )

    def _random_row(self) -> Row:
        columns = enumerate(self._table.columns)
        return tuple(self._value(kind, i in self._table.key) for i, (_, kind) in columns)

    def _value(self, kind: str, is_key: bool) -> Any:
        if kind == ROWTIME:
            return self._time()
        if not is_key and self._rng.random() < self._nulls:
            return None
        return self._rng.choice(_DOMAINS[kind][: self._spread])

    def _time(self) -> datetime:
        """No two rows have the same time, so that the last row of a key is one row."""
        while (time := _START + timedelta(seconds=self._rng.randrange(10_000))) in self._times:
            pass
        self._times.add(time)
        return time

    def _change(self, kind: Kind, row: Row) -> Change:
        """Changes of one row stay in order only within a partition."""
        is_pair = self._table.mode.startswith("debezium") and not self._table.key
        place = "" if is_pair else repr(self._table.identity(row))
        return Change(self._table.name, kind, row, sum(place.encode()) % self._partitions)


_ACTIONS = ("add", "add", "add", "update", "update", "delete")


def is_sound(tables: Iterable[Table], steps: Iterable[Iterable[Change]]) -> bool:
    """Whether these are still changelogs, after changes were left out."""
    contents = {table.name: Contents(table) for table in tables}
    for step in steps:
        before: Change | None = None
        for change in step:
            table = contents[change.table].table
            pair = table.mode.startswith("debezium") and not table.is_upsert
            if before is not None and (change.kind != "+U" or change.table != before.table):
                return False
            if pair and change.kind == "+U" and before is None:
                return False
            before = change if pair and change.kind == "-U" else None
            if not contents[change.table].takes(change):
                return False
            contents[change.table].apply(change)
        if before is not None:
            return False
    return True

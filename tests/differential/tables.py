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
PROCTIME = "pt"
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
STILL_S = 86_400
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
    """`key`: positions of the primary key. A column of type ROWTIME has the watermark.

    `delay_s`: how far the watermark is behind; by STILL_S, it reaches no row before the end.
    `is_clocked`: whether a computed column has the processing time.
    """

    name: str
    mode: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[int, ...] = ()
    delay_s: int = STILL_S
    is_clocked: bool = False

    @property
    def rowtime(self) -> int | None:
        """The position of the event time."""
        return next((i for i, (_, kind) in enumerate(self.columns) if kind == ROWTIME), None)

    @property
    def is_versioned(self) -> bool:
        return bool(self.key) and self.rowtime is not None

    @property
    def is_upsert(self) -> bool:
        """Whether changes carry no old rows, or none that is used."""
        return self.mode == "upsert" or (self.mode == "debezium" and bool(self.key))

    @property
    def watermark(self) -> tuple[str, str] | None:
        """The name of the event time and the expression of its watermark."""
        if self.rowtime is None:
            return None
        name = self.columns[self.rowtime][0]
        delay = "'1' DAY" if self.delay_s == STILL_S else f"'{self.delay_s}' SECOND"
        return name, f"{name} - INTERVAL {delay}"

    def ddl(self) -> str:
        lines = [f"{name} {DATA_TYPES[kind].sql()}" for name, kind in self.columns]
        if self.is_clocked:
            lines.append(f"{PROCTIME} AS PROCTIME()")
        if (watermark := self.watermark) is not None:
            lines.append(f"WATERMARK FOR {watermark[0]} AS {watermark[1]}")
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


_IDS = ("INT", "INT", "INT", "BIGINT", "STRING", "DECIMAL")
_JOIN_COLUMNS = ("INT", "INT", "INT", "BIGINT", "STRING", "DECIMAL", "DOUBLE")
_MODES = ("append", "append", "retract", "upsert", "upsert", "debezium")
# by table: rows with times, versions with times, and either
_TIMED_MODES = (("append",), ("upsert", "upsert", "retract", "debezium"), ("append", "upsert"))


def random_table(name: str, rng: random.Random, is_timed: bool = False) -> Table:
    """`is_timed`: likely to have times, and of the types that join the other such tables."""
    mode = rng.choice(_TIMED_MODES["abc".find(name)] if is_timed else _MODES)
    optional = rng.sample(sorted(_OPTIONAL), rng.randint(2, 4))
    types = ("INT", "INT") if is_timed else (rng.choice(_IDS), rng.choice(_JOIN_COLUMNS))
    columns = [("id", types[0]), ("k", types[1]), *((c, _OPTIONAL[c]) for c in optional)]
    keys: list[tuple[int, ...]] = [(0,), (0,), (0, 1), (1,)] if types[1] != "DOUBLE" else [(0,)]
    if mode in ("retract", "debezium") and not is_timed:
        keys += [(), ()]
    key = () if mode == "append" else rng.choice(keys)
    if mode == "debezium" and key and rng.random() < 0.4:
        mode = "debezium-full"
    if rng.random() < (0.9 if is_timed else 0.5 if mode == "append" else 0.15):
        columns.append(("rt", ROWTIME))
    delay = rng.choice([STILL_S, 0, 2, 10])
    clocked = mode == "append" and rng.random() < (0.6 if is_timed else 0.2)
    return Table(name, mode, tuple(columns), key, delay, clocked)


@dataclass(slots=True)
class EventClock:
    """The time of the events, in seconds; the tables of a case share it."""

    rng: random.Random
    now_s: int = 0

    def in_time(self, latest_s: int, delay_s: int, taken: set[int]) -> int:
        """A time that is new and ahead of a watermark at `latest_s` less `delay_s`."""
        self.now_s += self.rng.choice([0, 1, 1, 3])
        while True:
            first = max(0, latest_s - delay_s + 1)
            free = [s for s in range(first, self.now_s + 1) if s not in taken]
            if free:
                return self.rng.choice(free)
            self.now_s += 1


class Changelog:
    """Writes the random changelog of one table; each call gives changes that stay together."""

    def __init__(self, table: Table, rng: random.Random, clock: EventClock) -> None:
        self._table = table
        self._rng = rng
        self._clock = clock
        self._contents = Contents(table)
        self._nulls = rng.choice([0.0, 0.1, 0.1, 0.3])
        self._spread = rng.choice([2, 2, 3, 5])
        self._partitions = rng.choice([1, 3])
        self._times: set[int] = set()

    def next(self) -> Changes:
        changes = self._next()
        for change in changes:
            self._contents.apply(change)
        return changes

    def _next(self) -> Changes:
        rows, rng = self._contents.rows, self._rng
        action = "add" if self._table.mode == "append" or not rows else rng.choice(_ACTIONS)
        if action == "delete" and self._is_moving:  # its time may be behind the watermark
            action = "update"
        row = self._random_row()
        if action == "add":
            if not self._table.key and rows and not self._is_moving and rng.random() < 0.2:
                row = rng.choice(rows)
            old = self._contents.stored(row) if self._table.key else None
            return [self._change("+I", row)] if old is None else self._update(old, row)
        if action == "delete":
            if self._table.mode == "upsert" and rng.random() < 0.2:
                return [self._change("-D", row)]
            return [self._change("-D", rng.choice(rows))]
        old = rng.choice(rows)
        return self._update(old, self._changed(old))

    @property
    def _is_moving(self) -> bool:
        """Whether the watermark moves before the end; then every row has to be ahead of it."""
        return self._table.rowtime is not None and self._table.delay_s != STILL_S

    def _update(self, old: Row, new: Row) -> Changes:
        if self._table.mode == "append":
            return []
        after = self._change("+U", new)
        if self._table.is_upsert:
            return [after]
        before = self._change("-U", old)
        return [before, after]

    def _changed(self, old: Row) -> Row:
        """Some columns anew, the primary key not, a time that has to be ahead always."""
        new = self._random_row()
        keep = self._rng.choice([0.2, 0.8, 1.0])
        moves = {self._table.rowtime} if self._is_moving else set()
        return tuple(
            n if i in moves else o if i in self._table.key or self._rng.random() < keep else n
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
        """No two rows have the same time, so that the last row of a key is one row.

        The times of a versioned table grow: a tombstone takes that of the last row that came.
        """
        latest = max(self._times, default=-1)
        if self._is_moving:
            delay = 0 if self._table.key else self._table.delay_s
            second = self._clock.in_time(latest, delay, self._times)
        elif self._table.key:
            second = latest + self._rng.randint(1, 600)
        else:
            while (second := self._rng.randrange(10_000)) in self._times:
                pass
        self._times.add(second)
        return _START + timedelta(seconds=second)

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

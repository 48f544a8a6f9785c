"""Whole plans: random changelogs as real records through SQL, planner, readers, machines, writers.

What a machine's own oracle cannot show: state layouts chosen from keys, filters below the join,
normalisers in front of it, upserts whose join key moves, sinks that are keyed otherwise.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.harness.memory import MemoryBackend
from tests.harness.records import Encoder, decode
from tests.harness.runner import bind_scenario
from tests.harness.scenario import Input, Scenario, Step
from tests.kernel.oracle.check import Batch, Case, Emitted, Event, cut_into_batches, random_restarts
from tests.kernel.oracle.regular import (
    COLUMNS,
    ID,
    PREDICATES,
    RESIDUALS,
    WHERES,
    ChangelogWriter,
    J,
    K,
    Row,
    Side,
)

_TYPES = {"integer": "INT", "string": "STRING"}
_FORMATS = {
    "append": "'connector' = 'kafka', 'format' = 'json'",
    "retract": "'connector' = 'kafka', 'format' = 'changelog-json'",
    "debezium": "'connector' = 'kafka', 'format' = 'debezium-json'",
    "upsert": "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'",
}
_PADDING: Row = (None,) * len(COLUMNS)
Names: TypeAlias = list[str]


@dataclass(frozen=True, slots=True)
class Source:
    """One input table; upsert and debezium tables send no old rows."""

    prefix: str
    mode: str
    primary_key: tuple[int, ...]

    def names(self, positions: tuple[int, ...]) -> Names:
        return [f"{self.prefix}_{COLUMNS[i][0]}" for i in positions]

    def declaration(self) -> str:
        columns = [f"{self.prefix}_{name} {_TYPES[kind]}" for name, kind in COLUMNS]
        return _table(self.prefix, columns, self.names(self.primary_key), self.mode)

    def side(self) -> Side:
        layout = "has-unique-key" if self.primary_key else "no-unique-key"
        return Side(layout, self.primary_key, self.mode in ("upsert", "debezium"))


@dataclass(frozen=True, slots=True)
class Query:
    """A join of two tables into a retract sink, or into one that is keyed by the left table."""

    left: Source
    right: Source
    is_left: bool
    key: tuple[tuple[int, bool], ...]
    residual: str | None
    where: str | None
    keyed: bool

    def sql(self) -> str:
        columns = [
            f"{s.prefix}_{n} {_TYPES[t]}" for s in (self.left, self.right) for n, t in COLUMNS
        ]
        key = self.left.names(self.left.primary_key) if self.keyed else []
        sink = _table("joined", columns, key, "upsert" if self.keyed else "retract")
        names = [
            (*self.left.names((i,)), op, *self.right.names((i,))) for i, op in self._operators()
        ]
        on = [" ".join(name) for name in names] + ([f"({self.residual})"] if self.residual else [])
        join = "LEFT JOIN" if self.is_left else "JOIN"
        where = f" WHERE {self.where}" if self.where else ""
        query = ["INSERT INTO joined SELECT * FROM l", join, "r ON", " AND ".join(on) + where + ";"]
        settings = "SET 'rejoin.key-groups' = '8';"
        tables = [self.left.declaration(), self.right.declaration(), sink]
        return "\n".join([settings, *tables, " ".join(query)]) + "\n"

    def _operators(self) -> list[tuple[int, str]]:
        return [(i, "=" if never else "IS NOT DISTINCT FROM") for i, never in self.key]

    def matches(self, left: Row, right: Row) -> bool:
        for i, nulls_never_match in self.key:
            if left[i] != right[i] or (left[i] is None and nulls_never_match):
                return False
        return self.residual is None or PREDICATES[self.residual](left, right)

    def shows(self, left: Row, right: Row) -> bool:
        return self.where is None or PREDICATES[self.where](left, right)


def _table(name: str, columns: Names, key: Names, mode: str) -> str:
    lines = [*columns, *([f"PRIMARY KEY ({', '.join(key)}) NOT ENFORCED"] if key else [])]
    servers = "'properties.bootstrap.servers' = 'localhost:9092'"
    options = f"{_FORMATS[mode]}, 'topic' = '{name}', {servers}"
    return f"CREATE TABLE {name} ({', '.join(lines)}) WITH ({options});"


@dataclass(slots=True)
class TableModel:
    """The rows of a table: by primary key, or as a multiset."""

    source: Source
    rows: list[Row] = field(default_factory=list)

    def apply(self, kind: str, row: Row) -> None:
        key = self.source.primary_key
        add = kind in ("+I", "+U")
        if key:
            same = [r for r in self.rows if all(r[i] == row[i] for i in key)]
            self.rows = [r for r in self.rows if r not in same]
        elif not add and row in self.rows:
            self.rows.remove(row)
        if add:
            self.rows.append(row)


class QueryModel:
    """The join of both tables anew after every batch, against the folded sink."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._tables = {"left": TableModel(query.left), "right": TableModel(query.right)}
        self._sink: Counter[Row] = Counter()
        self._by_key: dict[Row, Row] = {}

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        for side, kind, values in batch:
            self._tables[side].apply(kind, tuple(values))
        problems = []
        for kind, *values in emitted:
            row = tuple(values)
            if self._query.keyed:
                self._upsert(kind, row)
                continue
            self._sink[row] += 1 if kind in ("+I", "+U") else -1
            if self._sink[row] < 0:
                problems.append(f"retracts what is not there: {row}")
        expected = self._expected()
        found = Counter(self._by_key.values()) if self._query.keyed else self._sink
        problems += [f"missing: {row}" for row in (expected - found).elements()]
        return problems + [f"too much: {row}" for row in (found - expected).elements()]

    def state_rows(self) -> None:
        """Where rows are kept is the planner's business."""

    def _upsert(self, kind: str, row: Row) -> None:
        key = tuple(row[i] for i in self._query.left.primary_key)
        if kind in ("+I", "+U"):
            self._by_key[key] = row
        else:
            self._by_key.pop(key, None)

    def _expected(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for left in self._tables["left"].rows:
            matches = [r for r in self._tables["right"].rows if self._query.matches(left, r)]
            if not matches and self._query.is_left:
                matches = [_PADDING]
            result.update(left + r for r in matches if self._query.shows(left, r))
        return result


class PlanMachine:
    """A plan in memory that looks like a state machine to the oracle."""

    def __init__(self, node: str) -> None:
        self._bound = bind_scenario(Scenario("oracle", json.loads(node)["sql"], ()))
        self._backend = MemoryBackend(self._bound)
        self._encoders = {s: Encoder(self._bound.tables[s]) for s in ("l", "r")}

    def run(self, batches: str) -> str:
        return json.dumps([self._step(batch) for batch in json.loads(batches)])

    def _step(self, batch: Batch) -> Emitted:
        for side, kind, values in batch:
            table = side[0]
            records = self._encoders[table].encode([Input(0, table, 0, kind, tuple(values))])
            self._backend.feed(table, records)
        outcome = self._backend.run_step(Step(0), lambda _: True)
        sink = self._bound.tables["joined"]
        changes = [c for record in outcome.records.get("joined", ()) for c in decode(sink, record)]
        return [[change.kind, *change.row] for change in changes]

    def restart(self) -> None:
        self._backend.restart()

    def stateRows(self) -> str:
        return "[]"


def random_case(name: str, rng: random.Random, size: int) -> Case:
    key = rng.choice([(K,), (K,), (K, J)])
    left, right = _random_source("l", rng), _random_source("r", rng)
    query = Query(
        left,
        right,
        is_left=rng.random() < 0.5,
        key=tuple((i, rng.random() < 0.7) for i in key),
        residual=rng.choice([None, None, *RESIDUALS]),
        where=rng.choice([None, None, *WHERES]),
        keyed=bool(left.primary_key)
        and bool(right.primary_key)
        and set(right.primary_key) <= set(key),
    )
    spread = rng.choice([3, 6])
    writers = [
        ChangelogWriter("left", left.side(), rng, spread, left.primary_key),
        ChangelogWriter("right", right.side(), rng, spread, right.primary_key),
    ]
    modes = [left.mode, right.mode]
    events: list[Event] = []
    while len(events) < size:
        pick = rng.random() < 0.5
        written = writers[pick].write()
        events += [e for e in written if modes[pick] != "append" or e[1] == "+I"]
    batches = cut_into_batches(events, rng)
    node = {"sql": query.sql()}
    return Case(name, node, batches, random_restarts(batches, rng), lambda: QueryModel(query))


def _random_source(prefix: str, rng: random.Random) -> Source:
    mode = rng.choice(["append", "retract", "retract", "upsert", "upsert", "debezium"])
    keys: list[tuple[int, ...]] = [(ID,), (K,), (K, ID), (K, J)]
    if mode in ("append", "retract"):
        keys += [(), ()]
    return Source(prefix, mode, () if mode == "append" else rng.choice(keys))

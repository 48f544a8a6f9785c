"""Whole plans: random changelogs as real records through SQL, planner, readers, machines, writers.

What a machine's own oracle cannot show: state layouts chosen from keys, filters below joins,
normalisers in front of them, chains and unions, joins that became one, aggregates on top, upserts
whose join key moves, sinks that are keyed otherwise.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from spark_jobs.errors import SqlErrors, UnsupportedError
from spark_jobs.plan.nodes.physical import Aggregate, Physical
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.scenario.file import Input, Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Encoder, decode
from spark_jobs.scenario.runner import bind_scenario
from tests.harness.gateway import kernel
from tests.kernel.oracle.check import Batch, Case, Emitted, Event, cut_into_batches, random_restarts
from tests.kernel.oracle.regular import ChangelogWriter
from tests.kernel.oracle.relations import (
    TYPES,
    Aggregated,
    Base,
    Condition,
    Exists,
    Joined,
    Query,
    Values,
    above_one,
    conjunction,
    equal,
    is_null,
    less,
)
from tests.kernel.oracle.rows import ID, J, K, Row
from tests.kernel.oracle.sides import Side

_FORMATS = {
    "append": "'connector' = 'kafka', 'format' = 'json'",
    "retract": "'connector' = 'kafka', 'format' = 'changelog-json'",
    "debezium": "'connector' = 'kafka', 'format' = 'debezium-json'",
    "upsert": "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'",
}
SINK = "result"
_KINDS = ("inner", "inner", "left", "left", "right", "full")
_ADDS = ("+I", "+U")
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Source:
    """One input table; upsert and debezium tables send no old rows."""

    name: str
    mode: str
    primary_key: tuple[int, ...]

    @property
    def is_upsert(self) -> bool:
        return self.mode in ("upsert", "debezium")

    def declaration(self) -> str:
        columns = [f"{self.name}_{name} {kind}" for name, kind in TYPES.items()]
        key = [f"{self.name}_{list(TYPES)[i]}" for i in self.primary_key]
        return _table(self.name, columns, key, self.mode)

    def side(self) -> Side:
        layout = "has-unique-key" if self.primary_key else "no-unique-key"
        return Side(layout, self.primary_key, self.is_upsert)

    def identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self.primary_key) or row


def _table(name: str, columns: list[str], key: list[str], mode: str) -> str:
    lines = [*columns, *([f"PRIMARY KEY ({', '.join(key)}) NOT ENFORCED"] if key else [])]
    servers = "'properties.bootstrap.servers' = 'localhost:9092'"
    options = f"{_FORMATS[mode]}, 'topic' = '{name}', {servers}"
    return f"CREATE TABLE {name} ({', '.join(lines)}) WITH ({options});"


def job_text(sources: list[Source], query: Query, groups: int) -> str:
    columns = [f"{name} {kind}" for name, kind in query.columns]
    key = [query.key] if query.key else []
    sink = _table(SINK, columns, key, "upsert" if key else "retract")
    tables = [source.declaration() for source in sources]
    settings = f"SET 'rejoin.key-groups' = '{groups}';"
    return "\n".join([settings, *tables, sink, f"INSERT INTO {SINK} {query.sql};"]) + "\n"


@dataclass(slots=True)
class TableModel:
    """The rows of a table: by primary key, or as a multiset."""

    source: Source
    rows: list[Row] = field(default_factory=list)

    def takes(self, kind: str, row: Row) -> bool:
        """Whether a changelog of the table may go on with this change."""
        identities = [self.source.identity(r) for r in self.rows]
        if self.source.is_upsert:
            return kind in _ADDS or self.source.identity(row) in identities
        if kind in _ADDS:
            return not self.source.primary_key or self.source.identity(row) not in identities
        return row in self.rows

    def apply(self, kind: str, row: Row) -> None:
        if self.source.is_upsert:
            same = self.source.identity(row)
            self.rows = [r for r in self.rows if self.source.identity(r) != same]
        elif kind not in _ADDS:
            self.rows.remove(row)
        if kind in _ADDS:
            self.rows.append(row)

    def values(self) -> list[Values]:
        return [dict(zip(TYPES, row, strict=True)) for row in self.rows]


class QueryModel:
    """The query anew after every batch, against the folded sink."""

    def __init__(self, sources: list[Source], query: Query) -> None:
        self._query = query
        self._tables = {source.name: TableModel(source) for source in sources}
        self._sink: Counter[Row] = Counter()
        self._by_key: dict[Row, Row] = {}
        self._is_sound = True

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        for name, kind, values in batch:
            table, row = self._tables[name], tuple(values)
            self._is_sound = self._is_sound and table.takes(kind, row)
            if self._is_sound:
                table.apply(kind, row)
        if not self._is_sound:  # a shrunk case need not be a changelog any more
            return []
        expected = self._query.rows({n: t.values() for n, t in self._tables.items()})
        changes = [(kind, tuple(values)) for kind, *values in emitted]
        return self._keyed(changes, expected) if self._query.key else self._fold(changes, expected)

    def state_rows(self) -> None:
        """Where rows are kept is the planner's business."""

    def _fold(self, changes: list[tuple[str, Row]], expected: Counter[Row]) -> list[str]:
        problems = []
        for kind, row in changes:
            self._sink[row] += 1 if kind in _ADDS else -1
            if self._sink[row] < 0:
                problems.append(f"retracts what is not there: {row}")
        problems += [f"missing: {row}" for row in (expected - self._sink).elements()]
        return problems + [f"too much: {row}" for row in (self._sink - expected).elements()]

    def _keyed(self, changes: list[tuple[str, Row]], expected: Counter[Row]) -> list[str]:
        """Of several rows of a sink key any may show, of one that one, of none none."""
        at = [name for name, _ in self._query.columns].index(self._query.key or "")
        for kind, row in changes:
            if kind in _ADDS:
                self._by_key[row[at]] = row
            else:
                self._by_key.pop(row[at], None)
        wanted: dict[Row, set[Row]] = {}
        for row in expected.elements():
            wanted.setdefault(row[at], set()).add(row)
        problems = [f"no row for {key}" for key in wanted if key not in self._by_key]
        shown = self._by_key.items()
        return problems + [f"shows {r}" for k, r in shown if r not in wanted.get(k, set())]


class PlanMachine:
    """A plan in memory that looks like a state machine to the oracle."""

    def __init__(self, node: str) -> None:
        given = json.loads(node)
        self._bound = bind_scenario(Scenario("oracle", given["sql"], ()))
        self._backend = MemoryBackend(self._bound, kernel())
        names = [name for name in self._bound.tables if name != SINK]
        self._encoders = {name: Encoder(self._bound.tables[name]) for name in names}
        self._partitions = given["partitions"]
        self._keys = {name: tuple(key) for name, key in given["keys"].items()}

    def run(self, batches: str) -> str:
        return json.dumps([self._step(batch) for batch in json.loads(batches)])

    def _step(self, batch: Batch) -> Emitted:
        for table, kind, values in batch:
            identity = [values[i] for i in self._keys[table]] or values
            # changes of a row stay in order only within a partition
            partition = sum(repr(identity).encode()) % self._partitions
            given = Input(0, table, partition, kind, tuple(values))
            self._backend.feed(table, self._encoders[table].encode([given]))
        outcome = self._backend.run_step(Step(0), lambda _: True)
        sink = self._bound.tables[SINK]
        changes = [c for record in outcome.records.get(SINK, ()) for c in decode(sink, record)]
        return [[change.kind, *change.row] for change in changes]

    def restart(self) -> None:
        self._backend.restart()

    def stateRows(self) -> str:
        return "[]"


def random_case(name: str, rng: random.Random, size: int) -> Case:
    """A query that the planner takes; what it refuses is another test's.

    So is an aggregate whose one row does not depend on what arrives (G11).
    """
    for _ in range(_TRIES):
        sources = [_random_source(n, rng) for n in ("a", "b", "c")]
        query = _random_query(sources, rng)
        node: dict[str, Any] = {
            "sql": job_text(sources, query, rng.choice([1, 4, 16])),
            "partitions": rng.choice([1, 3]),
            "keys": {s.name: list(s.primary_key) for s in sources},
        }
        try:
            bound = bind_scenario(Scenario(name, node["sql"], ()))
        except SqlErrors as refused:
            if any(not isinstance(error, UnsupportedError) for error in refused.errors):
                raise
            continue
        if any(_is_of_no_rows(plan.root) for plan in bound.plans):
            continue
        batches = cut_into_batches(_random_events(sources, rng, size), rng)
        restarts = random_restarts(batches, rng)
        return Case(name, node, batches, restarts, partial(QueryModel, sources, query))
    raise AssertionError(f"{name}: {_TRIES} queries were refused")


def _is_of_no_rows(root: Physical) -> bool:
    machines = [node.machine for node in stateful_nodes(root)]
    return any(isinstance(m, Aggregate) and m.no_input for m in machines)


def varied(case: Case, rng: random.Random, groups: int, partitions: int) -> Case:
    """The same rows in the same order: cut, restarted, spread and grouped otherwise."""
    events = [event for batch in case.batches for event in batch]
    batches = cut_into_batches(events, rng)
    _, _, rest = case.node["sql"].partition("\n")
    sql = f"SET 'rejoin.key-groups' = '{groups}';\n{rest}"
    node = case.node | {"sql": sql, "partitions": partitions}
    return replace(case, node=node, batches=batches, restarts=random_restarts(batches, rng))


def _random_events(sources: list[Source], rng: random.Random, size: int) -> list[Event]:
    spread = rng.choice([2, 4])
    writers = {
        s.name: ChangelogWriter(s.name, s.side(), rng, spread, (*s.primary_key, ID))
        for s in sources
    }
    tables = {source.name: TableModel(source) for source in sources}
    modes = {source.name: source.mode for source in sources}
    events: list[Event] = []
    while len(events) < size:
        for event in writers[rng.choice("abc")].write():
            name, kind, row = event[0], event[1], tuple(event[2])
            if modes[name] == "append" and kind != "+I":
                continue
            if tables[name].takes(kind, row):
                tables[name].apply(kind, row)
                events.append(event)
    return events


def _random_source(name: str, rng: random.Random) -> Source:
    mode = rng.choice(["append", "retract", "retract", "upsert", "upsert", "debezium"])
    keys: list[tuple[int, ...]] = [(ID,), (ID,), (K, ID), (K, J)]
    if mode == "retract":
        keys += [(), ()]
    return Source(name, mode, () if mode == "append" else rng.choice(keys))


def _random_query(sources: list[Source], rng: random.Random) -> Query:
    names = [source.name for source in sources]
    rng.shuffle(names)
    bases = [Base(name, (name,)) for name in names]
    if rng.random() < 0.25:
        bases = [Base("u", tuple(names[:2])), Base(names[2], (names[2],))]
    exists = _random_exists(bases, rng) if rng.random() < 0.3 else None
    if exists is not None:
        bases = bases[:-1]
    chain: Base | Joined = bases[0]
    for right in bases[1 : rng.choice([2, 3, 3])]:
        kind = rng.choice(_KINDS)
        chain = Joined(kind, chain, right, _random_condition(chain, right, rng))
    where = rng.choice([None, None, _random_where(chain, rng)])
    aggregated = _random_aggregate(chain, rng) if rng.random() < 0.3 else None
    query = Query(chain, exists, where, aggregated, None)
    return replace(query, key=_random_key(query, bases[0], rng))


def _random_condition(left: Base | Joined, right: Base, rng: random.Random) -> Condition:
    prefix = rng.choice(left.columns).rpartition("_")[0]
    shared = rng.choice([("k",), ("k",), ("k", "j"), ("id",)])
    equalities = [
        equal(f"{prefix}_{n}", f"{right.prefix}_{n}", rng.random() < 0.25) for n in shared
    ]
    rest = rng.choice([[], [], [less(f"{prefix}_v", f"{right.prefix}_v")]])
    return conjunction([*equalities, *rest])


def _random_exists(bases: list[Base], rng: random.Random) -> Exists:
    return Exists(rng.random() < 0.5, bases[-1], _random_condition(bases[0], bases[-1], rng))


def _random_where(chain: Base | Joined, rng: random.Random) -> Condition:
    prefix = rng.choice(chain.columns).rpartition("_")[0]
    return rng.choice([above_one(f"{prefix}_v"), is_null(f"{prefix}_id")])


def _random_aggregate(chain: Base | Joined, rng: random.Random) -> Aggregated:
    prefix = rng.choice(chain.columns).rpartition("_")[0]
    group = rng.choice([None, f"{prefix}_k", f"{prefix}_j"])
    return Aggregated(group, f"{rng.choice(chain.columns).rpartition('_')[0]}_v")


def _random_key(query: Query, first: Base, rng: random.Random) -> str | None:
    """A column that no padding makes NULL; often not unique in the result."""
    chain: Base | Joined = query.chain
    while isinstance(chain, Joined):
        if chain.kind in ("right", "full"):
            return None
        chain = chain.left
    if query.aggregated is not None or rng.random() < 0.5:
        return None
    return f"{first.prefix}_id"

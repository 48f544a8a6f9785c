"""Random cases: a query, and several changelogs of its tables cut into steps."""

import random
from dataclasses import replace

import duckdb

from tests.differential.case import Case
from tests.differential.judge import Judge
from tests.differential.queries import Queries, constructs
from tests.differential.tables import (
    Change,
    Changelog,
    Changes,
    EventClock,
    Table,
    random_table,
)

HISTORIES = 8
_TRIES = 4


def random_case(seed: int, index: int, judge: Judge) -> Case:
    """The same numbers give the same case, on every computer.

    Several cases in a row have the same query, as compiling its expressions costs the most.
    """
    made = _random_query(seed, index // HISTORIES, judge)
    return with_history(replace(made, name=f"seed {seed} case {index}"))


def with_history(made: Case) -> Case:
    """The query over random changelogs, which go by the name of the case."""
    rng = random.Random(made.name)  # noqa: S311 - repeatable, not secret
    steps = _cut(_changes(made.tables, rng), rng)
    chance = rng.choice([0, 0.1, 0.3])
    restarts = frozenset(n for n in range(1, len(steps)) if rng.random() < chance)
    return replace(made, steps=steps, restarts=restarts)


def _random_query(seed: int, number: int, judge: Judge) -> Case:
    """One whose answer has rows, if there is one among a few: joins of random rows often have none.

    DuckDB tells, so that rejoin has no say in what is tried.
    """
    rng = random.Random(f"seed {seed} query {number}")  # noqa: S311 - repeatable, not secret
    for _ in range(_TRIES):
        case = _any_query(rng)
        changes = [change for group in _changes(case.tables, rng) for change in group]
        try:
            judge.begin(case.tables, case.views, case.query)
            judge.apply(changes)
            has_rows = bool(judge.answer(case.query))
        except duckdb.Error:  # for the run of the case to report
            break
        if has_rows:
            break
    return case


def _any_query(rng: random.Random) -> Case:
    is_timed = rng.random() < 0.45
    names = "abcd"[: rng.choice([2, 2, 3, 4])]
    tables = tuple(random_table(n, rng, is_timed) for n in names)
    queries = Queries(rng, tables, 0.7 if is_timed else 0.1)
    made = queries.query()
    key: tuple[str, ...] = ()
    sink = rng.choice(["retract", "retract", "debezium"])
    if made.key and rng.random() < 0.6:
        sink, key = "upsert", made.key
    views, found = tuple(queries.views), frozenset(constructs(made.text, queries))
    groups = rng.choice([1, 4, 128])
    return Case(
        "", tables, views, made.text, sink, key, (),
        groups=groups, constructs=found, waits=queries.waits,
    )  # fmt: skip


def _changes(tables: tuple[Table, ...], rng: random.Random) -> list[Changes]:
    """Groups of changes that stay together in a step."""
    clock = EventClock(rng)
    writers = [Changelog(table, rng, clock) for table in tables]
    size = rng.choice([8, 20, 40])
    groups: list[Changes] = []
    for _ in range(size):
        at = rng.randrange(len(tables))
        changes = writers[at].next()
        if tables[at].mode == "retract":  # a -U and its +U are two records
            groups += [[change] for change in changes]
        elif changes:
            groups.append(changes)
    return groups


def _cut(groups: list[Changes], rng: random.Random) -> tuple[tuple[Change, ...], ...]:
    largest = rng.choice([1, 2, 5, 5, 12, 12])
    steps: list[tuple[Change, ...]] = []
    at = 0
    while at < len(groups):
        size = rng.randint(1, largest)
        steps.append(tuple(change for group in groups[at : at + size] for change in group))
        at += size
    return tuple(steps)

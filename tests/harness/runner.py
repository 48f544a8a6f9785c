"""Runs a scenario on one of three backends and compares what the sinks receive."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_jobs.errors import RejoinError, SqlErrors
from spark_jobs.plan.physical import KafkaSink, QueryPlan
from spark_jobs.plan.planner import plan
from spark_jobs.sql.binder import bind
from spark_jobs.sql.catalog import Table
from tests.harness.fold import View, net_difference, sink_key, view_difference
from tests.harness.records import Change, Encoder, Record, decode, sink_columns
from tests.harness.scenario import DeadLetter, Expected, Scenario, Step
from tests.harness.values import canonical

SinkRecords = Mapping[str, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step made: records by sink table, and rejects as (topic, reason)."""

    records: SinkRecords
    rejects: Sequence[tuple[str, str]] = ()


class Backend(Protocol):
    """Where a scenario runs.

    `exact`: a step is one micro-batch and its outcome holds just that step's records. Otherwise
    the outcome of a step is whatever came until `is_settled` said that the records so far will do.
    """

    exact: bool

    def feed(self, table: str, records: Sequence[Record]) -> None: ...

    def run_step(self, step: Step, is_settled: Callable[[Outcome], bool]) -> Outcome: ...

    def finish(self) -> Outcome:
        """Stop; whatever comes out now is too much."""
        ...


@dataclass(frozen=True, slots=True)
class Bound:
    """A scenario with the tables that its SQL declares."""

    scenario: Scenario
    tables: Mapping[str, Table]
    plans: tuple[QueryPlan, ...]
    sinks: tuple[str, ...]


def bind_scenario(scenario: Scenario) -> Bound:
    job = bind(scenario.sql, scenario.name)
    sinks = dict.fromkeys(sink.table.name for sink in job.inserts)
    return Bound(scenario, job.tables, plan(job), tuple(sinks))


def exchanged_sinks(bound: Bound) -> set[str]:
    """Sinks before which rows change tasks: there the writer makes the order, deletes first."""
    roots = [plan.root for plan in bound.plans]
    return {root.table for root in roots if isinstance(root, KafkaSink) and root.exchange}


def check_refusal(scenario: Scenario) -> None:
    """The SQL of a scenario with `fails: CODE` must be refused with that code."""
    try:
        bind_scenario(scenario)
    except SqlErrors as error:
        codes = {e.code for e in error.errors}
    except RejoinError as error:
        codes = {error.code}
    else:
        raise AssertionError(f"{scenario.name}: accepted, expected {scenario.fails}")
    if scenario.fails not in codes:
        raise AssertionError(f"{scenario.name}: refused with {codes}, not {scenario.fails}")


class Run:
    """Feeds a backend step by step; raises AssertionError at the first step that differs."""

    def __init__(self, bound: Bound, backend: Backend) -> None:
        self._bound = bound
        self._backend = backend
        self._encoders = {name: Encoder(table) for name, table in bound.tables.items()}
        self._wanted = {name: View.of(bound.tables[name]) for name in bound.sinks}
        self._exchanged = exchanged_sinks(bound)
        self._found = {name: View.of(bound.tables[name]) for name in bound.sinks}

    def all(self) -> None:
        for step in self._bound.scenario.steps:
            self._step(step)
        last = Step(self._bound.scenario.steps[-1].line)
        self._judge(last, self._backend.finish())

    def _step(self, step: Step) -> None:
        for given in step.inputs:
            if given.table not in self._encoders:
                raise AssertionError(f"line {given.line}: no table {given.table}")
            self._backend.feed(given.table, self._encoders[given.table].encode([given]))
        for name in self._bound.sinks:
            self._wanted[name].apply(self._expected(name, step.expected))
        wanted = len(step.dead_letters)
        outcome = self._backend.run_step(
            step, lambda so_far: len(so_far.rejects) >= wanted and self._is_settled(so_far)
        )
        self._judge(step, outcome)

    def _judge(self, step: Step, outcome: Outcome) -> None:
        problems: list[str] = []
        for name in self._bound.sinks:
            expected = self._expected(name, step.expected)
            problems += self._compare(name, expected, self._decoded(name, outcome))
        problems += _compare_rejects(self._bound.tables, step.dead_letters, outcome)
        if problems:
            raise AssertionError(self._report(step, problems))

    def _compare(self, name: str, expected: list[Change], actual: list[Change]) -> list[str]:
        table = self._bound.tables[name]
        self._found[name].apply(actual)
        problems = [*self._wanted[name].problems, *self._found[name].problems]
        if self._backend.exact:
            problems += net_difference(table, expected, actual)
            if name not in self._exchanged:
                problems += _repeated_keys(table, actual)
        return problems + view_difference(self._wanted[name], self._found[name])

    def _is_settled(self, outcome: Outcome) -> bool:
        for name in self._bound.sinks:
            ahead = View(self._found[name].key, self._found[name].rows.copy())
            ahead.by_key = dict(self._found[name].by_key)
            ahead.apply(self._decoded(name, outcome))
            if view_difference(self._wanted[name], ahead):
                return False
        return True

    def _decoded(self, name: str, outcome: Outcome) -> list[Change]:
        table = self._bound.tables[name]
        return [change for r in outcome.records.get(name, ()) for change in decode(table, r)]

    def _expected(self, name: str, rows: Sequence[Expected]) -> list[Change]:
        table = self._bound.tables[name]
        columns = [c for c in sink_columns(table) if c.kind == "physical"]
        changes = []
        for row in rows:
            if row.table not in (None, name):
                continue
            values = zip(columns, row.values, strict=True)
            changes.append(Change(row.kind, tuple(canonical(v, c.type) for c, v in values)))
        return changes

    def _report(self, step: Step, problems: list[str]) -> str:
        place = f"{self._bound.scenario.name}, step at line {step.line}"
        return "\n  ".join([f"{place}:", *problems])


def _repeated_keys(table: Table, actual: list[Change]) -> list[str]:
    """One micro-batch writes at most one record per key of an upsert sink."""
    key = sink_key(table)
    if key is None:
        return []
    keys = [tuple(change.row[i] for i in key) for change in actual]
    return [f"written twice: {k}" for k in sorted(set(keys), key=repr) if keys.count(k) > 1]


def _compare_rejects(
    tables: Mapping[str, Table], expected: Sequence[DeadLetter], outcome: Outcome
) -> list[str]:
    wanted = sorted(
        (tables[d.table].options["rejoin.dead-letter.topic"], d.reason) for d in expected
    )
    found = sorted(outcome.rejects)
    return [] if wanted == found else [f"dead letters {found}, expected {wanted}"]

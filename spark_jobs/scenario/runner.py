"""Runs a scenario on a backend (kernel, Spark or broker) and compares what the sinks receive."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_jobs.errors import ScenarioError, SqlErrors
from spark_jobs.plan.nodes.physical import KafkaSink, QueryPlan
from spark_jobs.plan.nodes.walk import looks_up
from spark_jobs.plan.planner import plan
from spark_jobs.scenario.checks import check_rows
from spark_jobs.scenario.file import Expected, ExpectedDeadLetter, Scenario, Step
from spark_jobs.scenario.fold import (
    Compared,
    SinkView,
    compared,
    row_text,
    sink_key,
    view_difference,
)
from spark_jobs.scenario.formats import in_json
from spark_jobs.scenario.records import Change, Encoder, Record, decode, physical_columns, row_of
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.catalog import Table

SinkRecords = Mapping[str, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The output of one step: records by sink table, and rejected records as (topic, reason)."""

    records: SinkRecords
    rejects: Sequence[tuple[str, str]] = ()


class Backend(Protocol):
    """Where a scenario runs.

    If `exact`, a step is one micro-batch and its outcome has the records of that step only.
    Otherwise the outcome has all records that arrived until `is_settled` accepted them.
    """

    exact: bool

    def feed(self, table: str, records: Sequence[Record]) -> None: ...

    def run_step(self, step: Step, is_settled: Callable[[StepOutcome], bool]) -> StepOutcome: ...

    def finish(self) -> StepOutcome:
        """Stop; everything that is still emitted is unexpected."""
        ...


@dataclass(frozen=True, slots=True)
class BoundScenario:
    """A scenario with the tables, plans and sinks of its SQL."""

    scenario: Scenario
    tables: Mapping[str, Table]
    plans: tuple[QueryPlan, ...]
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SinkDifference:
    """Expected and actual changes of a sink; `notes` are problems that belong to no single row."""

    table: Table
    rows: tuple[Compared, ...]
    notes: tuple[str, ...]

    @property
    def problems(self) -> list[str]:
        return [*(row.text for row in self.rows if row.mark != "same"), *self.notes]


class StepDifference(AssertionError):
    """The output of a step differs from the scenario. `number` counts from 1."""

    def __init__(
        self,
        name: str,
        number: int,
        step: Step,
        sinks: Sequence[SinkDifference],
        notes: Sequence[str],
    ) -> None:
        self.number = number
        self.line = step.line
        self.sinks = tuple(sinks)
        self.notes = tuple(notes)
        problems = [problem for sink in sinks for problem in sink.problems]
        super().__init__("\n  ".join([f"{name}, step at line {step.line}:", *problems, *notes]))


class NotRefused(AssertionError):
    """SQL that must be refused with a certain code was accepted, or refused with another."""


def bind_scenario(scenario: Scenario) -> BoundScenario:
    """Bind and plan the SQL. Raises SqlErrors if it is refused or a row does not fit its table."""
    job = bind(scenario.sql, scenario.sql_source)
    plans = plan(job)
    if any(looks_up(each.root) for each in plans):
        raise ScenarioError(
            "SCENARIO_LOOKUP",
            "the job looks rows up in a database, which a scenario does not have",
            "test it against a database, as tests/streaming/test_lookup.py does",
        )
    if any(in_json(table) is not table for table in job.tables.values()):
        job = bind(scenario.sql, scenario.sql_source, in_json)
        plans = plan(job)
    sinks = tuple(dict.fromkeys(sink.table.name for sink in job.inserts))
    check_rows(scenario, job.tables, sinks)
    return BoundScenario(scenario, job.tables, plans, sinks)


def exchanged_sinks(bound: BoundScenario) -> set[str]:
    """Sinks after a shuffle: their writers order the records of an epoch, retractions first."""
    roots = [plan.root for plan in bound.plans]
    return {root.table for root in roots if isinstance(root, KafkaSink) and root.exchange}


def check_refusal(scenario: Scenario) -> None:
    """The SQL of a scenario with `fails: CODE` must be refused with that code."""
    try:
        plan(bind(scenario.sql, scenario.sql_source))
    except SqlErrors as error:
        codes = sorted({e.code for e in error.errors})
    else:
        raise NotRefused(f"{scenario.name}: the SQL was accepted, expected {scenario.fails}")
    if scenario.fails not in codes:
        found = ", ".join(codes)
        raise NotRefused(f"{scenario.name}: refused with {found}, expected {scenario.fails}")


class ScenarioRun:
    """Feeds a backend step by step; raises StepDifference at the first step that differs."""

    def __init__(self, bound: BoundScenario, backend: Backend) -> None:
        self._bound = bound
        self._backend = backend
        self._encoders = {name: Encoder(table) for name, table in bound.tables.items()}
        self._expected_views = {name: SinkView.of(bound.tables[name]) for name in bound.sinks}
        self._exchanged = exchanged_sinks(bound)
        self._actual_views = {name: SinkView.of(bound.tables[name]) for name in bound.sinks}

    def all(self) -> None:
        steps = self._bound.scenario.steps
        for number, step in enumerate(steps, 1):
            self._step(number, step)
        self._judge(len(steps), Step(steps[-1].line), self._backend.finish())

    def _step(self, number: int, step: Step) -> None:
        for given in step.inputs:
            self._backend.feed(given.table, self._encoders[given.table].encode([given]))
        for name in self._bound.sinks:
            self._expected_views[name].apply(self._expected(name, step.expected))
        wanted = len(step.dead_letters)
        outcome = self._backend.run_step(
            step, lambda so_far: len(so_far.rejects) >= wanted and self._is_settled(so_far)
        )
        self._judge(number, step, outcome)

    def _judge(self, number: int, step: Step, outcome: StepOutcome) -> None:
        sinks: list[SinkDifference] = []
        for name in self._bound.sinks:
            expected = self._expected(name, step.expected)
            difference = self._compare(name, expected, self._decoded(name, outcome))
            if difference.problems:
                sinks.append(difference)
        notes = _compare_rejects(self._bound.tables, step.dead_letters, outcome)
        if sinks or notes:
            raise StepDifference(self._bound.scenario.name, number, step, sinks, notes)

    def _compare(self, name: str, expected: list[Change], actual: list[Change]) -> SinkDifference:
        table = self._bound.tables[name]
        wanted, found = self._expected_views[name], self._actual_views[name]
        found.apply(actual)
        notes = [f"the expected rows: {problem}" for problem in wanted.problems]
        notes += found.problems
        if not self._backend.exact:
            return SinkDifference(table, (), (*notes, *view_difference(wanted, found)))
        if name not in self._exchanged:
            notes += _repeated_keys(table, actual)
        return SinkDifference(table, tuple(compared(table, expected, actual)), tuple(notes))

    def _is_settled(self, outcome: StepOutcome) -> bool:
        for name in self._bound.sinks:
            ahead = SinkView(self._actual_views[name].key, self._actual_views[name].rows.copy())
            ahead.by_key = dict(self._actual_views[name].by_key)
            ahead.apply(self._decoded(name, outcome))
            if view_difference(self._expected_views[name], ahead):
                return False
        return True

    def _decoded(self, name: str, outcome: StepOutcome) -> list[Change]:
        table = self._bound.tables[name]
        return [change for r in outcome.records.get(name, ()) for change in decode(table, r)]

    def _expected(self, name: str, rows: Sequence[Expected]) -> list[Change]:
        table = self._bound.tables[name]
        columns = physical_columns(table)
        return [
            Change(row.kind, row_of(columns, row.values))
            for row in rows
            if row.table in (None, name)
        ]


def _repeated_keys(table: Table, actual: list[Change]) -> list[str]:
    """Problems of an upsert sink: a micro-batch may write one record per key, not more."""
    key = sink_key(table)
    if key is None:
        return []
    keys = Counter(tuple(change.row[i] for i in key) for change in actual)
    return [f"key written twice: {row_text(k)}" for k in sorted(keys, key=repr) if keys[k] > 1]


def _compare_rejects(
    tables: Mapping[str, Table], expected: Sequence[ExpectedDeadLetter], outcome: StepOutcome
) -> list[str]:
    wanted = Counter((tables[d.table].dead_letter_topic or "", d.reason) for d in expected)
    found = Counter(outcome.rejects)
    missing, extra = (wanted - found).elements(), (found - wanted).elements()
    return [
        *(f"missing: dead letter {reason} in {topic}" for topic, reason in missing),
        *(f"unexpected: dead letter {reason} in {topic}" for topic, reason in extra),
    ]

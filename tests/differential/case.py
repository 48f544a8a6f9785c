"""One case: tables, a query, a sink and steps; its job text, and what rejoin and DuckDB answer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import duckdb

from spark_jobs.errors import RejoinError, ScenarioError, SqlErrors
from spark_jobs.scenario.file import Input, Scenario, Step
from spark_jobs.scenario.fold import SinkView, row_text
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Change as SinkChange
from spark_jobs.scenario.records import Encoder, decode
from spark_jobs.scenario.runner import BoundScenario, bind_scenario
from spark_jobs.scenario.values import Row, canonical
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Field
from spark_jobs.sql.types.data_types import DataType
from tests.differential.dialect import flink_text
from tests.differential.judge import Judge
from tests.differential.tables import ADDS, Change, Table
from tests.harness.gateway import kernel

SINK = "result"
_SINKS = {
    "retract": "'connector' = 'kafka', 'format' = 'changelog-json'",
    "debezium": "'connector' = 'kafka', 'format' = 'debezium-json'",
    "upsert": "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'",
}


@dataclass(frozen=True, slots=True)
class Case:
    """`restarts`: the steps before which the job restarts. `key`: the sink's key columns.

    `views` and `query` are as the generator writes them (dialect.py). `constructs`: what the query
    is made of, to be counted. `waits`: some rows leave only when the watermark passes them, so the
    answer is due when the inputs have ended.
    """

    name: str
    tables: tuple[Table, ...]
    views: tuple[tuple[str, str], ...]
    query: str
    sink: str
    key: tuple[str, ...]
    steps: tuple[tuple[Change, ...], ...]
    restarts: frozenset[int] = frozenset()
    groups: int = 128
    constructs: frozenset[str] = frozenset()
    waits: bool = False

    def declarations(self) -> str:
        views = [f"CREATE VIEW {name} AS {flink_text(text)};" for name, text in self.views]
        settings = [] if self.groups == 128 else [f"SET 'rejoin.key-groups' = '{self.groups}';"]
        return "\n".join([*settings, *(table.ddl() for table in self.tables), *views])

    def select(self) -> str:
        return flink_text(self.query)

    def fields(self) -> tuple[Field, ...]:
        """The columns of the query, as rejoin types them.

        Raises:
            SqlErrors: the query is refused.
        """
        return _query_fields(f"{self.declarations()}\n{self.select()};")

    def job(self) -> str:
        """The job file. The sink has the columns of the query.

        Raises:
            SqlErrors: the query is refused.
        """
        lines = [f"{f.name} {_column_type(f.type, f.name in self.key)}" for f in self.fields()]
        if self.key:
            lines.append(f"PRIMARY KEY ({', '.join(self.key)}) NOT ENFORCED")
        options = f"{_SINKS[self.sink]}, 'topic' = '{SINK}'"
        options += ", 'properties.bootstrap.servers' = 'localhost:9092'"
        sink = f"CREATE TABLE {SINK} (\n  {', '.join(lines)}\n) WITH ({options});"
        return f"{self.declarations()}\n{sink}\nINSERT INTO {SINK}\n{self.select()};\n"


@lru_cache(maxsize=4)
def _query_fields(text: str) -> tuple[Field, ...]:
    """The columns of the query at the end of the text; several cases in a row have the same."""
    return tuple(bind_query(text).query.fields)


@lru_cache(maxsize=4)
def _bound(job: str) -> BoundScenario:
    return bind_scenario(Scenario("differential", job, ()))


def _column_type(data_type: DataType, is_key: bool) -> str:
    return replace(data_type, nullable=not is_key).sql()


@dataclass(frozen=True, slots=True)
class Refused:
    """The planner does not take the query."""

    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Crashed:
    """Something other than a refusal was raised."""

    text: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """DuckDB does not take what the generator made."""

    text: str


@dataclass(frozen=True, slots=True)
class Differs:
    """The first step after which the sink's `view` is not what DuckDB answers."""

    step: int
    problems: tuple[str, ...]
    view: SinkView


@dataclass(frozen=True, slots=True)
class Agrees:
    """`rows`: the most of any answer. `unnetted`: steps that took back and added an equal row.

    `view`: what the sink shows in the end.
    """

    rows: int
    unnetted: tuple[str, ...]
    view: SinkView


Outcome: TypeAlias = Refused | Crashed | Unjudged | Differs | Agrees


def run(case: Case, judge: Judge) -> Outcome:
    try:
        bound = _bound(case.job())
    except SqlErrors as refusal:
        return Refused(tuple(sorted({error.code for error in refusal.errors})))
    except RejoinError as error:
        return Crashed(f"{type(error).__name__}: {error}")
    except Exception as error:  # a traceback is what is looked for
        return Crashed(f"{type(error).__name__}: {error}")
    try:
        return _compare(case, bound, judge)
    except duckdb.Error as error:
        return Unjudged(str(error))
    except ScenarioError as error:
        return Crashed(error.message)
    except Exception as error:
        if str(error) == "Query interrupted":  # how DuckDB hands on a Ctrl-C
            raise KeyboardInterrupt from error
        return Crashed(f"{type(error).__name__}: {str(error)[:2000]}")


def _compare(case: Case, bound: BoundScenario, judge: Judge) -> Outcome:
    job = _Job(case, bound)
    judge.begin(case.tables, case.views, case.query)
    rows = 0
    unnetted: list[str] = []
    for number, step in enumerate(case.steps):
        problems, both = job.step(step, number in case.restarts)
        judge.apply(step)
        is_last = number == len(case.steps) - 1
        if case.waits and is_last:
            problems += job.end()
        if is_last or not case.waits:
            expected = canonical_rows(judge.answer(case.query), job.types)
            rows = max(rows, expected.total())
            problems += difference(job.view, expected)
        if problems:
            return Differs(number, tuple(problems), job.view)
        unnetted += [f"step {number}: {row_text(row)}" for row in both]
    return Agrees(rows, tuple(unnetted), job.view)


class _Job:
    """The case in the kernel, and what a reader of its sink sees."""

    def __init__(self, case: Case, bound: BoundScenario) -> None:
        self._backend = MemoryBackend(bound, kernel())
        self._sink = bound.tables[SINK]
        self._encoders = {t.name: Encoder(bound.tables[t.name]) for t in case.tables}
        self.view = SinkView.of(self._sink)
        self.types = [column.type for column in self._sink.columns]

    def step(self, step: Sequence[Change], restarts: bool) -> tuple[list[str], set[Row]]:
        """The problems, and the rows that were both taken back and added."""
        if restarts:
            self._backend.restart()
        for c in step:
            given = Input(0, c.table, c.partition, c.kind, c.row)
            self._backend.feed(c.table, self._encoders[c.table].encode([given]))
        changes, problems = self._run(Step(0))
        gone = {c.row for c in changes if c.kind not in ADDS}
        added = {c.row for c in changes if c.kind in ADDS}
        return problems, gone & added if self.view.key is None else set()

    def end(self) -> list[str]:
        return self._run(Step(0, command="end"))[1]

    def _run(self, step: Step) -> tuple[list[SinkChange], list[str]]:
        outcome = self._backend.run_step(step, lambda _: True)
        records = outcome.records.get(SINK, ())
        changes = [change for record in records for change in decode(self._sink, record)]
        self.view.apply(changes)
        rejected = [f"rejected: {reason}" for _, reason in outcome.rejects]
        return changes, [*self.view.problems, *rejected]


def canonical_rows(rows: Sequence[Row], types: Sequence[DataType]) -> Counter[Row]:
    return Counter(tuple(canonical(v, t) for v, t in zip(row, types, strict=True)) for row in rows)


def difference(view: SinkView, expected: Counter[Row]) -> list[str]:
    """An upsert sink shows any one row of those that have a key."""
    if view.key is None:
        found = view.contents()
        missing = [f"missing: {row_text(row)}" for row in (expected - found).elements()]
        return missing + [f"too much: {row_text(row)}" for row in (found - expected).elements()]
    wanted: dict[Row, set[Row]] = {}
    for row in expected:
        wanted.setdefault(tuple(row[i] for i in view.key), set()).add(row)
    problems = [f"missing: a row for {row_text(k)}" for k in wanted if k not in view.by_key]
    shown = view.by_key.items()
    return problems + [f"too much: {row_text(r)}" for k, r in shown if r not in wanted.get(k, ())]

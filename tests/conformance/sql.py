"""SQL cases: a job file made of the case's tables, fed with real bytes, through every layer."""

from collections.abc import Callable, Iterable
from typing import Any

from spark_jobs.errors import RejoinError
from spark_jobs.scenario.file import Scenario, Step
from spark_jobs.scenario.fold import SinkView, change_text, row_text, view_difference
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Change, Encoder, Record, decode
from spark_jobs.scenario.runner import Backend, BoundScenario, bind_scenario
from spark_jobs.scenario.values import Row, canonical
from spark_jobs.sql.types.data_types import DataType
from tests.conformance.case import Case, Failed, Skipped
from tests.conformance.feeding import PAUSE_MS, Feeding, feedings
from tests.conformance.job import SINK, Place, job_text
from tests.harness.gateway import kernel

# what a case may need and we may lack; anything else that is refused has failed
MAY_LACK = (
    "map-type",
    "correlated-aggregate",
    "scalar-count-rewrite",
    "distinct-subquery",
)


# what the notes of a case say whose changelog is that of one order of arrival between tables
_ONE_ARRIVAL = "arrival-dependent"


def run_sql_case(case: Case, in_spark: Callable[[BoundScenario], Backend] | None = None) -> None:
    """In memory in every order that is allowed, or once in Spark."""
    bound = bind_case(case)
    expected = Expected(case, bound)
    ways = feedings(case, [plan.root for plan in bound.plans])
    if in_spark is None:
        for feeding in ways:
            _Run(case, bound, expected, MemoryBackend(bound, kernel())).all(feeding)
        return
    first = next(ways)
    if "pause" in first.actions:
        raise Skipped("processing time passes: in memory only")
    _Run(case, bound, expected, in_spark(bound)).all(first)


def bind_case(case: Case, place: Place | None = None) -> BoundScenario:
    """Its plan; raises Skipped where the case needs what we may lack, Failed otherwise."""
    try:
        return bind_scenario(Scenario(case["name"], job_text(case, place), ()))
    except RejoinError as error:
        told = error.render().replace("\n", " | ")
        lacking = [need for need in case["requires"] if need in MAY_LACK]
        if lacking:
            raise Skipped(f"{', '.join(lacking)}: not supported") from error
        raise Failed(told) from error


class Expected:
    """What a case expects, in the types of its sink."""

    def __init__(self, case: Case, bound: BoundScenario) -> None:
        self.table = bound.tables[SINK]
        self._types = [column.type for column in self.table.columns]
        self.final = self._rows(case["expected_final"])
        before = case.get("expected_before_restart")
        self.before_restart = None if before is None else self._rows(before)
        self.changelog = [
            Change(row[0], self._rows([row[1:]])[0])
            for row in case.get("expected_changelog") or ()
            if _ONE_ARRIVAL not in case.get("notes", "")
        ]
        self.is_ordered = case.get("expected_changelog_order") == "per-key"

    def _rows(self, rows: Iterable[list[Any]]) -> list[Row]:
        return [
            tuple(comparable(canonical(v, t), t) for v, t in zip(row, self._types, strict=True))
            for row in rows
        ]

    def changes(self, record: Record) -> list[Change]:
        return [
            Change(
                change.kind,
                tuple(comparable(v, t) for v, t in zip(change.row, self._types, strict=True)),
            )
            for change in decode(self.table, record)
        ]


def compare(expected: list[Row], view: SinkView, mode: str) -> None:
    """Raise Failed where what a reader of the sink sees are other rows."""
    wanted = SinkView(None)
    wanted.rows.update(expected)
    problems = [*view.problems, *view_difference(wanted, view)]
    if problems:
        more = f" and {len(problems) - 6} more" if len(problems) > 6 else ""
        raise Failed(f"{mode}: " + "; ".join(problems[:6]) + more)


def comparable(value: Any, data_type: DataType) -> Any:
    """Doubles to twelve digits: another order of multiplication may move the last ones."""
    if data_type.name in ("DOUBLE", "FLOAT") and value is not None:
        return float(f"{value:.12g}")
    return value


class _Run:
    """A case in one way of feeding it."""

    def __init__(
        self, case: Case, bound: BoundScenario, expected: Expected, backend: Backend
    ) -> None:
        self._case = case
        self._bound = bound
        self._expected = expected
        self._view = SinkView.of(bound.tables[SINK])
        self._changes: list[Change] = []
        self._encoders = {name: Encoder(bound.tables[name]) for name in case["tables"]}
        self._backend = backend

    def all(self, feeding: Feeding) -> None:
        if feeding.says_loaded and isinstance(self._backend, MemoryBackend):
            self._backend.hold_loaded()
        for action in feeding.actions:
            match action:
                case "restart":
                    self._step(Step(0, "restart"))
                case "phase":
                    self._compare_before_restart(feeding.name)
                    self._step(Step(0, "restart"))
                case "pause":
                    self._step(Step(0, "advance", PAUSE_MS))
                case ("loaded", str(table)):
                    self._step(Step(0, "loaded", table=table))
                case list(rows):
                    for row in rows:
                        self._backend.feed(row.table, self._encoders[row.table].encode([row]))
                    self._step(Step(0))
        self._step(Step(0, "end"))
        compare(self._expected.final, self._view, feeding.name)
        if self._expected.changelog and (feeding.is_fine or self._is_insert_only()):
            self._compare_changelog(feeding.name)

    def _step(self, step: Step) -> None:
        outcome = self._backend.run_step(step, lambda _: True)
        if outcome.rejects:
            raise Failed(f"rejects {outcome.rejects}")
        for record in outcome.records.get(SINK, ()):
            changes = self._expected.changes(record)
            self._changes += changes
            self._view.apply(changes)

    def _is_insert_only(self) -> bool:
        return all(change.kind == "+I" for change in self._expected.changelog)

    def _compare_before_restart(self, mode: str) -> None:
        if self._expected.before_restart is not None:
            compare(self._expected.before_restart, self._view, f"{mode}, before the restart")

    def _compare_changelog(self, mode: str) -> None:
        wanted = [self._kind(change) for change in self._expected.changelog]
        found = [self._kind(change) for change in self._changes]
        if sorted(map(change_text, wanted)) != sorted(map(change_text, found)):
            raise Failed(f"{mode}: changelog {[change_text(c) for c in found]}")
        if not self._expected.is_ordered:
            return
        key = self._key()
        for value in {tuple(c.row[p] for p in key) for c in wanted}:
            of_key = [change_text(c) for c in wanted if tuple(c.row[p] for p in key) == value]
            told = [change_text(c) for c in found if tuple(c.row[p] for p in key) == value]
            if of_key != told:
                raise Failed(f"{mode}: changelog of {row_text(value)}: {told}, expected {of_key}")

    def _kind(self, change: Change) -> Change:
        """An upsert sink's records do not tell +I from +U."""
        is_upsert = self._expected.table.connector == "upsert-kafka"
        return Change("+U", change.row) if is_upsert and change.kind == "+I" else change

    def _key(self) -> list[int]:
        """Columns of the result that no two of its rows share, as the sink or the plan says."""
        names = [name for name, _ in self._case["output_columns"]]
        [root] = [plan.root for plan in self._bound.plans]
        known = self._case.get("sink_primary_key") or next(
            (key for i in root.inputs for key in i.unique_keys if set(key) <= set(names)), names
        )
        return [names.index(name) for name in known]

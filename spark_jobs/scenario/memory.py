"""Runs a scenario in the kernel alone, in a JVM without Spark: each step is one micro-batch."""

import base64
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from spark_jobs.errors import ScenarioError
from spark_jobs.functions.computing import FunctionFailure
from spark_jobs.kernel.calls import Kernel
from spark_jobs.plan.nodes.physical import KafkaSink, Physical, Results
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.scenario.file import Step
from spark_jobs.scenario.python_values import PythonValues
from spark_jobs.scenario.records import Record, to_base64
from spark_jobs.scenario.runner import BoundScenario, StepOutcome, exchanged_sinks
from spark_jobs.streaming.failure import JavaError


class MemoryBackend:
    """Runs each INSERT separately and feeds all of them the same records."""

    exact = True

    def __init__(self, bound: BoundScenario, kernel: Kernel) -> None:
        self._runs = [_LocalRun(plan.root, kernel) for plan in bound.plans]
        if bound.scenario.says_loaded:
            self.hold_loaded()
        self._topics = {bound.tables[name].topics[0]: name for name in bound.sinks}
        self._exchanged = exchanged_sinks(bound)
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._clock_ms = 0

    def feed(self, table: str, records: Sequence[Record]) -> None:
        rows = []
        for record in records:
            place = (table, record.partition)
            rows.append(_as_json(record, self._offsets[place]))
            self._offsets[place] += 1
        for run in self._runs:
            run.feed(table, rows)

    def run_step(self, step: Step, is_settled: Callable[[StepOutcome], bool]) -> StepOutcome:
        """Raises ScenarioError where a job would fail, for example at a bad record."""
        try:
            return self._run_step(step)
        except FunctionFailure as failure:
            hint = "give NULL back for what the function has no value for"
            raise ScenarioError(
                "SCENARIO_STEP_FAILED",
                f"the job fails at this step: {failure}",
                hint,
                line=step.line,
                column=1,
            ) from failure
        except JavaError as failure:
            raise ScenarioError(
                "SCENARIO_STEP_FAILED",
                f"the job fails at this step: {_first_line(failure)}",
                "a record that cannot be read stops a job unless 'rejoin.on-error' of its table "
                "says otherwise",
                line=step.line,
                column=1,
            ) from failure

    def _run_step(self, step: Step) -> StepOutcome:
        match step.command:
            case "restart":
                self.restart()
            case "advance":
                self.advance(step.advance_ms)
            case "loaded":
                self.loaded(step.table)
            case "end":
                return self._outcome([run.end() for run in self._runs])
        return self._outcome([run.step() for run in self._runs])

    def advance(self, ms: int) -> None:
        """Advance processing time."""
        self._clock_ms += ms
        for run in self._runs:
            run.jvm.advance(self._clock_ms)

    def hold_loaded(self) -> None:
        """Treat initial content as incomplete until a step `loaded`; called before the first."""
        for run in self._runs:
            run.jvm.holdLoaded()

    def loaded(self, table: str) -> None:
        for run in self._runs:
            run.jvm.loaded(table)

    def restart(self) -> None:
        for run in self._runs:
            run.jvm.restart()

    def finish(self) -> StepOutcome:
        """One more step, which must not emit anything."""
        return self._outcome([run.step() for run in self._runs])

    def _outcome(self, outputs: Sequence[Any]) -> StepOutcome:
        records: dict[str, list[Record]] = defaultdict(list)
        waiting: dict[str, list[Record]] = defaultdict(list)
        rejects: list[tuple[str, str]] = []
        for output in outputs:
            for record in output["records"]:
                key, value = _bytes(record["key"]), _bytes(record["value"])
                name = self._topics[record["topic"]]
                waits = name in self._exchanged and not record["retraction"]
                (waiting if waits else records)[name].append(Record(key, value))
            rejects += [(r["topic"], r["reason"]) for r in output["rejects"]]
        for name, additions in waiting.items():
            records[name] += additions
        return StepOutcome(records, rejects)


def _first_line(failure: Any) -> str:
    """The message of a Java exception, without its stack trace."""
    message = str(failure.java_exception.getMessage() or failure.java_exception.toString())
    return message.splitlines()[0]


class _LocalRun:
    """A LocalRun of the kernel, fed only with the tables that its plan reads."""

    def __init__(self, root: Physical, kernel: Kernel) -> None:
        self.jvm = kernel.local(to_json(root))
        self._tables = {scan.table for scan in scans(root)}
        inputs = root.inputs if isinstance(root, KafkaSink | Results) else ()
        self._python = [[PythonValues(column) for column in each.computed] for each in inputs]

    def step(self) -> Any:
        """What one micro-batch gives out."""
        return self._completed(self.jvm.step())

    def end(self) -> Any:
        return self._completed(self.jvm.end())

    def _completed(self, text: str) -> Any:
        """The output, after Python has computed the columns that it is asked for."""
        output = json.loads(text, parse_float=Decimal)
        while "arguments" in output:
            column = self._python[output["input"]][output["column"]]
            text = self.jvm.computed(json.dumps(column.values(output["arguments"])))
            output = json.loads(text, parse_float=Decimal)
        return output

    def feed(self, table: str, rows: list[dict[str, Any]]) -> None:
        if table in self._tables and rows:
            self.jvm.feed(table, json.dumps(rows))


def _as_json(record: Record, offset: int) -> dict[str, Any]:
    headers = [{"key": k, "value": to_base64(v)} for k, v in record.headers]
    return {
        "partition": record.partition,
        "offset": offset,
        "timestamp": record.timestamp_ms,
        "key": to_base64(record.key),
        "value": to_base64(record.value),
        "headers": headers,
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)

"""Shows results of scenarios: aligned text for people, one JSON document for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from spark_jobs.scenario.fold import Compared, RowMark
from spark_jobs.scenario.records import physical_columns
from spark_jobs.scenario.runner import NotRefused, SinkDifference, StepDifference
from spark_jobs.scenario.suite import Result, ScenarioOutcome
from spark_jobs.scenario.values import literal_text
from spark_jobs.sql.catalog import Table
from spark_jobs.terminal import aligned

_STYLES: dict[ScenarioOutcome, str] = {"passed": "green", "failed": "bold red", "error": "bold red"}
_MARKS: dict[RowMark, tuple[str, str, str]] = {
    "same": (" ", "", "dim"),
    "missing": ("-", "missing", "red"),
    "extra": ("+", "not expected", "yellow"),
}


def show_result(result: Result, width: int, console: Console) -> None:
    """Print a line for the scenario, and below it what is wrong."""
    name, steps = str(result.path).ljust(width), f"{result.steps} step"
    line = Text.assemble(
        (f"{result.outcome.upper():<7}", _STYLES[result.outcome]),
        f" {name}  ",
        (f"{steps + ('' if result.steps == 1 else 's'):>9}  {result.seconds:6.2f} s", "dim"),
    )
    console.print(line)
    for problem in _problem(result):
        console.print(problem)


def problem_lines(result: Result) -> list[str]:
    """What is wrong, as plain text lines."""
    return [text.plain for text in _problem(result)]


def headline(result: Result) -> str:
    """What is wrong in a few words."""
    match result.failed:
        case StepDifference() as differs:
            return f"step {differs.number} (line {differs.line}) differs"
        case NotRefused() as accepted:
            return str(accepted)
    return "" if result.error is None else str(result.error)


def summary(results: Sequence[Result], seconds: float) -> Text:
    counts = Counter(result.outcome for result in results)
    parts = [(f"{counts['passed']} passed", "green" if counts["passed"] else "")]
    if counts["failed"]:
        parts.append((f", {counts['failed']} failed", _STYLES["failed"]))
    if counts["error"]:
        parts.append((f", {counts['error']} with errors", _STYLES["error"]))
    return Text.assemble(*parts, f" in {seconds:.1f} s")


def as_json(results: Sequence[Result], seconds: float) -> dict[str, object]:
    counts = Counter(result.outcome for result in results)
    return {
        "version": 1,
        "passed": counts["passed"],
        "failed": counts["failed"],
        "errors": counts["error"],
        "seconds": round(seconds, 3),
        "scenarios": [_result_json(result) for result in results],
    }


def _result_json(result: Result) -> dict[str, object]:
    problems = () if result.error is None else result.error.problems
    differs = result.failed if isinstance(result.failed, StepDifference) else None
    return {
        "name": result.path.stem,
        "file": str(result.path),
        "outcome": result.outcome,
        "seconds": round(result.seconds, 3),
        "steps": result.steps,
        "message": headline(result) or None,
        "difference": None if differs is None else _difference_json(differs),
        "errors": [problem.json() for problem in problems],
    }


def _difference_json(differs: StepDifference) -> dict[str, object]:
    return {
        "step": differs.number,
        "line": differs.line,
        "sinks": [_sink_json(sink) for sink in differs.sinks],
        "notes": list(differs.notes),
    }


def _sink_json(sink: SinkDifference) -> dict[str, object]:
    columns = [c.name for c in physical_columns(sink.table)]
    rows = [
        {"is": row.mark, "kind": row.change.kind, "values": _cells(sink.table, row)}
        for row in sink.rows
    ]
    return {
        "sink": sink.table.name,
        "columns": columns,
        "rows": rows,
        "notes": list(sink.notes),
    }


def _problem(result: Result) -> Iterator[Text]:
    if result.error is not None:
        for line in result.error.render().splitlines():
            yield Text(f"  {line}")
    elif isinstance(result.failed, StepDifference):
        differs = result.failed
        for sink in differs.sinks:
            yield Text(f"  step {differs.number} (line {differs.line}), {_counted(sink)}", "bold")
            yield from _rows(sink)
            yield from (Text(f"      {note}", "red") for note in sink.notes)
        for note in differs.notes:
            yield Text(f"  step {differs.number} (line {differs.line}), {note}", "red")
    elif result.failed is not None:
        yield Text(f"  {result.failed}")


def _counted(sink: SinkDifference) -> str:
    counts = Counter(row.mark for row in sink.rows)
    parts = [f"{counts[mark]} {_MARKS[mark][1]}" for mark in ("missing", "extra") if counts[mark]]
    return f"sink {sink.table.name}" + (f": {', '.join(parts)}" if parts else "")


def _rows(sink: SinkDifference) -> Iterator[Text]:
    if not sink.rows:
        return
    columns = [c.name for c in physical_columns(sink.table)]
    table = [["", "", *columns, ""]]
    table += [
        [_MARKS[row.mark][0], row.change.kind, *_cells(sink.table, row), _MARKS[row.mark][1]]
        for row in sink.rows
    ]
    heading, *lines = aligned(table)
    yield Text(f"      {heading}", "dim")
    for row, line in zip(sink.rows, lines, strict=True):
        yield Text(f"      {line}", _MARKS[row.mark][2])


def _cells(table: Table, row: Compared) -> list[str]:
    values = zip(physical_columns(table), row.change.row, strict=True)
    return [literal_text(value, column.type) for column, value in values]

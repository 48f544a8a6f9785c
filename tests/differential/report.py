"""A failed case as a scenario file, with the changes that DuckDB's answers ask for."""

from collections import Counter
from collections.abc import Iterator, Sequence

from spark_jobs.scenario.values import Row, literal_text
from spark_jobs.sql.types.data_types import DataType
from tests.differential.case import (
    Case,
    Crashed,
    Differs,
    Outcome,
    Unjudged,
    canonical_rows,
)
from tests.differential.judge import Judge
from tests.differential.tables import DATA_TYPES, Change, Table


def report(case: Case, outcome: Outcome) -> str:
    """What is wrong, and the scenario."""
    match outcome:
        case Crashed(text) | Unjudged(text):
            problems: tuple[str, ...] = (text,)
        case Differs(step, found):
            problems = (f"step {step + 1} of {len(case.steps)}", *found)
        case _:
            problems = ()
    if isinstance(outcome, Unjudged):  # there is no answer to write down
        return "\n".join([f"{case.name}:", *(f"  {p}" for p in problems), case.job()])
    return "\n".join([f"{case.name}:", *(f"  {p}" for p in problems), scenario_text(case)])


def scenario_text(case: Case) -> str:
    """The file for `tests/scenarios`; its name and its first comment are for people to write."""
    lines = [f"# {case.name}", case.job()]
    tables = {table.name: table for table in case.tables}
    expected = _expected(case)
    for number, step in enumerate(case.steps):
        if number in case.restarts:
            lines += ["restart", ""]
        lines += [_arrives(tables[change.table], change) for change in step]
        if case.waits and number < len(case.steps) - 1:
            lines.append("")
            continue
        lines += [*(["", "end"] if case.waits else []), *next(expected), ""]
    return "\n".join(lines)


def _arrives(table: Table, change: Change) -> str:
    kinds = [DATA_TYPES[kind] for _, kind in table.columns]
    place = f"[{change.partition}]" if change.partition else ""
    return f"> {table.name}{place} {change.kind} {_row(change.row, kinds)}"


def _row(row: Row, types: Sequence[DataType]) -> str:
    return f"({', '.join(literal_text(v, t) for v, t in zip(row, types, strict=True))})"


def _expected(case: Case) -> Iterator[list[str]]:
    """The net changes of the answer, step by step; any row of an upsert sink's key will do."""
    fields = case.fields()
    types = [field.type for field in fields]
    key = [i for i, field in enumerate(fields) if field.name in case.key]
    judge = Judge()
    judge.begin(case.tables, case.views, case.query)
    before: Counter[Row] = Counter()
    for number, step in enumerate(case.steps):
        judge.apply(step)
        if case.waits and number < len(case.steps) - 1:
            continue
        after = canonical_rows(judge.answer(case.query), types)
        gone, new = before - after, after - before
        kept = {tuple(row[i] for i in key) for row in after} if key else set()
        lines = [
            f"< -D {_row(row, types)}"
            for row in gone.elements()
            if tuple(row[i] for i in key) not in kept
        ]
        yield lines + [f"< +I {_row(row, types)}" for row in new.elements()]
        before = after

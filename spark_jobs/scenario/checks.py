"""Checks that the rows of a scenario fit its tables, and reports all problems before it runs.

Without this, a row that no sink can receive would only show up as a difference.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal

from spark_jobs.errors import ScenarioError, SqlErrors
from spark_jobs.scenario.file import Expected, ExpectedDeadLetter, Input, Scenario, Step
from spark_jobs.scenario.literals import Literal
from spark_jobs.scenario.records import input_columns, kinds_of, physical_columns
from spark_jobs.sql.catalog import Column, Table
from spark_jobs.sql.parse.source import nearest
from spark_jobs.sql.types.data_types import DataType

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEXTS: dict[str, Callable[[str], object]] = {
    "DATE": date.fromisoformat,
    "TIME": time.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "TIMESTAMP_LTZ": datetime.fromisoformat,
}


def check_rows(scenario: Scenario, tables: Mapping[str, Table], sinks: Sequence[str]) -> None:
    """Raises SqlErrors with each line that does not fit the tables."""
    problems = [problem for step in scenario.steps for problem in _Checks(tables, sinks).of(step)]
    for problem in problems:
        problem.locate(scenario.text, scenario.source)
    if problems:
        raise SqlErrors(problems)


class _Checks:
    def __init__(self, tables: Mapping[str, Table], sinks: Sequence[str]) -> None:
        self._tables = tables
        self._sinks = sinks

    def of(self, step: Step) -> Iterator[ScenarioError]:
        for given in step.inputs:
            yield from self._input(given)
        for expected in step.expected:
            yield from self._expected(expected)
        for dead_letter in step.dead_letters:
            yield from self._dead_letter(dead_letter)
        if step.table and step.table not in self._tables:
            yield self._unknown_table(step.line, step.table, self._tables)

    def _input(self, given: Input) -> Iterator[ScenarioError]:
        table = self._tables.get(given.table)
        if table is None:
            yield self._unknown_table(given.line, given.table, self._tables)
        elif given.kind == "raw":
            yield from _raw_record(given)
        elif given.kind not in kinds_of(table):
            yield _unknown_kind(given.line, table, given.kind, "records")
        else:
            yield from _values(given, table, input_columns(table))

    def _expected(self, row: Expected) -> Iterator[ScenarioError]:
        if row.table is None and len(self._sinks) > 1:
            message = f"the row names none of the sinks {', '.join(self._sinks)}"
            yield _error("SCENARIO_TABLE", row.line, message, f"< {self._sinks[0]} {row.kind} ...")
            return
        name = row.table or self._sinks[0]
        if name not in self._sinks:
            yield self._unknown_table(row.line, name, self._sinks)
            return
        table = self._tables[name]
        if row.kind not in kinds_of(table):
            yield _unknown_kind(row.line, table, row.kind, "results")
        else:
            columns = physical_columns(table)
            yield from _values(row, table, columns)

    def _dead_letter(self, dead_letter: ExpectedDeadLetter) -> Iterator[ScenarioError]:
        table = self._tables.get(dead_letter.table)
        if table is None:
            yield self._unknown_table(dead_letter.line, dead_letter.table, self._tables)
        elif table.dead_letter_topic is None:
            message = f"{dead_letter.table} has no 'rejoin.dead-letter.topic'"
            hint = f"its 'rejoin.on-error' is '{table.on_error}'"
            yield _error("SCENARIO_TABLE", dead_letter.line, message, hint)

    def _unknown_table(
        self, line: int, name: str, known: Mapping[str, Table] | Sequence[str]
    ) -> ScenarioError:
        what = "sink" if known is self._sinks else "table"
        hint = nearest(name, known) or f"known: {', '.join(known)}"
        return _error("SCENARIO_TABLE", line, f"no {what} {name}", hint)


def _values(
    row: Input | Expected, table: Table, columns: Sequence[Column]
) -> Iterator[ScenarioError]:
    names = [c.name for c in columns]
    if isinstance(row.values, dict):
        for name in row.values:
            if name not in names:
                hint = nearest(name, names) or f"its columns: {', '.join(names)}"
                yield _error("SCENARIO_ROW", row.line, f"{table.name} has no column {name}", hint)
        named = row.values
    elif len(row.values) != len(names):
        counts = f"{len(row.values)} values for the {len(names)} columns of {table.name}"
        yield _error("SCENARIO_ROW", row.line, counts, f"({', '.join(names)})")
        return
    else:
        named = dict(zip(names, row.values, strict=True))
    for column in columns:
        value = named.get(column.name)
        if not fits(value, column.type):
            message = f"{column.name} is {column.type.sql()}, and {value!r} is not"
            yield _error("SCENARIO_ROW", row.line, message, "docs/scenarios.md: Values")


def fits(value: Literal, data_type: DataType) -> bool:
    """Whether a literal is a value of the type; NULL fits every type.

    >>> fits("5", DataType("INT")), fits(300, DataType("TINYINT")), fits(5, DataType("DOUBLE"))
    (False, False, True)
    """
    if value is None:
        return True
    match data_type.name:
        case "STRING":
            return isinstance(value, str)
        case "BOOLEAN":
            return isinstance(value, bool)
        case "FLOAT" | "DOUBLE":
            return isinstance(value, int | Decimal) and not isinstance(value, bool)
        case "DECIMAL":
            is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
            return is_number and _has_digits(Decimal(str(value)), data_type)
        case "BYTES":
            return isinstance(value, bytes)
        case "ROW" | "ARRAY" | "MAP":
            return _parts_fit(value, data_type)
        case name if name in _INTEGERS:
            half = 1 << (_INTEGERS[name] - 1)
            return isinstance(value, int) and not isinstance(value, bool) and -half <= value < half
        case name if name in _TEXTS:
            return isinstance(value, str) and _parses(_TEXTS[name], value)
        case _:
            return False


def _has_digits(value: Decimal, data_type: DataType) -> bool:
    """Whether a number, without trailing zeros, fits the precision and scale of the type."""
    scale, whole = data_type.scale or 0, (data_type.precision or 0) - (data_type.scale or 0)
    exponent = value.normalize().as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= scale and value.adjusted() < max(whole, 1)


def _parts_fit(value: Literal, data_type: DataType) -> bool:
    match value:
        case tuple() if data_type.name == "ROW" and len(value) == len(data_type.fields):
            parts = zip(value, data_type.fields, strict=True)
            return all(fits(v, f.type) for v, f in parts)
        case list() if data_type.name == "ARRAY" and data_type.element is not None:
            return all(fits(v, data_type.element) for v in value)
        case dict() if data_type.name == "MAP" and data_type.element is not None:
            return all(fits(v, data_type.element) for v in value.values())
        case _:
            return False


def _parses(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _raw_record(given: Input) -> Iterator[ScenarioError]:
    values = given.values
    is_pair = isinstance(values, tuple) and len(values) == 2
    if not is_pair or not all(v is None or isinstance(v, str | bytes) for v in values):
        message = "a raw record is (key, value), each of them text, bytes or NULL"
        yield _error("SCENARIO_ROW", given.line, message, "> orders raw ('k', x'00ff')")


def _unknown_kind(line: int, table: Table, kind: str, what: str) -> ScenarioError:
    message = f"{what} of {table.name} are never {kind}"
    hint = f"allowed: {', '.join(kinds_of(table))}, because its changelog mode is "
    return _error("SCENARIO_ROW", line, message, hint + table.changelog)


def _error(code: str, line: int, message: str, hint: str) -> ScenarioError:
    return ScenarioError(code, message, hint, line=line, column=1)

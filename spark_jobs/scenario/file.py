"""Parses scenario files; docs/scenarios.md describes the format."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal as OneOf
from typing import TypeAlias, cast

from spark_jobs.errors import PositionedError, ScenarioError, SqlErrors
from spark_jobs.scenario.literals import LiteralError, RowLiteral, parse_row
from spark_jobs.settings import read_sql
from spark_jobs.sql.parse.source_text import nearest

Kind: TypeAlias = OneOf["+I", "-U", "+U", "-D"]
InputKind: TypeAlias = Kind | OneOf["raw"]
Command: TypeAlias = OneOf["restart", "advance", "end", "loaded"]

_INPUT = re.compile(r">\s*(\w+)(?:\[(\d+)\])?\s+(\+I|-U|\+U|-D|raw)\s*([({].*[)}])\s*$")
_EXPECTED = re.compile(r"<\s*(?:(\w+)\s+)?(\+I|-U|\+U|-D)\s*([({].*[)}])\s*$")
_DEAD_LETTER = re.compile(r"<\s*dead-letter\s+(\w+)\s+(\S+)\s*$")
_ADVANCE = re.compile(r"advance\s+(\d+)\s*(ms|s|m|h)\s*$")
_LOADED = re.compile(r"loaded\s+(\w+)\s*$")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_STEP_START = re.compile(r"[<>]|(restart|end)\s*$|advance\s+\d|loaded\s+\w+\s*$")
_KEY = re.compile(r"([A-Za-z_]\w*):(?:\s+(.*?))?\s*$")
_KEYS = ("fails", "sql_file")
_KINDS = "+I, -U, +U, -D, and raw for an input"


@dataclass(frozen=True, slots=True)
class Input:
    """A row that arrives; with kind `raw`, `values` are the key and value of the record itself."""

    line: int
    table: str
    partition: int
    kind: InputKind
    values: RowLiteral


@dataclass(frozen=True, slots=True)
class Expected:
    """A row that a sink must receive; `table` may be None if there is only one sink."""

    line: int
    table: str | None
    kind: Kind
    values: RowLiteral


@dataclass(frozen=True, slots=True)
class ExpectedDeadLetter:
    """A record of `table` that must be rejected for this reason."""

    line: int
    table: str
    reason: str


@dataclass(slots=True)
class Step:
    """Rows that arrive together, or a command, and the rows that must follow.

    `table` is the table of the command `loaded`.
    """

    line: int
    command: Command | None = None
    advance_ms: int = 0
    table: str = ""
    inputs: list[Input] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    dead_letters: list[ExpectedDeadLetter] = field(default_factory=list)

    @property
    def expects_something(self) -> bool:
        return bool(self.expected or self.dead_letters)


@dataclass(frozen=True, slots=True)
class Scenario:
    """SQL and steps; with `fails`, the SQL must be refused with that error code.

    `text` is the content of the file; `source` and `sql_source` name it and the SQL in errors.
    """

    name: str
    sql: str
    steps: tuple[Step, ...]
    fails: str | None = None
    text: str = ""
    source: str = "<scenario>"
    sql_source: str = "<sql>"

    @property
    def says_loaded(self) -> bool:
        """Whether a step `loaded` ends the initial content of a table; else the first step does."""
        return any(step.command == "loaded" for step in self.steps)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file and the job file that it names.

    Raises:
        SqlErrors: all problems of the file.
        ConfigError: a file cannot be read.
    """
    return parse_scenario(read_sql(path), path.stem, path)


def parse_scenario(text: str, name: str, path: Path | None = None) -> Scenario:
    """Parse a header (`fails:`, `sql_file:`, SQL) up to the first step line, then the steps.

    The SQL keeps its line numbers, so that errors have positions in the scenario file.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    first = next((i for i, line in enumerate(lines) if _STEP_START.match(line)), len(lines))
    header = _Header()
    for number, line in enumerate(lines[:first], 1):
        header.add(number, line)
    steps = _Steps()
    for number, line in enumerate(lines[first:], first + 1):
        steps.add(number, line)
    header.end(has_rows=any(step.inputs for step in steps.done))
    sql, sql_source = "\n".join(header.sql).rstrip() + "\n", str(path or name)
    problems = [*header.problems, *steps.problems]
    if header.sql_file is not None and not problems:
        job = (path or Path()).parent / header.sql_file
        sql, sql_source = read_sql(job), str(job)
    for problem in problems:
        problem.locate(text, str(path or name))
    if problems:
        raise SqlErrors(problems)
    return Scenario(name, sql, tuple(steps.done), header.fails, text, str(path or name), sql_source)


class _Header:
    """Collects keys such as `fails:`, and from the first other line on the SQL."""

    def __init__(self) -> None:
        self.sql: list[str] = []
        self.fails: str | None = None
        self.sql_file: str | None = None
        self.problems: list[PositionedError] = []
        self._sql_began = 0

    def add(self, number: int, line: str) -> None:
        key = None if self._sql_began else _KEY.match(line)
        if key is not None:
            self._key(number, key[1], key[2] or "")
        is_sql = key is None and not line.startswith("#")
        if is_sql and line.strip() and not self._sql_began:
            self._sql_began = number
        self.sql.append(line if is_sql else "")

    def end(self, *, has_rows: bool) -> None:
        if self.sql_file is not None and self._sql_began:
            self._wrong(
                "SCENARIO_SYNTAX",
                self._sql_began,
                "the file has 'sql_file' and SQL of its own",
                "keep one of them",
            )
        elif self.sql_file is None and not self._sql_began:
            hint = "write CREATE TABLE and INSERT INTO above the first row, or sql_file: job.sql"
            self._wrong("SCENARIO_EMPTY", 1, "there is no SQL before the first step", hint)
        if self.fails is None and not has_rows:
            hint = "write a row that arrives: > orders +I (1, 'Ada')"
            self._wrong("SCENARIO_EMPTY", self._sql_began or 1, "no row ever arrives", hint)

    def _key(self, number: int, name: str, value: str) -> None:
        if name not in _KEYS:
            hint = nearest(name, _KEYS) or f"known: {' and '.join(_KEYS)}"
            self._wrong("SCENARIO_KEY", number, f"unknown key '{name}'", hint)
        elif not value:
            self._wrong("SCENARIO_KEY", number, f"'{name}' has no value", f"{name}: value")
        elif name == "fails":
            self.fails = value
        else:
            self.sql_file = value

    def _wrong(self, code: str, line: int, message: str, hint: str) -> None:
        self.problems.append(ScenarioError(code, message, hint, line=line, column=1))


class _Steps:
    """Collects steps: one ends at a blank line, at a command, and at input after expected rows."""

    def __init__(self) -> None:
        self.done: list[Step] = []
        self.problems: list[PositionedError] = []
        self._open = False

    def add(self, number: int, line: str) -> None:
        text = line.strip()
        if not text:
            self._open = False
        elif not text.startswith("#"):
            try:
                self._add(number, text)
            except LiteralError as error:
                column = min(line.find(mark) + 1 or len(line) for mark in "({")
                self._wrong("SCENARIO_ROW", number, str(error), "docs/scenarios.md: Values", column)

    def _add(self, number: int, text: str) -> None:
        if found := _INPUT.match(text):
            table, partition, kind, row = found.groups()
            values = parse_row(row)
            step = self._step(number, starts=self._open and self.done[-1].expects_something)
            step.inputs.append(
                Input(number, table, int(partition or 0), cast("InputKind", kind), values)
            )
        elif found := _EXPECTED.match(text):
            table, kind, row = found.groups()
            expected = Expected(number, table, cast("Kind", kind), parse_row(row))
            if (last := self._last(number)) is not None:
                last.expected.append(expected)
        elif found := _DEAD_LETTER.match(text):
            if (last := self._last(number)) is not None:
                last.dead_letters.append(ExpectedDeadLetter(number, found[1], found[2]))
        elif found := _ADVANCE.match(text):
            step = self._step(number, starts=True)
            step.command = "advance"
            step.advance_ms = int(found[1]) * _UNITS[found[2]]
        elif found := _LOADED.match(text):
            step = self._step(number, starts=True)
            step.command, step.table = "loaded", found[1]
        elif text in ("restart", "end"):
            self._step(number, starts=True).command = "restart" if text == "restart" else "end"
        else:
            self._wrong("SCENARIO_SYNTAX", number, f"cannot read {text!r}", _hint(text))

    def _step(self, number: int, starts: bool) -> Step:
        if starts or not self._open or self.done[-1].command is not None:
            self.done.append(Step(number))
            self._open = True
        return self.done[-1]

    def _last(self, number: int) -> Step | None:
        if self.done:
            return self.done[-1]
        hint = "write '>' lines, rows that arrive, above the '<' lines that must follow from them"
        self._wrong("SCENARIO_SYNTAX", number, "a row is expected before any arrived", hint)
        return None

    def _wrong(self, code: str, line: int, message: str, hint: str, column: int = 1) -> None:
        self.problems.append(ScenarioError(code, message, hint, line=line, column=column))


def _hint(text: str) -> str:
    match text[0]:
        case ">":
            return f"write > TABLE KIND (values); kinds: {_KINDS}"
        case "<":
            return (
                f"write < TABLE KIND (values) or < dead-letter TABLE REASON; the kinds are {_KINDS}"
            )
        case _ if text.startswith("advance"):
            return "write advance 500ms; units: ms, s, m, h"
        case _ if text.split()[0] == "loaded":
            return "loaded needs the name of one table: loaded TABLE"
    known = nearest(text.partition(" ")[0], ("restart", "advance", "loaded", "end"))
    return known or "a step is >, <, restart, advance 5s, loaded TABLE or end; # is a comment"

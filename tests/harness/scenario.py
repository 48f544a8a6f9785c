"""Reads scenario files; docs/scenarios.md describes the format."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal as OneOf
from typing import TypeAlias, cast

from tests.harness.literals import Literal, LiteralError, parse_row

Kind: TypeAlias = OneOf["+I", "-U", "+U", "-D"]
InputKind: TypeAlias = Kind | OneOf["raw"]
Command: TypeAlias = OneOf["restart", "advance", "end", "loaded"]

_INPUT = re.compile(r">\s*(\w+)(?:\[(\d+)\])?\s+(\+I|-U|\+U|-D|raw)\s*(\(.*\))\s*$")
_EXPECTED = re.compile(r"<\s*(?:(\w+)\s+)?(\+I|-U|\+U|-D)\s*(\(.*\))\s*$")
_DEAD_LETTER = re.compile(r"<\s*dead-letter\s+(\w+)\s+(\S+)\s*$")
_ADVANCE = re.compile(r"advance\s+(\d+)\s*(ms|s|m|h)\s*$")
_LOADED = re.compile(r"loaded\s+(\w+)\s*$")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_STEP_START = re.compile(r"[<>]|(restart|end)\s*$|advance\s+\d|loaded\s+\w+\s*$")


class ScenarioError(ValueError):
    """The file does not follow the format."""


@dataclass(frozen=True, slots=True)
class Input:
    """A row that arrives; `kind` raw means that `values` are the record's key and value texts."""

    line: int
    table: str
    partition: int
    kind: InputKind
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """A row that must leave; without `table`, to the only sink."""

    line: int
    table: str | None
    kind: Kind
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of `table` that must be rejected, with this reason."""

    line: int
    table: str
    reason: str


@dataclass(slots=True)
class Step:
    """What happens at once, and what must come of it; `table` is the one that is `loaded`."""

    line: int
    command: Command | None = None
    advance_ms: int = 0
    table: str = ""
    inputs: list[Input] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)

    @property
    def expects_something(self) -> bool:
        return bool(self.expected or self.dead_letters)


@dataclass(frozen=True, slots=True)
class Scenario:
    """SQL and steps; with `fails`, the error code with which the SQL must be refused."""

    name: str
    sql: str
    steps: tuple[Step, ...]
    fails: str | None = None

    @property
    def says_loaded(self) -> bool:
        """Whether the steps say when initial content is complete; else the first step has it."""
        return any(step.command == "loaded" for step in self.steps)


def read_scenario(path: Path) -> Scenario:
    return parse_scenario(path.read_text(encoding="utf-8"), path.stem)


def parse_scenario(text: str, name: str) -> Scenario:
    """Header (SQL, `fails:`) up to the first step line, then steps.

    The SQL keeps its line numbers, so that an error's position is one in the file.
    """
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if _STEP_START.match(line)), len(lines))
    fails = None
    sql: list[str] = []
    for line in lines[:first]:
        if line.startswith("fails:"):
            fails = line.removeprefix("fails:").strip()
        sql.append("" if line.startswith(("#", "fails:")) else line)
    steps = _Steps(name)
    for number, line in enumerate(lines[first:], first + 1):
        steps.add(number, line)
    if fails is None and not any(step.inputs for step in steps.done):
        raise ScenarioError(f"{name}: no input row")
    return Scenario(name, "\n".join(sql).rstrip() + "\n", tuple(steps.done), fails)


class _Steps:
    """A step ends at a blank line, at a command, and where input follows an expected row."""

    def __init__(self, name: str) -> None:
        self.done: list[Step] = []
        self._name = name
        self._open = False

    def add(self, number: int, line: str) -> None:
        text = line.strip()
        if not text:
            self._open = False
        elif not text.startswith("#"):
            try:
                self._add(number, text)
            except LiteralError as error:
                raise ScenarioError(f"{self._name}:{number}: {error}") from error

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
            self._last(number).expected.append(expected)
        elif found := _DEAD_LETTER.match(text):
            self._last(number).dead_letters.append(DeadLetter(number, found[1], found[2]))
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
            raise ScenarioError(f"{self._name}:{number}: cannot read {text!r}")

    def _step(self, number: int, starts: bool) -> Step:
        if starts or not self._open or self.done[-1].command is not None:
            self.done.append(Step(number))
            self._open = True
        return self.done[-1]

    def _last(self, number: int) -> Step:
        if not self.done:
            raise ScenarioError(f"{self._name}:{number}: a row is expected before any input")
        return self.done[-1]

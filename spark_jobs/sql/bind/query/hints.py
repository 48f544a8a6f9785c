"""Hints of a query: `SELECT /*+ STATE_TTL('a' = '1d'), EARLY_FIRE('delay' = '5s') */ ...`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from sqlglot import exp

from spark_jobs.errors import PositionedError, SqlError, UnsupportedError
from spark_jobs.options.kinds import parse_duration_ms
from spark_jobs.sql.logical import EarlyFire, Position, TimeAttribute
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import Name

_TOKEN = re.compile(
    r"\s*(?:'(?P<text>(?:[^']|'')*)'|`(?P<quoted>[^`]*)`|(?P<word>\w+)|(?P<sign>\S))"
)


_EXAMPLES = {
    "STATE_TTL": "STATE_TTL('table' = '1 d')",
    "EARLY_FIRE": "EARLY_FIRE('delay' = '5 s')",
}
_EARLY_FIRE_OPTIONS = ("delay", "time-mode", "target")
_TIME_MODES: dict[str, TimeAttribute] = {"rowtime": "rowtime", "proctime": "proctime"}

Options: TypeAlias = dict[str, tuple[Name, Name]]
"""Each option by its name: name and value, as they are written."""


@dataclass(slots=True)
class Hints:
    """The hints of a query block: which table has which STATE_TTL, and when its joins pad early.

    What a join has taken of them is marked, as a hint that nothing heeds is refused.
    """

    source: SourceText
    ttl_ms: dict[str, int] = field(default_factory=dict)
    names: dict[str, Name] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    early_fire: EarlyFire | None = None
    early_fire_start: int = 0
    fires: bool = False

    def take(self, alias: str) -> int | None:
        """The TTL of a table that is one side of a regular join."""
        if alias in self.ttl_ms:
            self.taken.add(alias)
        return self.ttl_ms.get(alias)

    def take_early_fire(self) -> EarlyFire | None:
        """The EARLY_FIRE of a join of the block."""
        self.fires = True
        return self.early_fire

    def check(self, aliases: list[str], has_aggregate: bool) -> None:
        """Report names that are not tables of the block, and what no join of it can heed."""
        if self.early_fire is not None and not self.fires:
            problem = "EARLY_FIRE in a query without JOIN"
            hint = "write it behind the SELECT of the join"
            error = UnsupportedError("UNSUPPORTED_CLAUSE", problem, hint)
            self.source.report(error, self.early_fire_start)
        for alias, name in self.names.items():
            if alias not in aliases:
                hint = nearest(alias, aliases) or f"FROM has {', '.join(aliases)}"
                message = f"STATE_TTL names {alias}, which is not a table of this query"
                self.source.report(SqlError("UNKNOWN_TABLE", message, hint), name.start)
            elif alias not in self.taken:
                what = "an aggregate" if has_aggregate else "a table without a regular join"
                error = UnsupportedError(
                    "UNSUPPORTED_CLAUSE",
                    f"STATE_TTL of {alias} for {what} is not supported",
                    "SET 'table.exec.state.ttl' for the whole job instead",
                )
                self.source.report(error, name.start)


def read_hints(source: SourceText, node: exp.Expr | None) -> Hints:
    """The hints behind SELECT.

    Inside one hint the last value of a name counts, of several hints the first, as in Flink.

    Raises:
        PositionedError: a hint that is not known, or a malformed one.
    """
    found = Hints(source)
    if node is None:
        return found
    for hint, options in _HintReader(source, node.this, start_of(node)).hints():
        if hint.text.upper() == "EARLY_FIRE":
            fires = _early_fire(source, hint, options)
            if found.early_fire is None:
                found.early_fire, found.early_fire_start = fires, hint.start
            continue
        for key, (name, value) in options.items():
            ttl = _duration_ms(source, value)
            if key not in found.ttl_ms:
                found.ttl_ms[key], found.names[key] = ttl, name
    return found


def _early_fire(source: SourceText, hint: Name, options: Options) -> EarlyFire:
    """The options are those of Flink 2.4."""
    for key, (name, _) in options.items():
        if key not in _EARLY_FIRE_OPTIONS:
            way_out = nearest(key, _EARLY_FIRE_OPTIONS) or (
                f"its options are {', '.join(_EARLY_FIRE_OPTIONS)}"
            )
            message = f"the hint EARLY_FIRE has no option '{key}'"
            raise source.place(SqlError("UNKNOWN_OPTION", message, way_out), name.start)
    if "delay" not in options:
        error = SqlError("OPTION_MISSING", "EARLY_FIRE has no 'delay'", _EXAMPLES["EARLY_FIRE"])
        raise source.place(error, hint.start)
    delay = options["delay"][1]
    delay_ms = _duration_ms(source, delay)
    if delay_ms < 1:
        raise _wrong_value(source, "delay", delay, "a delay is at least 1 ms")
    mode = options.get("time-mode")
    time_mode = None if mode is None else _TIME_MODES.get(mode[1].text.lower())
    if mode is not None and time_mode is None:
        raise _wrong_value(source, "time-mode", mode[1], "write 'rowtime' or 'proctime'")
    target = options.get("target")
    if target is not None and target[1].text.lower() != "interval_join":
        raise _wrong_value(source, "target", target[1], "the only target is 'interval_join'")
    return EarlyFire(delay_ms, time_mode, Position(*source.position(hint.start)))


def _wrong_value(source: SourceText, option: str, value: Name, hint: str) -> PositionedError:
    message = f"EARLY_FIRE cannot have '{option}' = '{value.text}'"
    return source.place(SqlError("OPTION_VALUE", message, hint), value.start)


def _duration_ms(source: SourceText, value: Name) -> int:
    found = parse_duration_ms(value.text)
    if found is None:
        message = f"'{value.text}' is not a duration"
        error = SqlError("BAD_LITERAL", message, "write for example '1 d' or '12 h'")
        raise source.place(error, value.start)
    return found


class _HintReader:
    """Reads the text of one hint comment; `start` is where it stands in the file."""

    def __init__(self, source: SourceText, text: str, start: int) -> None:
        self.source = source
        body = text.removesuffix("*/")
        self.tokens = [m for m in _TOKEN.finditer(body, len("/*+"))]
        self.start = start
        self.end = start + len(body)
        self.at = 0
        self.example = _EXAMPLES["STATE_TTL"]

    def hints(self) -> Iterator[tuple[Name, Options]]:
        """Each hint with its options."""
        while self.at < len(self.tokens):
            name = self._name()
            if name.text.upper() not in _EXAMPLES:
                error = UnsupportedError(
                    "UNSUPPORTED_SYNTAX",
                    f"the hint {name.text.upper()} is not supported",
                    f"the hints are {' and '.join(_EXAMPLES)}",
                )
                raise self.source.place(error, name.start)
            self.example = _EXAMPLES[name.text.upper()]
            self._need("(")
            pairs = [self._pair()]
            while self._sign(","):
                pairs.append(self._pair())
            self._need(")")
            self._sign(",")
            yield name, {key.text: (key, value) for key, value in pairs}

    def _pair(self) -> tuple[Name, Name]:
        name = self._name()
        self._need("=")
        return name, self._name()

    def _name(self) -> Name:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        group = token.lastgroup if token is not None else None
        if token is None or group is None or group == "sign":
            self._fail("a name or a text")
        self.at += 1
        return Name(token[group].replace("''", "'"), self.start + token.start(group))

    def _sign(self, sign: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at]["sign"] == sign
        self.at += found
        return found

    def _need(self, sign: str) -> None:
        if not self._sign(sign):
            self._fail(f"'{sign}'")

    def _fail(self, expected: str) -> NoReturn:
        rest = self.tokens[self.at :]
        start = self.start + rest[0].start() if rest else self.end
        error = SqlError("SQL_SYNTAX", f"expected {expected} in the hint", self.example)
        raise self.source.place(error, start)

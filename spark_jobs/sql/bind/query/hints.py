"""STATE_TTL hints: `SELECT /*+ STATE_TTL('a' = '1d', 'b' = '2h') */ ...`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot import exp

from spark_jobs.errors import SqlError, UnsupportedError
from spark_jobs.options.kinds import parse_duration_ms
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import Name

_TOKEN = re.compile(
    r"\s*(?:'(?P<text>(?:[^']|'')*)'|`(?P<quoted>[^`]*)`|(?P<word>\w+)|(?P<sign>\S))"
)


@dataclass(slots=True)
class TtlHints:
    """The STATE_TTL of each table in a query block, and which of them a join has taken."""

    source: SourceText
    ttl_ms: dict[str, int] = field(default_factory=dict)
    names: dict[str, Name] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def take(self, alias: str) -> int | None:
        """The TTL of a table that is one side of a regular join."""
        if alias in self.ttl_ms:
            self.taken.add(alias)
        return self.ttl_ms.get(alias)

    def check(self, aliases: list[str], has_aggregate: bool) -> None:
        """Report names that are not tables of the block, and tables whose rows no join keeps."""
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


def read_hints(source: SourceText, node: exp.Expr | None) -> TtlHints:
    """The hints behind SELECT.

    Inside one hint the last value of a name counts, of several hints the first, as in Flink.

    Raises:
        PositionedError: another hint than STATE_TTL, or a malformed one.
    """
    found = TtlHints(source)
    if node is None:
        return found
    for pairs in _HintReader(source, node.this, start_of(node)).hints():
        here = {name.text: (name, value) for name, value in pairs}
        for key, (name, value) in here.items():
            ttl = parse_duration_ms(value.text)
            if ttl is None:
                message = f"'{value.text}' is not a duration"
                raise source.place(
                    SqlError("BAD_LITERAL", message, "write for example '1 d' or '12 h'"),
                    value.start,
                )
            if key not in found.ttl_ms:
                found.ttl_ms[key], found.names[key] = ttl, name
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

    def hints(self) -> Iterator[list[tuple[Name, Name]]]:
        """The pairs of each hint."""
        while self.at < len(self.tokens):
            name = self._name()
            if name.text.upper() != "STATE_TTL":
                error = UnsupportedError(
                    "UNSUPPORTED_SYNTAX",
                    f"the hint {name.text.upper()} is not supported",
                    "the only hint is STATE_TTL",
                )
                raise self.source.place(error, name.start)
            self._need("(")
            pairs = [self._pair()]
            while self._sign(","):
                pairs.append(self._pair())
            self._need(")")
            self._sign(",")
            yield pairs

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
        error = SqlError(
            "SQL_SYNTAX", f"expected {expected} in the hint", "STATE_TTL('table' = '1 d')"
        )
        raise self.source.place(error, start)

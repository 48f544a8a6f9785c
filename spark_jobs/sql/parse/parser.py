"""The text of a job file -> its statements. Whatever cannot be parsed is reported here."""

import re

from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.errors import SqlError, UnsupportedError, nesting_refused
from spark_jobs.sql.parse.dialect import Flink, UnparsableError
from spark_jobs.sql.parse.source_text import SourceText
from spark_jobs.sql.parse.statement_parser import StatementParser
from spark_jobs.sql.parse.statements import Statement

# what sqlglot raises for some texts that are not SQL, besides its own error
_STUMBLES = (ParseError, LookupError, TypeError, ValueError, AttributeError)
_UNCLOSED = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`(?:[^`]|``)*`", re.DOTALL)


def parse(source: SourceText) -> list[Statement]:
    """All statements that can be parsed; problems with the others are reported to the source."""
    try:
        tokens = Flink().tokenize(source.text)
    except TokenError:
        start = _unclosed(source.text)
        what = "comment" if source.text.startswith("/*", start) else "quote"
        problem = SqlError("SQL_SYNTAX", f"the {what} is never closed", f"close the {what}")
        source.report(problem, start)
        return []
    found: list[Statement] = []
    for statement in _split(tokens):
        parser = StatementParser(dialect=Flink())
        try:
            with source.collecting(), nesting_refused(*source.position(statement[0].start)):
                found += parser.statement(statement, source.text)
                continue
        except UnparsableError as error:
            _report(source, error)
        except _STUMBLES:
            source.report(SqlError("SQL_SYNTAX", "this is not SQL"), parser.offset)
        source.broken.update(_created_name(statement))
    return found


def _created_name(statement: list[Token]) -> list[str]:
    """The name of the table or view that a statement was to create."""
    words = [t.text.upper() for t in statement[:7]]
    kind = next((w for w in ("TABLE", "VIEW") if w in words[:3]), None)
    if words[:1] != ["CREATE"] or kind is None:
        return []
    after = words.index(kind) + 1
    if words[after : after + 3] == ["IF", "NOT", "EXISTS"]:
        after += 3
    return [t.text for t in statement[after : after + 1]]


def _report(source: SourceText, error: UnparsableError) -> None:
    if error.unsupported:
        unsupported = UnsupportedError("UNSUPPORTED_SYNTAX", error.description, error.hint)
        source.report(unsupported, error.start)
    else:
        source.report(SqlError("SQL_SYNTAX", error.description, error.hint), error.start)


def _split(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement, without the words around a set of statements."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    unframed = [_without_frame(s) for s in statements]
    return [s for s in unframed if s]


def _without_frame(statement: list[Token]) -> list[Token]:
    words = [t.text.upper() for t in statement[:4]]
    if words == ["EXECUTE", "STATEMENT", "SET", "BEGIN"]:
        return statement[4:]
    if words[:3] == ["BEGIN", "STATEMENT", "SET"]:
        return statement[3:]
    if words[:2] == ["EXECUTE", "INSERT"]:
        return statement[1:]
    return [] if words == ["END"] else statement


def _unclosed(text: str) -> int:
    """Where the quote or comment begins that is never closed."""
    offset = 0
    while offset < len(text):
        match = _UNCLOSED.match(text, offset)
        if match is not None:
            offset = match.end()
        elif text[offset] in "'`" or text.startswith("/*", offset):
            return offset
        else:
            offset += 1
    return max(len(text) - 1, 0)

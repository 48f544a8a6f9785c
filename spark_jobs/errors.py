"""All exceptions of the project. Their codes are stable and listed in docs/errors.md.

A record that cannot be decoded raises no exception: its table's 'rejoin.on-error' applies to it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal, TypeAlias

Domain: TypeAlias = Literal["user", "external", "internal"]

EXIT_CODES: dict[Domain, int] = {"user": 2, "external": 3, "internal": 4}


class RejoinError(Exception):
    """What went wrong (`message`), a stable `code` to look it up, and what to do (`hint`)."""

    domain: ClassVar[Domain] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.domain]

    @property
    def problems(self) -> "tuple[RejoinError, ...]":
        """The single problems; most errors have one."""
        return (self,)

    @property
    def place(self) -> dict[str, str | int] | None:
        """The position in a file, if the error has one."""
        return None

    def json(self) -> dict[str, object]:
        """The error as JSON, described in docs/errors.md."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "place": self.place,
        }

    def __str__(self) -> str:
        return f"{self.code} {self.message}"

    def render(self) -> str:
        """The error as text, with hint and position."""
        return str(self) if self.hint is None else f"{self}\n  hint: {self.hint}"


class PositionedError(RejoinError):
    """An error at a place in SQL text. Lines and columns count from 1; 0 means unknown."""

    domain: ClassVar[Domain] = "user"

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        line: int = 0,
        column: int = 0,
        excerpt: str = "",
        source: str = "<sql>",
    ) -> None:
        super().__init__(code, message, hint)
        self.line = line
        self.column = column
        self.excerpt = excerpt
        self.source = source

    @property
    def place(self) -> dict[str, str | int] | None:
        if not self.line:
            return None
        return {"file": self.source, "line": self.line, "column": self.column}

    def locate(self, text: str, source: str) -> None:
        """Add source and excerpt to an error that was raised with a position only."""
        self.source = source
        lines = text.split("\n")
        if not self.excerpt and 0 < self.line <= len(lines):
            self.excerpt = lines[self.line - 1].removesuffix("\r")

    def render(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}: " if self.line else ""
        parts = [f"{place}{self}"]
        if self.excerpt:
            parts += [f"  {self.excerpt}", f"  {_caret(self.excerpt, self.column)}"]
        if self.hint is not None:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


class SqlError(PositionedError):
    """The SQL text is wrong: Flink would reject it too."""


class UnsupportedError(PositionedError):
    """The SQL text is right, but rejoin cannot run it."""


class CatalogError(PositionedError):
    """A table definition is wrong or refers to something that does not exist."""


class ScenarioError(PositionedError):
    """A scenario file has a syntax error, or its rows do not fit its tables."""


@contextmanager
def nesting_refused(line: int = 0, column: int = 0) -> Iterator[None]:
    """A statement at this place that is too deep for recursion is an error of its text."""
    try:
        yield
    except RecursionError as cause:
        message = "the statement is nested too deeply"
        hint = "split it: a view or a table of its own for a part of it"
        raise SqlError("NESTED_TOO_DEEPLY", message, hint, line=line, column=column) from cause


class SqlErrors(RejoinError):
    """All problems of one SQL or scenario file, in the order of the text."""

    domain: ClassVar[Domain] = "user"

    def __init__(self, errors: Iterable[PositionedError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda e: (e.line, e.column)))
        super().__init__("SQL_ERRORS", _summary(self.errors))

    @property
    def problems(self) -> tuple[RejoinError, ...]:
        return self.errors

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(e.code for e in self.errors)

    def render(self) -> str:
        return "\n".join(e.render() for e in self.errors)


class ConfigError(RejoinError):
    """Settings, environment or installation are wrong."""

    domain: ClassVar[Domain] = "user"


class FormatError(RejoinError):
    """A table's format or declared schema does not fit its records as a whole."""

    domain: ClassVar[Domain] = "user"


class KafkaError(RejoinError):
    """A broker or schema registry refused a request or did not answer."""

    domain: ClassVar[Domain] = "external"
    retryable: ClassVar[bool] = True


class DatabaseError(RejoinError):
    """A database in which rows are looked up did not answer."""

    domain: ClassVar[Domain] = "external"
    retryable: ClassVar[bool] = True


class AccessError(RejoinError):
    """The broker denies access; retrying does not help."""

    domain: ClassVar[Domain] = "external"


class MachineError(RejoinError):
    """The machine lacks a resource, at least for now."""

    domain: ClassVar[Domain] = "external"
    retryable: ClassVar[bool] = True


class StateError(RejoinError):
    """Checkpoint, ledger or state do not fit this job."""

    domain: ClassVar[Domain] = "user"


def _caret(excerpt: str, column: int) -> str:
    # tabs are copied, so that the caret is below its column at any tab width
    before = excerpt[: max(column - 1, 0)]
    return "".join("\t" if c == "\t" else " " for c in before) + "^"


def _summary(errors: tuple[PositionedError, ...]) -> str:
    if len(errors) == 1:
        return f"{errors[0].line}:{errors[0].column}: {errors[0]}"
    return f"{len(errors)} problems: " + "; ".join(f"{e.line}:{e.column}: {e}" for e in errors)

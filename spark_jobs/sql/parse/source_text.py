"""The SQL text of a job: from an offset to line, column and excerpt; and the nearest valid name."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from spark_jobs.errors import PositionedError
from spark_jobs.sql.types.python_function import PythonFunction

E = TypeVar("E", bound=PositionedError)


class NotBoundError(Exception):
    """Something cannot be bound; why has been reported to the source already."""


@dataclass(slots=True)
class SourceText:
    """A text and the problems found in it so far; checking goes on after a problem.

    `functions` are those that its statements have created so far, by their names in upper case:
    any expression may call them. `broken` names tables and views whose definition has a problem: a
    query that reads them is not reported once more.
    """

    text: str
    name: str = "<sql>"
    problems: list[PositionedError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    functions: dict[str, PythonFunction] = field(default_factory=dict)

    def position(self, start: int) -> tuple[int, int]:
        """Line and column, from 1, of a character."""
        before = self.text[:start]
        return before.count("\n") + 1, start - before.rfind("\n")

    def place(self, error: E, start: int) -> E:
        """The error with its place in the text."""
        error.line, error.column = self.position(start)
        error.locate(self.text, self.name)
        return error

    def report(self, error: PositionedError, start: int) -> None:
        self.problems.append(self.place(error, start))

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Report the problem that ends the block, and go on behind it."""
        try:
            yield
        except PositionedError as error:
            self.problems.append(error)
        except NotBoundError:
            pass

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """A block whose result is unusable if a problem was reported inside."""
        before = len(self.problems)
        yield
        if len(self.problems) > before:
            raise NotBoundError


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """A hint with the valid name that is most similar.

    >>> nearest("tpoic", ["topic", "format"])
    "did you mean 'topic'?"
    """
    by_lower = {v.lower(): v for v in valid}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean '{by_lower[close[0]]}'?" if close else None

"""The SQL text of a job: from an offset to line, column and excerpt; and the nearest valid name."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from spark_jobs.errors import PositionedError

E = TypeVar("E", bound=PositionedError)


class NotBoundError(Exception):
    """Something cannot be bound; why has been reported to the source already."""


@dataclass(slots=True)
class Source:
    """A text and what was found wrong in it so far; checking goes on after a problem.

    `broken` names tables and views whose definition has a problem: that they cannot be read is no
    problem of its own.
    """

    text: str
    name: str = "<sql>"
    problems: list[PositionedError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def position(self, start: int) -> tuple[int, int]:
        """Line and column, from 1, of a character."""
        before = self.text[:start]
        return before.count("\n") + 1, start - before.rfind("\n")

    def place(self, error: E, start: int) -> E:
        """Tell an error where in the text it is."""
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
        """A block whose result is of no use if anything was reported inside."""
        before = len(self.problems)
        yield
        if len(self.problems) > before:
            raise NotBoundError


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """A hint that names what may have been meant.

    >>> nearest("tpoic", ["topic", "format"])
    "did you mean 'topic'?"
    """
    by_lower = {v.lower(): v for v in valid}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean '{by_lower[close[0]]}'?" if close else None

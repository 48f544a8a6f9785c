"""What a check has found, and how good it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal, Protocol, TypeAlias

from spark_jobs.errors import RejoinError

Level: TypeAlias = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`code`: stable, in docs/check.md or, of an error that `run` has too, in docs/errors.md.

    `about`: the query, table or topic. `exit_code`: what an error ends the command with.
    """

    level: Level
    code: str
    about: str
    text: str
    hint: str | None = None
    exit_code: int = 0

    def line(self) -> str:
        code = "" if self.level == "ok" else f"{self.code} "
        told = f"{self.level:<8} {self.about}: {code}{self.text}"
        return told if self.hint is None else f"{told}\n         hint: {self.hint}"

    def json(self) -> dict[str, object]:
        return asdict(self)


class Report(Protocol):
    """Takes findings as they come: a check of many topics takes its time."""

    def __call__(self, finding: Finding) -> None: ...


@contextmanager
def reporting(report: Report, about: str) -> Iterator[None]:
    """An error of the one thing that is looked at is a finding; the others are looked at too."""
    try:
        yield
    except RejoinError as error:
        report(Finding("error", error.code, about, error.message, error.hint, error.exit_code))

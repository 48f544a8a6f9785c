"""The results of a check, from ok to error."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal, Protocol, TypeAlias

from spark_jobs.errors import RejoinError

Level: TypeAlias = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check has found out about a query, a table or a topic.

    `code` is stable: docs/check.md lists it, or docs/errors.md if `rejoin run` has the error too.
    `about` names it. `exit_code` is the command's if this is the worst.
    """

    level: Level
    code: str
    about: str
    text: str
    hint: str | None = None
    exit_code: int = 0

    def line(self) -> str:
        code = "" if self.level == "ok" else f"{self.code} "
        text = f"{self.level:<8} {self.about}: {code}{self.text}"
        return text if self.hint is None else f"{text}\n         hint: {self.hint}"

    def json(self) -> dict[str, object]:
        return asdict(self)


class Reporter(Protocol):
    """Shows findings as they arrive, because checking many topics takes a while."""

    def __call__(self, finding: Finding) -> None: ...


@contextmanager
def reporting_errors(report: Reporter, about: str) -> Iterator[None]:
    """Report an error as a finding, so that the remaining checks still run."""
    try:
        yield
    except RejoinError as error:
        report(Finding("error", error.code, about, error.message, error.hint, error.exit_code))

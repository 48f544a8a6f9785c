"""The demo for programs: an object in each line, `event` says of what."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from spark_jobs.demo.verify import Finding, JoinedRow, LetterAudit, Verdict
from spark_jobs.status import JobStatus
from spark_jobs.terminal import write_json


class JsonScreen:
    """Takes what `Screen` takes; joined rows are counted in `progress`, not shown."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def say(self, text: str, style: str = "") -> None:
        self._tell("note", text=text.strip())

    def rows(self, judged: Sequence[tuple[Finding, JoinedRow | None]]) -> None:
        """Each of them is in the verdict."""

    def header(self) -> None:
        """Names are in the objects."""

    def waiting(self, status: JobStatus | None, seconds: float, orders: int) -> None:
        state = None if status is None else status.state
        self._tell("waiting", seconds=round(seconds, 1), orders=orders, job=state)

    def status(self, status: JobStatus | None, right: int, dead_letters: int) -> None:
        if status is None or not status.queries:
            return
        query = status.queries[0]
        self._tell(
            "progress",
            rows_in=query.input_rows_total,
            rows_out=query.output_rows_total,
            lag_records=query.lag_records,
            watermark_ms=query.watermark_ms,
            verified=right,
            dead_letters=dead_letters,
        )

    def letters(self, audit: LetterAudit, limit: int) -> None:
        self._tell("dead-letters", sent=len(audit.sent), received=len(audit.received))

    def verdict(self, verdict: Verdict, letter_problems: Sequence[str], complete: bool) -> None:
        passed = verdict.passed and not letter_problems
        told = asdict(verdict) | {"problems": [*verdict.problems, *letter_problems]}
        self._tell("verdict", passed=passed, complete=complete, **told)

    def _tell(self, event: str, **told: object) -> None:
        write_json({"event": event, **told}, self._out)

"""The demo for programs: one JSON object per line; `event` names its kind."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from spark_jobs.demo.verify import DeadLetterAudit, JoinedRow, RowVerdict, Verdict
from spark_jobs.status import JobStatus
from spark_jobs.terminal import write_json


class JsonScreen:
    """Has the methods of `Screen`. Joined rows are not shown; `progress` counts them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def say(self, text: str, style: str = "") -> None:
        self._write("note", text=text.strip())

    def rows(self, judged: Sequence[tuple[RowVerdict, JoinedRow | None]]) -> None:
        """Nothing: the verdict counts the rows."""

    def header(self) -> None:
        """Nothing: the objects have names."""

    def waiting(self, status: JobStatus | None, seconds: float, orders: int) -> None:
        state = None if status is None else status.state
        self._write("waiting", seconds=round(seconds, 1), orders=orders, job=state)

    def status(self, status: JobStatus | None, right: int, dead_letters: int) -> None:
        if status is None or not status.queries:
            return
        query = status.queries[0]
        self._write(
            "progress",
            rows_in=query.input_rows_total,
            rows_out=query.output_rows_total,
            lag_records=query.lag_records,
            watermark_ms=query.watermark_ms,
            verified=right,
            dead_letters=dead_letters,
        )

    def dead_letters(self, audit: DeadLetterAudit, limit: int) -> None:
        self._write("dead-letters", sent=len(audit.sent), received=len(audit.received))

    def verdict(self, verdict: Verdict, problems: Sequence[str], complete: bool) -> None:
        passed = verdict.passed and not problems
        fields = asdict(verdict) | {"problems": [*verdict.problems, *problems]}
        self._write("verdict", passed=passed, complete=complete, **fields)

    def _write(self, event: str, **fields: object) -> None:
        write_json({"event": event, **fields}, self._out)

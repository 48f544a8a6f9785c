"""Progress for people: one line that renews itself on a terminal, a line now and then elsewhere."""

import time
from datetime import UTC, datetime
from typing import TextIO

from spark_jobs.status import JobStatus, QueryStatus

PLAIN_EVERY_S = 10.0
_CLEAR_LINE = "\r\x1b[2K"


class Console:
    """Writes messages and, beside them, what a job is doing."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._shown = False
        self._next_plain = 0.0
        self._last = ""

    def say(self, line: str) -> None:
        """A line that stays."""
        self._write(f"{_CLEAR_LINE if self._shown else ''}{line}\n")
        self._shown = False

    def show(self, status: JobStatus) -> None:
        """The job's progress; off a terminal only what is new, and not often."""
        lines = [progress_line(query) for query in status.queries]
        if status.registry_waiting_since is not None:
            since = status.registry_waiting_since.strftime("%H:%M:%S")
            lines.insert(0, f"waiting for the schema registry since {since}")
        if self._live:
            self._write(_CLEAR_LINE + " | ".join(lines))
            self._shown = True
        elif time.monotonic() >= self._next_plain and (text := "\n".join(lines)) != self._last:
            self._next_plain = time.monotonic() + PLAIN_EVERY_S
            self._last = text
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def progress_line(query: QueryStatus) -> str:
    """Rows in and out, lag, watermark, state."""
    parts = [
        query.name,
        f"epoch {'-' if query.epoch is None else query.epoch}",
        f"in {query.input_rows_total:,} ({query.processed_rows_per_second:,.0f}/s)",
        f"out {query.output_rows_total:,}",
        f"lag {query.lag_records:,}",
    ]
    if query.watermark_ms is not None:
        parts.append(f"watermark {_time(query.watermark_ms)}")
    if query.operators:
        rows = " + ".join(f"{side.rows:,}" for o in query.operators for side in o.sides)
        parts.append(f"state {rows} rows")
    if rejected := sum(query.rejects.values()):
        parts.append(f"rejected {rejected:,}")
    if query.late_rows_total:
        parts.append(f"late {query.late_rows_total:,}")
    return "  ".join(parts)


def _time(ms: int) -> str:
    """Of day and date; the end mark's lies beyond all calendars."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "end"

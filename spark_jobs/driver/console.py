"""A job's progress: a line that a terminal rewrites, lines now and then in a log, or JSON lines."""

import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import Protocol, TextIO

from spark_jobs.driver.progress import Progress, ProgressTracker, duration_text
from spark_jobs.status import JobStatus, QueryStatus
from spark_jobs.terminal import write_json

PLAIN_EVERY_S = 10.0
_CLEAR_LINE = "\r\x1b[2K"


class Console(Protocol):
    """Where a job shows messages and its progress."""

    def say(self, line: str) -> None: ...
    def show(self, status: JobStatus) -> None: ...


class JsonConsole:
    """Messages as `{"event": "note"}`, changed progress as `{"event": "progress"}`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._trackers: dict[str, ProgressTracker] = defaultdict(ProgressTracker)
        self._last: list[dict[str, object]] = []

    def say(self, line: str) -> None:
        write_json({"event": "note", "text": line}, self._out)

    def show(self, status: JobStatus) -> None:
        queries = [
            progress_json(query, self._trackers[query.name].update(query, status.updated_at))
            for query in status.queries
        ]
        if queries != self._last:
            self._last = queries
            at = status.updated_at.isoformat()
            event = {"event": "progress", "at": at, "state": status.state, "queries": queries}
            write_json(event, self._out)


class TextConsole:
    """For a terminal or a log."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._trackers: dict[str, ProgressTracker] = defaultdict(ProgressTracker)
        self._live = out.isatty()
        self._shown = False
        self._next_plain = 0.0
        self._last = ""

    def say(self, line: str) -> None:
        self._write(f"{_CLEAR_LINE if self._shown else ''}{line}\n")
        self._shown = False

    def show(self, status: JobStatus) -> None:
        """Without a terminal: only changes, and at most every `PLAIN_EVERY_S`."""
        lines = [
            progress_line(query, self._trackers[query.name].update(query, status.updated_at))
            for query in status.queries
        ]
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


def progress_line(query: QueryStatus, progress: Progress) -> str:
    rate = "" if progress.rate is None else f" ({progress.rate:,.0f}/s)"
    parts = [
        query.name,
        f"epoch {'-' if query.epoch is None else query.epoch}",
        f"in {query.input_rows_total:,}{rate}",
        f"out {query.output_rows_total:,}",
        "lag ?" if query.epoch is None else f"lag {query.lag_records:,}",
    ]
    if progress.caught_up_s is not None:
        parts.append(f"caught up in {duration_text(progress.caught_up_s)}")
    for table in progress.loading:
        left = "" if table.left_s is None else f", {duration_text(table.left_s)} left"
        share = int(table.share * 100)
        parts.append(f"loading: {share} % of the initial content of {table.table}{left}")
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


def progress_json(query: QueryStatus, progress: Progress) -> dict[str, object]:
    def rounded(number: float | None, digits: int) -> float | None:
        return None if number is None else round(number, digits)

    return {
        "name": query.name,
        "epoch": query.epoch,
        "rows_in": query.input_rows_total,
        "rows_out": query.output_rows_total,
        "records_per_second": rounded(progress.rate, 1),
        "lag_records": query.lag_records,
        "caught_up_in_seconds": rounded(progress.caught_up_s, 1),
        "loading": [
            {
                "table": table.table,
                "share": round(table.share, 4),
                "seconds_left": rounded(table.left_s, 1),
            }
            for table in progress.loading
        ],
        "watermark_ms": query.watermark_ms,
        "state_rows": sum(side.rows for o in query.operators for side in o.sides),
        "rejected": sum(query.rejects.values()),
        "late": query.late_rows_total,
        "restarts": query.restarts_total,
    }


def _time(ms: int) -> str:
    """The time in UTC; the watermark of the end mark is beyond what datetime can show."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "end"

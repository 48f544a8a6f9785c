"""Shows the demo to a person; uses colours only on a terminal that has them."""

import time
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TextIO

from rich.console import Console
from rich.text import Text

from spark_jobs.demo.shop import sql_time
from spark_jobs.demo.verify import (
    DeadLetterAudit,
    JoinedRow,
    ReceivedDeadLetter,
    RowVerdict,
    Verdict,
    position_text,
)
from spark_jobs.status import JobStatus, QueryStatus

ROWS_PER_S = 4.0
_SHOWN_BYTES = 240
_HEADER_EVERY = 12
_RATE_WINDOW = timedelta(seconds=8)
_SIDES = {"left": "orders waiting", "right": "product versions"}


class Screen:
    """Prints lines to a terminal or a file, and no more joined rows than a person can read."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, soft_wrap=True, markup=False)
        self._allowance = ROWS_PER_S
        self._allowed_at = time.monotonic()
        self._status_lines = 0
        self._rate_in = _Rate()
        self._rate_out = _Rate()

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))

    def rows(self, judged: Sequence[tuple[RowVerdict, JoinedRow | None]]) -> None:
        """Print an evenly spread sample of the rows that just arrived."""
        now = time.monotonic()
        gained = (now - self._allowed_at) * ROWS_PER_S
        self._allowance, self._allowed_at = min(ROWS_PER_S, self._allowance + gained), now
        count = min(int(self._allowance), len(judged))
        self._allowance -= count
        for n in range(count):
            finding, row = judged[n * len(judged) // count]
            if row is not None:
                self._console.print(_row_text(finding, row))

    def header(self) -> None:
        names = f"{'order':<10}{'placed at':<14}{'product':<13}{'price':>9}  {'valid since':<14}"
        self.say(f"\n  {names}", "bold")

    def waiting(self, status: JobStatus | None, seconds: float, orders: int) -> None:
        """Say what the job is doing before the first joined row."""
        if status is None or status.state == "starting":
            doing = "Spark is starting"
        elif not any(query.epochs_total for query in status.queries):
            doing = "Spark is generating code and running the first micro-batch"
        else:
            doing = "the first micro-batch has been committed"
        self.say(f"  {seconds:4.0f} s   {doing}; {orders} orders wait for their row", "dim")

    def status(self, status: JobStatus | None, right: int, dead_letters: int) -> None:
        """Print two lines about the job, from its status record."""
        if status is None or not status.queries:
            return
        query = status.queries[0]
        rate_in = self._rate_in.update(query.input_rows_total, status.updated_at)
        rate_out = self._rate_out.update(query.output_rows_total, status.updated_at)
        sides = [side for operator in query.operators for side in operator.sides]
        state = ", ".join(f"{s.rows} {_SIDES.get(s.side, s.side)}" for s in sides)
        rates = f"in {rate_in:.0f}/s  out {rate_out:.0f}/s  lag {query.lag_records}"
        tail = f"dead letters {dead_letters}  verified {right}"
        self.say(f"  -- {rates}  state {state or 'none'}  {tail}", "cyan")
        self.say(f"     watermarks  {_watermarks(query)}", "cyan")
        self._status_lines += 1
        if self._status_lines % _HEADER_EVERY == 0:
            self.header()

    def dead_letters(self, audit: DeadLetterAudit, limit: int) -> None:
        """Print dead letters with reason, source position and bytes; equal bytes only once."""
        self.say(f"\ndead letters: {len(audit.received)} of {len(audit.sent)} broken records")
        different: dict[bytes | None, ReceivedDeadLetter] = {}
        for dead_letter in sorted(audit.received, key=lambda dead_letter: dead_letter.position):
            different.setdefault(dead_letter.value, dead_letter)
        shown = list(different.values())[:limit]
        for dead_letter in shown:
            self.say(f"  {position_text(dead_letter.position):<16}{dead_letter.reason}", "yellow")
            self.say(f"  {'':<16}{_bytes_text(dead_letter)}", "dim")
        if len(audit.received) > len(shown):
            self.say(f"  and {len(audit.received) - len(shown)} more like these", "dim")

    def verdict(self, verdict: Verdict, problems: Sequence[str], complete: bool) -> None:
        """Print the result of the demo."""
        good = verdict.passed and not problems
        for problem in (*verdict.problems, *problems):
            self.say(f"  {problem}", "red")
        read = verdict.right + verdict.wrong + verdict.doubled
        self.say(
            f"\n{verdict.orders} orders, {read} joined rows read under read_committed, each "
            "compared with an independent look-up:"
        )
        missing = f"   {verdict.missing} missing" if complete else ""
        self.say(
            f"  {verdict.right} right ({verdict.without_product} without a product)   "
            f"{verdict.wrong} wrong{missing}   {verdict.doubled} doubled"
        )
        if not good:
            self.say("FAILED", "bold red")
        elif complete:
            self.say("VERIFIED", "bold green")
        else:
            self.say("stopped; rows that had not arrived yet are not counted", "bold")


class _Rate:
    """The rate of a total that grows once per epoch, over a window of several epochs."""

    def __init__(self) -> None:
        self._points: deque[tuple[datetime, int]] = deque()

    def update(self, total: int, at: datetime) -> float:
        if not self._points or at > self._points[-1][0]:
            self._points.append((at, total))
        while len(self._points) > 2 and at - self._points[1][0] >= _RATE_WINDOW:
            self._points.popleft()
        since, before = self._points[0]
        seconds = (at - since).total_seconds()
        return max(0, total - before) / seconds if seconds > 0 else 0.0


def _row_text(finding: RowVerdict, row: JoinedRow) -> Text:
    placed = f"  {row.order_id:<10}{_clock(row.order_ms):<14}"
    if row.product_name is None or row.product_ms is None:
        line = Text(placed).append(f"{'NULL':<13}{'NULL':>9}  {'NULL':<14}", "dim")
    else:
        line = Text(placed).append(f"{row.product_name:<13}", "green")
        line.append(f"{row.price:>9.4f}").append(f"  {_clock(row.product_ms):<14}", "dim")
    return line if finding == "right" else line.append(finding.upper(), "bold red")


def _watermarks(query: QueryStatus) -> str:
    parts = []
    for source in query.sources:
        known = [p.watermark_ms for p in source.partitions if p.watermark_ms is not None]
        if known and len(known) == len(source.partitions):
            parts.append(f"{source.table} {_clock(min(known))}")
    if query.watermark_ms is not None:
        behind = datetime.now(UTC).timestamp() - query.watermark_ms / 1_000
        parts.append(f"join {_clock(query.watermark_ms)} ({max(behind, 0):.1f} s ago)")
    return "  ".join(parts) or "none yet"


def _clock(time_ms: int) -> str:
    return sql_time(time_ms).partition(" ")[2]


def _bytes_text(dead_letter: ReceivedDeadLetter) -> str:
    if dead_letter.value is None:
        return "no value"
    text = repr(dead_letter.value[:_SHOWN_BYTES])
    rest = len(dead_letter.value) - _SHOWN_BYTES
    return f"{text} and {rest} more bytes" if rest > 0 else text

"""The loop of the demo: produce the shop's events, read the rows, verify and show them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Self, TypeAlias

from confluent_kafka import Message
from pydantic import ValidationError

from spark_jobs.demo.encoding import Encoding
from spark_jobs.demo.play import DEAD_LETTERS, RESULTS, Player
from spark_jobs.demo.shop import Shop
from spark_jobs.demo.show import Screen
from spark_jobs.demo.show_json import JsonScreen
from spark_jobs.demo.subscribe import Subscriber, read_dead_letter
from spark_jobs.demo.verify import DeadLetterAudit, RowAudit
from spark_jobs.errors import RejoinError
from spark_jobs.status import JobStatus, read_status

AnyScreen: TypeAlias = Screen | JsonScreen
FIRST_ROW_TIMEOUT_S = 180.0
STALL_TIMEOUT_S = 60.0  # rows that do not arrive within this time of the last one are missing
_REST_TIMEOUT_S = 30.0
_TICK_S = 0.02
_SHOWN_DEAD_LETTERS = 10


@dataclass(frozen=True, slots=True)
class DemoSetup:
    """What the loop needs. `check` raises if the broker or the job has died."""

    servers: str
    encoding: Encoding
    rate: float
    corrupt: bool
    status_dir: Path | None
    started: float
    check: Callable[[], None]


class DemoLoop:
    """From the first event of the shop to the verdict; one thread does everything."""

    def __init__(self, setup: DemoSetup, screen: AnyScreen) -> None:
        self._setup = setup
        self._screen = screen
        self.rows = RowAudit(setup.encoding.joined_row)
        self.dead_letters = DeadLetterAudit()
        self._unknown_dead_letters: list[str] = []
        self._first_row_at: float | None = None
        self._last_row_at = 0.0
        self._next_status_at = 0.0
        self._subscriber = Subscriber(setup.servers, (RESULTS, DEAD_LETTERS))
        # frequent changes, so that orders do not wait long for the watermark of the products
        shop = Shop(int(time.time() * 1_000), setup.rate, max(5.0, setup.rate / 40))
        dead_letters = self.dead_letters if setup.corrupt else None
        self._player = Player(setup.servers, shop, setup.encoding, self.rows, dead_letters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._player.abandon()
        self._subscriber.close()

    def play(self, stop: Event, seconds: float | None) -> None:
        """Run until `stop`, or for `seconds` after the first joined row."""
        begun = time.monotonic()
        while not stop.is_set() and not self._is_over(seconds):
            self._player.play_due()
            self._receive(self._subscriber.poll(_TICK_S))
            self._show()
            if self._first_row_at is None and time.monotonic() - begun > FIRST_ROW_TIMEOUT_S:
                raise RejoinError(
                    "DEMO_SILENT", f"no joined row within {FIRST_ROW_TIMEOUT_S:.0f} s"
                )

    def finish(self, stop: Event) -> bool:
        """Send the last events and wait for the last rows; False if `stop` came first."""
        self._screen.say("\nno more events; waiting for the last rows")
        self._player.close()
        self._last_row_at = time.monotonic()
        while self.rows.due or self.dead_letters.outstanding:
            if stop.is_set():
                return False
            self._receive(self._subscriber.poll(_TICK_S))
            self._show()
            if time.monotonic() - self._last_row_at > STALL_TIMEOUT_S:
                self._screen.say(f"no row arrived for {STALL_TIMEOUT_S:.0f} s", "red")
                break
        return True

    def read_rest(self) -> None:
        """Read what is left once the job has ended: a duplicate row would be found here."""
        self._receive(list(self._subscriber.rest(_REST_TIMEOUT_S)))

    def conclude(self, complete: bool) -> bool:
        """Show the verdict; True if all is right. If not `complete`, no row counts as missing."""
        verdict = self.rows.verdict(complete)
        problems = [*self._unknown_dead_letters]
        problems += self.dead_letters.problems() if complete else ()
        if self.dead_letters.sent or self.dead_letters.received:
            self._screen.dead_letters(self.dead_letters, _SHOWN_DEAD_LETTERS)
        self._screen.verdict(verdict, problems, complete)
        return verdict.passed and not problems

    def _is_over(self, seconds: float | None) -> bool:
        if seconds is None or self._first_row_at is None:
            return False
        return time.monotonic() - self._first_row_at >= seconds

    def _receive(self, messages: list[Message]) -> None:
        judged = []
        for message in messages:
            if message.topic() == DEAD_LETTERS:
                self._receive_dead_letter(message)
            else:
                value = message.value()
                judged.append(self.rows.check(value if isinstance(value, bytes) else None))
        if not messages:
            return
        self._last_row_at = time.monotonic()
        if judged and self._first_row_at is None:
            self._first_row_at = self._last_row_at
            took = self._last_row_at - self._setup.started
            self._screen.say(f"first joined row {took:.1f} s after the start", "bold")
            self._screen.header()
        self._screen.rows(judged)

    def _receive_dead_letter(self, message: Message) -> None:
        try:
            self.dead_letters.received.append(read_dead_letter(message))
        except ValueError as error:
            self._unknown_dead_letters.append(str(error))

    def _show(self) -> None:
        now = time.monotonic()
        if now < self._next_status_at:
            return
        self._setup.check()
        status = self._read_status()
        if self._first_row_at is not None:
            self._screen.status(status, self.rows.right, len(self.dead_letters.received))
            self._next_status_at = now + 1.0
            return
        self._screen.waiting(status, now - self._setup.started, self.rows.due)
        self._next_status_at = now + 5.0

    def _read_status(self) -> JobStatus | None:
        if self._setup.status_dir is None:
            return None
        try:
            return read_status(self._setup.status_dir)
        except (ValidationError, OSError):
            return None  # only shown; the rows are verified without it

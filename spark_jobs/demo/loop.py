"""One performance of the shop: play, read, judge and show, in one thread and one loop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self, TypeAlias

from confluent_kafka import Message
from pydantic import ValidationError

from spark_jobs.demo.encoding import Encoding
from spark_jobs.demo.play import DEAD_LETTERS, RESULTS, Player
from spark_jobs.demo.shop import Shop
from spark_jobs.demo.show import Screen
from spark_jobs.demo.show_json import JsonScreen
from spark_jobs.demo.subscribe import Subscriber, read_dead_letter
from spark_jobs.demo.verify import LetterAudit, RowAudit
from spark_jobs.errors import RejoinError
from spark_jobs.status import JobStatus, read_status

AnyScreen: TypeAlias = Screen | JsonScreen
FIRST_ROW_TIMEOUT_S = 180.0
STALL_TIMEOUT_S = 60.0  # how long the last rows may keep silent before they count as missing
_REST_TIMEOUT_S = 30.0
_TICK_S = 0.02
_SHOWN_LETTERS = 10


@dataclass(frozen=True, slots=True)
class Staging:
    """What a performance needs to know. `check` raises if something it depends on has died."""

    servers: str
    encoding: Encoding
    rate: float
    corrupt: bool
    status_dir: Path | None
    started: float
    check: Callable[[], None]


class Performance:
    """From the opening of the shop to the verdict."""

    def __init__(self, staging: Staging, screen: AnyScreen) -> None:
        self._staging = staging
        self._screen = screen
        self.rows = RowAudit(staging.encoding.joined_row)
        self.letters = LetterAudit()
        self._strange_letters: list[str] = []
        self._first_row_at: float | None = None
        self._last_row_at = 0.0
        self._next_status_at = 0.0
        self._subscriber = Subscriber(staging.servers, (RESULTS, DEAD_LETTERS))
        # enough changes that orders need not wait long for the products' watermark
        shop = Shop(int(time.time() * 1_000), staging.rate, max(5.0, staging.rate / 40))
        letters = self.letters if staging.corrupt else None
        self._player = Player(staging.servers, shop, staging.encoding, self.rows, letters)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._player.abandon()
        self._subscriber.__exit__(kind, error, trace)

    def play(self, stop: Event, seconds: float | None) -> None:
        """Until `stop`, or for so many seconds from the first joined row."""
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
        """Close the shop and wait for the last rows; False if it was stopped meanwhile."""
        self._screen.say("\nthe shop closes; waiting for the last rows")
        self._player.close()
        self._last_row_at = time.monotonic()
        while self.rows.due or self.letters.outstanding:
            if stop.is_set():
                return False
            self._receive(self._subscriber.poll(_TICK_S))
            self._show()
            if time.monotonic() - self._last_row_at > STALL_TIMEOUT_S:
                self._screen.say(f"no row for {STALL_TIMEOUT_S:.0f} s", "red")
                break
        return True

    def read_rest(self) -> None:
        """What the topics still hold once nobody writes: a doubled row would be there."""
        self._receive(list(self._subscriber.rest(_REST_TIMEOUT_S)))

    def conclude(self, complete: bool) -> bool:
        """Show the verdict; whether all is well. Incomplete: rows yet to come are not missed."""
        verdict = self.rows.verdict(complete)
        problems = [*self._strange_letters, *(self.letters.problems() if complete else ())]
        if self.letters.sent or self.letters.received:
            self._screen.letters(self.letters, _SHOWN_LETTERS)
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
                self._receive_letter(message)
            else:
                value = message.value()
                judged.append(self.rows.check(value if isinstance(value, bytes) else None))
        if not messages:
            return
        self._last_row_at = time.monotonic()
        if judged and self._first_row_at is None:
            self._first_row_at = self._last_row_at
            took = self._last_row_at - self._staging.started
            self._screen.say(f"first joined row {took:.1f} s after the start", "bold")
            self._screen.header()
        self._screen.rows(judged)

    def _receive_letter(self, message: Message) -> None:
        try:
            self.letters.received.append(read_dead_letter(message))
        except ValueError as error:
            self._strange_letters.append(str(error))

    def _show(self) -> None:
        now = time.monotonic()
        if now < self._next_status_at:
            return
        self._staging.check()
        status = self._read_status()
        if self._first_row_at is not None:
            self._screen.status(status, self.rows.right, len(self.letters.received))
            self._next_status_at = now + 1.0
            return
        self._screen.waiting(status, now - self._staging.started, self.rows.due)
        self._next_status_at = now + 5.0

    def _read_status(self) -> JobStatus | None:
        if self._staging.status_dir is None:
            return None
        try:
            return read_status(self._staging.status_dir)
        except (ValidationError, OSError):
            return None  # the job's own affair; the rows are judged without it

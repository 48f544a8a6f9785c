"""Dead letters put back because an admin verb asked for it: `rejoin dlq replay` beside the driver.

A process of its own: a topic of letters takes memory and time to read, and the driver must go on
beating. One at a time, of a bounded number of records, and killed after `WITHIN_S`: what it has not
committed by then is aborted, and its letters are still open. Asked again, it finds the rest.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from spark_jobs.commands import Command, ReplayOrder, answer
from spark_jobs.status import ReplayStatus, now, replace_file

WITHIN_S = 600.0
JOB_TEXT = "replay.sql"
LOG = "replay.log"
_MOST_TOLD = 500


class Process(Protocol):
    """What is needed of an `embedded.process.Child`."""

    @property
    def exit_code(self) -> int | None: ...
    def stop(self, grace_s: float) -> None: ...


class Replays:
    """Of one driver. `sql` is the text that it runs, whatever its file holds by now."""

    def __init__(
        self, folder: Path, sql: str, start: Callable[[Sequence[str], Path], Process]
    ) -> None:
        self._folder = folder
        self._sql = sql
        self._start = start
        self._process: Process | None = None
        self._command: Command | None = None
        self._deadline_s = 0.0
        self.status: ReplayStatus | None = None

    def begin(self, command: Command) -> None:
        """Its answer comes when it has ended, or now if another one is under way."""
        if self._command is not None:
            text = f"replay {self._command.id} is under way: nothing more was begun"
            return answer(self._folder, command, text, done=False)
        log = self._folder / LOG
        try:
            replace_file(self._folder / JOB_TEXT, self._sql)
            log.unlink(missing_ok=True)
            self._process = self._start(self._line(command.replay or ReplayOrder()), log)
        except OSError as error:
            return answer(self._folder, command, f"it could not be begun: {error}", done=False)
        self._command = command
        self._deadline_s = time.monotonic() + WITHIN_S
        self.status = ReplayStatus(id=command.id, state="running", begun_at=now())

    def poll(self) -> None:
        """Notice the end of the one that runs, or end it once its time is over."""
        if self._process is None:
            return
        if self._process.exit_code is not None:
            self._end("")
        elif time.monotonic() > self._deadline_s:
            self._process.stop(0)
            self._end(f"it took longer than {WITHIN_S:.0f} s and was ended")

    def stop(self) -> None:
        """The driver ends."""
        if self._process is not None:
            self._process.stop(0)
            self._end("the job ended first")

    def _line(self, order: ReplayOrder) -> list[str]:
        """With `=`, so that no value is taken for an option."""
        line = [sys.executable, "-m", "spark_jobs.cli", "dlq", "replay"]
        line += [str(self._folder / JOB_TEXT), "--yes", "--json", f"--limit={order.limit}"]
        line += [f"--table={name}" for name in order.tables]
        line += [f"--reason={name}" for name in order.reasons]
        return line if order.topic is None else [*line, f"--topic={order.topic}"]

    def _end(self, why: str) -> None:
        process, command, before = self._process, self._command, self.status
        self._process = self._command = None
        if process is None or command is None or before is None:
            return
        outcomes, words = _read(self._folder / LOG)
        replayed, left, more = (sum(column) for column in zip((0, 0, 0), *outcomes, strict=True))
        failed = bool(why) or process.exit_code != 0
        trouble = (why or words) if failed else ""
        told = f"replayed {replayed}, left {left}, {more} more beyond the limit"
        told += f": {trouble}" if trouble else ""
        ended = {"ended_at": now(), "replayed": replayed, "left": left, "more": more}
        ended["message"] = told
        state = "failed" if failed else "done"
        self.status = before.model_copy(update={"state": state, **ended})
        answer(self._folder, command, told, done=not failed)


def _read(log: Path) -> tuple[list[tuple[int, int, int]], str]:
    """Per topic how many letters were replayed, left and not reached, and what else was said."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return [], str(error)
    outcomes: list[tuple[int, int, int]] = []
    words: list[str] = []
    for line in filter(None, text.splitlines()):
        if not line.startswith("{"):
            words.append(line)
            continue
        try:
            told = json.loads(line)
        except ValueError:
            continue  # it was killed in the middle of the line
        words += [f"{error['code']} {error['message']}" for error in told.get("errors", ())]
        if "errors" not in told:
            outcomes.append((told["replayed"], len(told["left"]), told.get("more", 0)))
    return outcomes, " ".join(words)[:_MOST_TOLD]

"""The admin command `dlq-replay`: runs `rejoin dlq replay` in a process beside the driver.

In a process of its own, because reading a dead-letter topic takes memory and time, while the driver
must keep beating. One replay runs at a time, of a bounded number of records, and is killed after
`WITHIN_S`. What it has not committed by then is aborted, and the next replay finds those records.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spark_jobs.commands import Command, ReplayOrder, answer
from spark_jobs.status import ReplayStatus, now, replace_file

WITHIN_S = 600.0
JOB_TEXT = "replay.sql"
LOG = "replay.log"
_MAX_ERROR_CHARS = 500


class Process(Protocol):
    """The part of `embedded.process.Child` that is used here."""

    @property
    def exit_code(self) -> int | None: ...
    def stop(self, grace_s: float) -> None: ...


@dataclass(slots=True)
class Replays:
    """The replays of one driver. `_sql`: the text that it runs, whatever the file holds now."""

    _folder: Path
    _sql: str
    _start: Callable[[Sequence[str], Path], Process]
    _process: Process | None = None
    _command: Command | None = None
    _deadline_s: float = 0.0
    status: ReplayStatus | None = None

    def begin(self, command: Command) -> None:
        """Start a replay, to be answered at its end; refuse it if another one is running."""
        if self._command is not None:
            text = f"replay {self._command.id} is still running: no other one was started"
            return answer(self._folder, command, text, done=False)
        log = self._folder / LOG
        try:
            replace_file(self._folder / JOB_TEXT, self._sql)
            log.unlink(missing_ok=True)
            self._process = self._start(self._line(command.replay or ReplayOrder()), log)
        except OSError as error:
            return answer(self._folder, command, f"the replay could not start: {error}", done=False)
        self._command = command
        self._deadline_s = time.monotonic() + WITHIN_S
        self.status = ReplayStatus(id=command.id, state="running", begun_at=now())

    def poll(self) -> None:
        """Answer the command if the replay has ended; kill a replay that takes too long."""
        if self._process is None:
            return
        if self._process.exit_code is not None:
            self._end("")
        elif time.monotonic() > self._deadline_s:
            self._process.stop(0)
            self._end(f"it took longer than {WITHIN_S:.0f} s and was killed")

    def stop(self) -> None:
        """Kill the replay, because the driver ends."""
        if self._process is not None:
            self._process.stop(0)
            self._end("the job ended first")

    def _line(self, order: ReplayOrder) -> list[str]:
        """The command line; values come after `=`, so that none is taken for an option."""
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
        counts, errors = _read(self._folder / LOG)
        failed = bool(why) or process.exit_code != 0
        reason = (why or errors) if failed else ""
        message = "replayed {replayed}, left {left}, {more} more beyond the limit".format(**counts)
        message += f": {reason}" if reason else ""
        ended = {"state": "failed" if failed else "done", "ended_at": now(), "message": message}
        self.status = before.model_copy(update={**ended, **counts})
        answer(self._folder, command, message, done=not failed)


def _read(log: Path) -> tuple[Counter[str], str]:
    """The records replayed, left and beyond the limit; and the errors."""
    counts, errors = Counter(replayed=0, left=0, more=0), list[str]()
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return counts, str(error)
    for line in filter(None, text.splitlines()):
        if not line.startswith("{"):
            errors.append(line)
            continue
        try:
            outcome = json.loads(line)
        except ValueError:
            continue  # the process was killed in the middle of the line
        errors += [f"{error['code']} {error['message']}" for error in outcome.get("errors", ())]
        if "errors" not in outcome:
            of_topic = {"left": len(outcome["left"]), "more": outcome.get("more", 0)}
            counts.update(replayed=outcome["replayed"], **of_topic)
    return counts, " ".join(errors)[:_MAX_ERROR_CHARS]

"""The admin command `state-get`: reads rows of state in a process beside the driver.

To open state is to copy a partition's files and to run native code over them. In the driver's own
JVM no thread can be stopped in the middle of that, when an object store hangs or a key has millions
of rows, and what it takes of heap and disk the job's tasks lack. A process can be given a low
priority and a deadline, and killed with its copies. It reads the last committed epoch, as
`rejoin state get` does. One runs at a time.
"""

import contextlib
import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from spark_jobs.commands import Command, StateOrder, answer
from spark_jobs.driver import replays
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.settings import JobSettings

WITHIN_S = 120.0
LEAST_FREE_BYTES = 1 << 30
ASKED, FOUND, LOG = "asked.pickle", "found.json", "lookup.log"
_LOW_PRIORITY = 10  # a tenth of the share of a task; with less, a busy machine would not answer
_FIRST_TO_GO = "1000"  # when memory runs out, the kernel of Linux kills this process first
_MAX_ERROR_CHARS = 500


class Process(replays.Process, Protocol):
    """The part of `embedded.process.Child` that is used here."""

    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """What the process is given, as the driver has it: to plan anew could find other functions."""

    order: StateOrder
    settings: JobSettings
    sinks: Mapping[str, KafkaSink]


@dataclass(frozen=True, slots=True)
class _Running:
    """A lookup that has not ended; its folder is for this process and user alone."""

    command: Command
    process: Process
    folder: Path
    deadline_s: float


@dataclass(slots=True)
class StateLookups:
    """The lookups of one driver. `_sinks`: the plan that it runs, whatever the file holds now."""

    _settings: JobSettings
    _sinks: Mapping[str, KafkaSink]
    _start: Callable[[Sequence[str], Path], Process]
    _running: _Running | None = None

    def begin(self, command: Command) -> None:
        """Start a lookup, to be answered at its end; refuse it if another one is running."""
        if command.state is None:
            return self._refuse(command, "the command does not say which keys to look up")
        if self._running is not None:
            running = self._running.command.id
            return self._refuse(command, f"lookup {running} is still running: try again later")
        if _is_full():
            return self._refuse(command, f"{tempfile.gettempdir()} has less than 1 GiB left")
        try:
            folder = Path(tempfile.mkdtemp(prefix="rejoin-lookup-"))
        except OSError as error:
            return self._refuse(command, f"the lookup could not start: {error}")
        try:
            self._running = self._started(command, command.state, folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            self._refuse(command, f"the lookup could not start: {error}")
        return None

    def poll(self) -> None:
        """Answer the command if the lookup has ended; kill a lookup that takes too much."""
        running = self._running
        if running is None:
            return
        if running.process.exit_code is not None:
            self._end("")
        elif time.monotonic() > running.deadline_s:
            self._end(f"it took longer than {WITHIN_S:.0f} s and was killed")
        elif _is_full():
            self._end(f"it was killed: {tempfile.gettempdir()} has less than 1 GiB left")

    def stop(self) -> None:
        """Kill the lookup, because the driver ends."""
        if self._running is not None:
            self._end("the job ended first")

    def _started(self, command: Command, asked: StateOrder, folder: Path) -> _Running:
        job = Asked(asked, self._settings, dict(self._sinks))
        (folder / ASKED).write_bytes(pickle.dumps(job))
        # the keys are in the file: everybody on a machine can read command lines
        line = [sys.executable, "-m", "spark_jobs.state.lookup", str(folder)]
        process = self._start(line, folder / LOG)
        _yield_to_others(process.pid)
        return _Running(command, process, folder, time.monotonic() + WITHIN_S)

    def _end(self, why: str) -> None:
        """Answer with what was found, or with why nothing was; remove the copies of the state."""
        running = self._running
        if running is None:
            return
        self._running = None
        running.process.stop(0)
        found, error = _read(running.folder)
        shutil.rmtree(running.folder, ignore_errors=True)
        if why or found is None:
            self._refuse(running.command, f"no state could be read: {why or error}")
            return
        rows = sum(side["rows"] for operator in found for side in operator["sides"])
        rows_text = {0: "no rows", 1: "1 row"}.get(rows, f"{rows:,} rows")
        text = f"{rows_text} in {len(found)} operator{'' if len(found) == 1 else 's'}"
        answer(self._settings.status_dir, running.command, text, state=found)

    def _refuse(self, command: Command, why: str) -> None:
        answer(self._settings.status_dir, command, why, done=False)


def _is_full() -> bool:
    """Whether the copies of the state could take the disk space that the job itself needs."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(tempfile.gettempdir()).free < LEAST_FREE_BYTES
    return False


def _yield_to_others(pid: int) -> None:
    """Let the job's tasks go before the process and the JVM that it starts."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _LOW_PRIORITY)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")


def _read(folder: Path) -> tuple[list[dict[str, Any]] | None, str]:
    """What the process found; else None and its error."""
    try:
        found = json.loads((folder / FOUND).read_text(encoding="utf-8"))
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            log = (folder / LOG).read_text(encoding="utf-8", errors="replace")
            return None, " ".join(log.split())[-_MAX_ERROR_CHARS:] or "the process was killed"
        return None, "the process left no log"
    except (OSError, ValueError) as error:
        return None, str(error)
    return found, ""

"""The sidecar's one view of the driver: its status file, however old, broken or absent that is."""

import os
import stat
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from spark_jobs.status import STATUS_FILE, JobStatus

MAX_BYTES = 4 * 2**20  # a job of a thousand partitions writes a tenth of it

Problem = Literal["status_missing", "status_unreadable", "status_stale"]


@dataclass(frozen=True, slots=True)
class View:
    """What is known of the driver now. `status` is the last good one, also beside a problem."""

    status: JobStatus | None
    age_s: float | None
    problem: Problem | None
    detail: str


@dataclass(frozen=True, slots=True)
class _Read:
    """One look at the file: its identity, and what was in it."""

    version: tuple[int, int, int] | None
    status: JobStatus | None
    problem: Problem | None
    detail: str


class Driver:
    """Reads `<folder>/status.json` when asked, parsing it again only when it has changed."""

    def __init__(self, folder: Path, stale_after_s: float) -> None:
        self._path = folder / STATUS_FILE
        self._stale_after_s = stale_after_s
        self._lock = threading.Lock()
        self._last = _Read(None, None, "status_missing", "not looked yet")
        self.read_errors = 0

    def look(self) -> View:
        """The state of things; never raises."""
        with self._lock:
            self._last = read = self._read()
        if read.status is None:
            return View(None, None, read.problem, read.detail)
        age_s = time.time() - instant(read.status.updated_at)
        if read.problem is None and abs(age_s) > self._stale_after_s:
            # a status from the future comes from a clock that cannot be trusted either
            side = "old" if age_s > 0 else "ahead of this clock"
            return View(read.status, age_s, "status_stale", f"{abs(age_s):.0f} s {side}")
        return View(read.status, age_s, read.problem, read.detail)

    def _read(self) -> _Read:
        try:
            # NONBLOCK: a pipe of that name must not stop the sidecar; NOFOLLOW: nor lead it away
            handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return self._problem("status_missing", f"no {STATUS_FILE} in {self._path.parent}")
        except OSError as error:
            return self._problem("status_unreadable", error.strerror or str(error))
        try:
            return self._parse(handle)
        except OSError as error:
            return self._problem("status_unreadable", error.strerror or str(error))
        finally:
            os.close(handle)

    def _parse(self, handle: int) -> _Read:
        facts = os.fstat(handle)
        version = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if version == self._last.version:
            return self._last
        if not stat.S_ISREG(facts.st_mode):
            return self._problem("status_unreadable", "not a regular file")
        if facts.st_size > MAX_BYTES:
            return self._problem("status_unreadable", f"larger than {MAX_BYTES} bytes")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
        try:
            status = JobStatus.model_validate_json(data)
        except (ValidationError, RecursionError, ValueError) as error:
            reason = _first_problem(error)
            return replace(self._problem("status_unreadable", reason), version=version)
        return _Read(version, status, None, "")

    def _problem(self, problem: Problem, detail: str) -> _Read:
        """Keeps the last good status: half a second of a bad file must not blind the metrics."""
        if problem == "status_unreadable":
            self.read_errors += 1
        return _Read(None, self._last.status, problem, detail)


def instant(time_of_status: datetime) -> float:
    """Unix time; a time without a zone is UTC."""
    zoned = time_of_status if time_of_status.tzinfo else time_of_status.replace(tzinfo=UTC)
    return zoned.timestamp()


def _first_problem(error: Exception) -> str:
    """Where, and what; never the file's own text, which nobody has vouched for."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        return f"{place}: {first['type']}"[:200]
    return type(error).__name__

"""A record file of another process: read when asked, however old, broken or absent it is."""

import os
import stat
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

MAX_BYTES = 4 * 2**20  # a job of a thousand partitions writes a tenth of it

Problem = Literal["missing", "unreadable"]
Record = TypeVar("Record", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Look(Generic[Record]):
    """One look: the file's identity, the last good record, what is wrong with the present one."""

    version: tuple[int, int, int] | None
    record: Record | None
    problem: Problem | None
    detail: str


class RecordFile(Generic[Record]):
    """Parses the file again only when it has changed; never raises."""

    def __init__(self, path: Path, model: type[Record]) -> None:
        self._path = path
        self._model = model
        self._lock = threading.Lock()
        self._last: Look[Record] = Look(None, None, "missing", "not looked yet")
        self.read_errors = 0

    def look(self) -> Look[Record]:
        with self._lock:
            self._last = found = self._read()
        return found

    def _read(self) -> Look[Record]:
        try:
            # NONBLOCK: a pipe of that name must not stop the sidecar; NOFOLLOW: nor lead it away
            handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return self._problem("missing", f"no {self._path.name} in {self._path.parent}")
        except OSError as error:
            return self._problem("unreadable", error.strerror or str(error))
        try:
            return self._parse(handle)
        except OSError as error:
            return self._problem("unreadable", error.strerror or str(error))
        finally:
            os.close(handle)

    def _parse(self, handle: int) -> Look[Record]:
        facts = os.fstat(handle)
        version = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if version == self._last.version:
            return self._last
        if not stat.S_ISREG(facts.st_mode):
            return self._problem("unreadable", "not a regular file")
        if facts.st_size > MAX_BYTES:
            return self._problem("unreadable", f"larger than {MAX_BYTES} bytes")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
        try:
            record = self._model.model_validate_json(data)
        except (ValidationError, RecursionError, ValueError) as error:
            reason = _first_problem(error)
            return replace(self._problem("unreadable", reason), version=version)
        return Look(version, record, None, "")

    def _problem(self, problem: Problem, detail: str) -> Look[Record]:
        """Keeps the last good record: half a second of a bad file must not blind the metrics."""
        if problem == "unreadable":
            self.read_errors += 1
        return Look(None, self._last.record, problem, detail)


def _first_problem(error: Exception) -> str:
    """Where, and what; never the file's own text, which nobody has vouched for."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        return f"{place}: {first['type']}"[:200]
    return type(error).__name__

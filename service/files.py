"""Reads a record file that another process writes, even if it is stale, broken or missing."""

import os
import stat
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

MAX_BYTES = 4 * 2**20  # a job with a thousand partitions writes a tenth of that

FileProblem = Literal["missing", "unreadable"]
Record = TypeVar("Record", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[Record]):
    """The file's version, the last good record, and what is wrong with the file now."""

    version: tuple[int, int, int] | None
    record: Record | None
    problem: FileProblem | None
    detail: str


class RecordFile(Generic[Record]):
    """Parses the file only if it has changed since the last read; never raises."""

    def __init__(self, path: Path, model: type[Record]) -> None:
        self._path = path
        self._model = model
        self._lock = threading.Lock()
        self._last: ReadResult[Record] = ReadResult(None, None, "missing", "not read yet")
        self.read_errors = 0

    def read(self) -> ReadResult[Record]:
        with self._lock:
            self._last = found = self._read()
        return found

    def _read(self) -> ReadResult[Record]:
        # O_NONBLOCK: a pipe must not block the sidecar; O_NOFOLLOW: no link to other files
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
        try:
            with open(self._path, "rb", opener=lambda path, _: os.open(path, flags)) as file:
                return self._parse(file)
        except FileNotFoundError:
            return self._problem("missing", f"no {self._path.name} in {self._path.parent}")
        except OSError as error:
            return self._problem("unreadable", error.strerror or str(error))

    def _parse(self, file: BinaryIO) -> ReadResult[Record]:
        facts = os.fstat(file.fileno())
        version = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if version == self._last.version:
            return self._last
        if not stat.S_ISREG(facts.st_mode):
            return self._problem("unreadable", "not a regular file")
        if facts.st_size > MAX_BYTES:
            return self._problem("unreadable", f"larger than {MAX_BYTES} bytes")
        try:
            record = self._model.model_validate_json(file.read(MAX_BYTES + 1))
        except (ValidationError, RecursionError, ValueError) as error:
            reason = _first_problem(error)
            return replace(self._problem("unreadable", reason), version=version)
        return ReadResult(version, record, None, "")

    def _problem(self, problem: FileProblem, detail: str) -> ReadResult[Record]:
        """Keep the last good record, so that one unreadable file does not interrupt the metrics."""
        if problem == "unreadable":
            self.read_errors += 1
        return ReadResult(None, self._last.record, problem, detail)


def _first_problem(error: Exception) -> str:
    """Position and kind of the first error, but no text of the file, which is not trusted."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        return f"{place}: {first['type']}"[:200]
    return type(error).__name__

"""Commands from the sidecar to the driver, as files in the status folder.

Driver and sidecar may run in different containers that share nothing but this folder. The driver
takes each command once and writes an answer file.
"""

import contextlib
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_jobs.status import Moment, now, replace_file

FOLDER = "commands"
KEPT_S = 3600.0
_MOST_BYTES = 65536

Verb = Literal["stop", "drain", "log-level", "dlq-replay"]
LogLevel = Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG"]


class ReplayOrder(BaseModel):
    """Which dead letters to replay: those of these tables and reasons, or all.

    Unlike `rejoin dlq replay`, there is no command to repair them: the holder of the admin token
    must not be able to run programs.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"tables": ["orders"], "reasons": ["json-malformed"], "limit": 100}]
        },
    )

    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] | None = Field(
        default=None, description="only this dead-letter topic"
    )
    tables: tuple[Annotated[str, Field(pattern=r"^[^\x00-\x1f]{1,200}$")], ...] = Field(
        default=(), max_length=50
    )
    reasons: tuple[Annotated[str, Field(pattern=r"^[a-z-]{1,60}$")], ...] = Field(
        default=(), max_length=50
    )
    limit: int = Field(default=1000, ge=1, le=10_000, description="most records per topic")


class Command(BaseModel):
    """`stop` aborts the running epoch, `drain` lets it finish.

    `level` belongs to log-level, `replay` to dlq-replay.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    verb: Verb
    level: LogLevel | None = None
    replay: ReplayOrder | None = None
    asked_at: Moment
    asked_by: str = Field(max_length=200)


class Answer(BaseModel):
    """The result of a command."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(examples=["9f86d081884c7d65"])
    verb: Verb = Field(examples=["dlq-replay"])
    done: bool = Field(examples=[True])
    message: str = Field(examples=["replayed 3, left 1, 0 more beyond the limit"])
    at: Moment = Field(examples=["2024-01-31T12:00:00Z"])


def send(
    folder: Path,
    verb: Verb,
    asked_by: str,
    level: LogLevel | None = None,
    replay: ReplayOrder | None = None,
) -> Command:
    """Write a command for the driver of this status folder."""
    command = Command(
        id=secrets.token_hex(8),
        verb=verb,
        level=level,
        replay=replay,
        asked_at=now(),
        asked_by=asked_by[:200],
    )
    replace_file(folder / FOLDER / f"{command.id}.ask", command.model_dump_json())
    return command


def take(folder: Path) -> Iterator[Command]:
    """Waiting commands, oldest first; each file is removed before its command is returned.

    A file that cannot be removed is skipped, because its command would run again and again. A
    file that is no command is removed.
    """
    waiting = sorted((folder / FOLDER).glob("*.ask"), key=_age)
    for path in waiting:
        found = None
        with contextlib.suppress(OSError, ValidationError, ValueError):
            found = Command.model_validate_json(_text(path))
        try:
            path.unlink()
        except OSError:
            continue
        if found is not None:
            yield found


def answer(folder: Path, command: Command, message: str, *, done: bool = True) -> None:
    """Write the answer and delete old ones; a full disk must not end the job."""
    response = Answer(id=command.id, verb=command.verb, done=done, message=message, at=now())
    with contextlib.suppress(OSError):
        replace_file(folder / FOLDER / f"{command.id}.answer", response.model_dump_json())
    for path in (folder / FOLDER).glob("*.answer"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT_S:
                path.unlink()


def read_answer(folder: Path, command_id: str) -> Answer | None:
    """None while the driver has not answered."""
    try:
        return Answer.model_validate_json(_text(folder / FOLDER / f"{command_id}.answer"))
    except (OSError, ValidationError, ValueError):
        return None


def discard(folder: Path) -> None:
    """Remove commands that were meant for an earlier driver."""
    for _ in take(folder):
        pass


def _text(path: Path) -> bytes:
    """The content of a small regular file, else nothing: reading a pipe or a device would hang."""
    facts = path.lstat()
    is_small = stat.S_ISREG(facts.st_mode) and facts.st_size <= _MOST_BYTES
    return path.read_bytes() if is_small else b""


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0

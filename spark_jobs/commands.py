"""What the sidecar asks of the driver: one file per command in the status folder.

The sidecar may run in another container, so that a file in the shared folder is all that both
have. A command is taken once; its answer replaces it.
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
    """Which dead letters go back to their topics: of these tables and reasons, or all.

    No command repairs them on the way: whoever holds the token is not to run programs here.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"tables": ["orders"], "reasons": ["json-malformed"], "limit": 100}]
        },
    )

    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] | None = Field(
        default=None, description="this dead-letter topic only"
    )
    tables: tuple[Annotated[str, Field(pattern=r"^[^\x00-\x1f]{1,200}$")], ...] = Field(
        default=(), max_length=50
    )
    reasons: tuple[Annotated[str, Field(pattern=r"^[a-z-]{1,60}$")], ...] = Field(
        default=(), max_length=50
    )
    limit: int = Field(default=1000, ge=1, le=10_000, description="at most so many of a topic")


class Command(BaseModel):
    """`stop` cuts the running epoch off, `drain` lets it finish.

    `level` is for log-level, `replay` for dlq-replay.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    verb: Verb
    level: LogLevel | None = None
    replay: ReplayOrder | None = None
    asked_at: Moment
    asked_by: str = Field(max_length=200)


class Answer(BaseModel):
    """What became of a command."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(examples=["9f86d081884c7d65"])
    verb: Verb = Field(examples=["dlq-replay"])
    done: bool = Field(examples=[True])
    message: str = Field(examples=["replayed 3, left 1, 0 more beyond the limit"])
    at: Moment = Field(examples=["2024-01-31T12:00:00Z"])


def ask(
    folder: Path,
    verb: Verb,
    asked_by: str,
    level: LogLevel | None = None,
    replay: ReplayOrder | None = None,
) -> Command:
    """Leave a command for the driver of this status folder."""
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
    """Each command that waits, oldest first, once; what is no command is removed.

    One that cannot be removed is none: it would be carried out again and again.
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
    """Say what became of it, and forget old answers; a full disk there does not end the job."""
    told = Answer(id=command.id, verb=command.verb, done=done, message=message, at=now())
    with contextlib.suppress(OSError):
        replace_file(folder / FOLDER / f"{command.id}.answer", told.model_dump_json())
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
    """Forget what was asked of an earlier driver."""
    for _ in take(folder):
        pass


def _text(path: Path) -> bytes:
    """Nothing of what is no small file: a pipe would be waited for, a device never ends."""
    facts = path.lstat()
    is_small = stat.S_ISREG(facts.st_mode) and facts.st_size <= _MOST_BYTES
    return path.read_bytes() if is_small else b""


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0

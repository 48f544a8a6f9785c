"""Commands from the sidecar to the driver, as files in the status folder.

Driver and sidecar may run in different containers that share nothing but this folder. The driver
takes each command once and writes an answer file.
"""

import contextlib
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_jobs.status import Moment, now, replace_file

FOLDER = "commands"
KEPT_S = 3600.0
_MOST_BYTES = 65536
_MOST_ANSWER_BYTES = 1 << 20  # rows of state are in it

Verb = Literal["stop", "drain", "log-level", "dlq-replay", "state-get"]
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


class StateLookup(BaseModel):
    """A join key, as `rejoin state get` takes it, of one operator or of each that it fits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(max_length=2000, description='42, abc, [42, "abc"] or {"id": 42}')
    operator: Annotated[str, Field(pattern=r"^[^\x00-\x1f]{1,500}$")] | None = Field(
        default=None, description="its id in /state; every operator that the key fits if omitted"
    )


class StateOrder(BaseModel):
    """Which rows of state to show: at most `limit` of each side of each operator."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"lookups": [{"operator": "enriched/temporal-join-1", "key": "42"}]}]
        },
    )

    lookups: tuple[StateLookup, ...] = Field(min_length=1, max_length=20)
    limit: int = Field(default=20, ge=1, le=100, description="most rows per side")


class Command(BaseModel):
    """`stop` aborts the running epoch, `drain` lets it finish.

    `level` belongs to log-level, `replay` to dlq-replay, `state` to state-get.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    verb: Verb
    level: LogLevel | None = None
    replay: ReplayOrder | None = None
    state: StateOrder | None = None
    asked_at: Moment
    asked_by: str = Field(max_length=200)


class Answer(BaseModel):
    """The result of a command; `state` is that of state-get, an object for each operator."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(examples=["9f86d081884c7d65"])
    verb: Verb = Field(examples=["dlq-replay"])
    done: bool = Field(examples=[True])
    message: str = Field(examples=["replayed 3, left 1, 0 more beyond the limit"])
    at: Moment = Field(examples=["2024-01-31T12:00:00Z"])
    state: tuple[dict[str, Any], ...] = Field(
        default=(), description="as `rejoin state get --json` prints, and `left_out` of each side"
    )


def send(
    folder: Path,
    verb: Verb,
    asked_by: str,
    level: LogLevel | None = None,
    replay: ReplayOrder | None = None,
    state: StateOrder | None = None,
) -> Command:
    """Write a command for the driver of this status folder."""
    command = Command(
        id=secrets.token_hex(8),
        verb=verb,
        level=level,
        replay=replay,
        state=state,
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


def answer(
    folder: Path,
    command: Command,
    message: str,
    *,
    done: bool = True,
    state: Sequence[dict[str, Any]] = (),
) -> None:
    """Write the answer and delete old ones; a full disk must not end the job."""
    response = Answer(
        id=command.id, verb=command.verb, done=done, message=message, at=now(), state=tuple(state)
    )
    with contextlib.suppress(OSError):
        replace_file(folder / FOLDER / f"{command.id}.answer", response.model_dump_json())
    for path in (folder / FOLDER).glob("*.answer"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT_S:
                path.unlink()


def read_answer(folder: Path, command_id: str) -> Answer | None:
    """None while the driver has not answered."""
    try:
        text = _text(folder / FOLDER / f"{command_id}.answer", _MOST_ANSWER_BYTES)
        return Answer.model_validate_json(text)
    except (OSError, ValidationError, ValueError):
        return None


def discard(folder: Path) -> None:
    """Remove commands that were meant for an earlier driver."""
    for _ in take(folder):
        pass


def _text(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """The content of a small regular file, else nothing: reading a pipe or a device would hang."""
    facts = path.lstat()
    is_small = stat.S_ISREG(facts.st_mode) and facts.st_size <= most_bytes
    return path.read_bytes() if is_small else b""


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0

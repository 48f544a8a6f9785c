"""One driver at a time owns a checkpoint, and a driver that was replaced never gets it back.

Each driver has a higher generation than those before it, and its epoch ledgers carry the number. So
a replaced driver that still runs cannot write, even on a file system without locks.
"""

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ValidationError

from spark_jobs.errors import StateError
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.manifest import CheckpointFolder

BEAT_S = 5.0
OWNER = "rejoin/driver.json"
_WATCHED_BEATS = 4  # a driver that is silent for so many is replaced
_SETTLE_S = 1.0


class Owner(BaseModel, frozen=True):
    """The driver that took the checkpoint last.

    `writers`: the number of writers whose epoch ledgers exist. `beat` counts up while the driver
    lives, on file systems without locks. `released`: it has stopped gracefully.
    """

    generation: int
    driver: str
    host: str
    pid: int
    writers: int = 0
    beat: int = 0
    released: bool = False


@dataclass(slots=True)
class Ownership:
    """This driver's hold on the checkpoint of one query. `before`: the owner that it replaced."""

    _folder: CheckpointFolder
    own: Owner
    before: Owner | None

    @classmethod
    def take(cls, folder: CheckpointFolder) -> Self:
        """Replace the earlier owner; raises StateError while that one lives."""
        folder.lock()
        try:
            before = _read(folder)
            if before is not None and not before.released and not folder.has_locks:
                _wait_for_silence(folder, before)
            own = Owner(
                generation=1 if before is None else before.generation + 1,
                driver=uuid.uuid4().hex,
                host=socket.gethostname(),
                pid=os.getpid(),
                writers=0 if before is None else before.writers,
            )
            taken = cls(folder, own, before)
            taken._write()
            if not folder.has_locks:  # of two drivers that start at once, the last to write wins
                time.sleep(_SETTLE_S)
                taken.check()
        except BaseException:
            folder.unlock()
            raise
        return taken

    @classmethod
    @contextlib.contextmanager
    def held(cls, folder: CheckpointFolder) -> Iterator[Self]:
        """A command's hold on the folder of a stopped job."""
        ownership = cls.take(folder)
        try:
            yield ownership
        finally:
            with contextlib.suppress(JavaError, StateError):  # else the next driver waits
                ownership.release()
            folder.unlock()

    def record_ledgers(self, writers: int) -> None:
        """Record that ledgers of so many writers exist: one that is missing later was lost."""
        self._renew(writers=writers)

    def check(self) -> None:
        """Raise StateError if another driver has taken the checkpoint."""
        found = _read(self._folder)
        if found is not None and found.driver != self.own.driver:
            raise StateError(
                "CHECKPOINT_TAKEN_OVER",
                f"driver {found.generation} (process {found.pid} on {found.host}) has taken over "
                f"{self._folder.path}; this is driver {self.own.generation}",
                hint="nothing is lost: the other driver continues; let only one of them run",
            )

    def beat(self) -> None:
        """Show that this driver lives; raises StateError if another has taken the checkpoint."""
        if self._folder.has_locks:
            self.check()
        else:
            self._renew(beat=self.own.beat + 1)

    def release(self) -> None:
        """Record a graceful stop, so that the next driver need not wait."""
        self._renew(released=True)

    def hand_on(self, copy: CheckpointFolder) -> None:
        """Record in a copy of the folder that it is newer: a driver of it replaces one of this."""
        newer = self.own.model_copy(update={"generation": self.own.generation + 1})
        copy.write(OWNER, newer.model_copy(update={"released": True}).model_dump_json(indent=1))

    def _renew(self, **fields: int) -> None:
        self.check()  # a replaced driver must not overwrite the new owner's record
        self.own = self.own.model_copy(update=fields)
        self._write()

    def _write(self) -> None:
        self._folder.write(OWNER, self.own.model_dump_json(indent=1))


def _wait_for_silence(folder: CheckpointFolder, before: Owner) -> None:
    deadline = time.monotonic() + _WATCHED_BEATS * BEAT_S
    while time.monotonic() < deadline:
        time.sleep(BEAT_S / 2)
        if _read(folder) != before:
            raise StateError(
                "CHECKPOINT_IN_USE",
                f"driver {before.generation} (process {before.pid} on {before.host}) uses "
                f"{folder.path}",
                hint="stop it, or choose another checkpoint",
            )


def _read(folder: CheckpointFolder) -> Owner | None:
    text = folder.read(OWNER)
    if text is None:
        return None
    try:
        return Owner.model_validate_json(text)
    except ValidationError as cause:
        raise StateError(
            "CHECKPOINT_DAMAGED",
            f"{folder.path}/{OWNER} is damaged: {cause}",
            hint="restore the folder from one copy; without this file an older driver that still "
            "runs could write",
        ) from cause

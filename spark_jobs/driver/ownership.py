"""Which driver a checkpoint belongs to: one at a time, and never again one that was replaced.

Each driver has a higher generation than those before it. Its ledgers carry it (kernel/EpochLedger),
so a driver that was believed dead cannot write any more, whatever its file system thinks of locks.
"""

import os
import socket
import time
import uuid

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_jobs.errors import StateError
from spark_jobs.streaming.manifest import CheckpointFolder

BEAT_S = 5.0
_OWNER = "rejoin/driver.json"
_WATCHED_BEATS = 4  # how long a driver may be silent before another takes its place
_SETTLE_S = 1.0


class Owner(BaseModel):
    """The driver that took the checkpoint last. `writers`: of how many it has made the ledgers.

    `beat` counts up while it lives, where the file system has no locks; `released`: it ended in
    order.
    """

    model_config = ConfigDict(frozen=True)

    generation: int
    driver: str
    host: str
    pid: int
    writers: int = 0
    beat: int = 0
    released: bool = False


class Ownership:
    """This driver's hold on the checkpoint of one query."""

    def __init__(self, folder: CheckpointFolder) -> None:
        self._folder = folder
        folder.lock()
        try:
            self.before = self._read()
            self._take(self.before)
        except BaseException:
            folder.unlock()
            raise

    def _take(self, before: Owner | None) -> None:
        folder = self._folder
        if before is not None and not before.released and not folder.has_locks:
            self._wait_for_silence(before)
        self._own = Owner(
            generation=1 if before is None else before.generation + 1,
            driver=uuid.uuid4().hex,
            host=socket.gethostname(),
            pid=os.getpid(),
            writers=0 if before is None else before.writers,
        )
        self._write()
        if not folder.has_locks:  # two that start at once: the one that wrote last has it
            time.sleep(_SETTLE_S)
            self.check()

    @property
    def generation(self) -> int:
        return self._own.generation

    @property
    def writers(self) -> int:
        return self._own.writers

    def has_ledgers(self, writers: int) -> None:
        """From here on, a ledger of these writers that is not there was lost."""
        self._renew(writers=max(writers, self._own.writers))

    def check(self) -> None:
        """Raise StateError once another driver has taken the checkpoint."""
        found = self._read()
        if found is not None and found.driver != self._own.driver:
            raise StateError(
                "CHECKPOINT_TAKEN_OVER",
                f"driver {found.generation} (process {found.pid} on {found.host}) has taken over "
                f"{self._folder.path}; this is driver {self._own.generation}",
                hint="nothing is lost: the other one goes on; stop one of the two for good",
            )

    def beat(self) -> None:
        """Check, and show that this driver lives."""
        if self._folder.has_locks:
            self.check()
        else:
            self._renew(beat=self._own.beat + 1)

    def release(self) -> None:
        """The driver ends in order: the next one need not wait."""
        self._renew(released=True)

    def _renew(self, **fields: int) -> None:
        """Only while it is ours: a driver that was replaced must not look like the owner."""
        self.check()
        self._own = self._own.model_copy(update=fields)
        self._write()

    def _wait_for_silence(self, before: Owner) -> None:
        deadline = time.monotonic() + _WATCHED_BEATS * BEAT_S
        while time.monotonic() < deadline:
            time.sleep(BEAT_S / 2)
            if self._read() != before:
                raise StateError(
                    "CHECKPOINT_IN_USE",
                    f"driver {before.generation} (process {before.pid} on {before.host}) works in "
                    f"{self._folder.path}",
                    hint="stop it, or choose another checkpoint",
                )

    def _read(self) -> Owner | None:
        text = self._folder.read(_OWNER)
        if text is None:
            return None
        try:
            return Owner.model_validate_json(text)
        except ValidationError as cause:
            raise StateError(
                "CHECKPOINT_DAMAGED",
                f"{self._folder.path}/{_OWNER} is damaged: {cause}",
                hint="restore the folder from one copy; without this file an older driver that "
                "still lives could write",
            ) from cause

    def _write(self) -> None:
        self._folder.write(_OWNER, self._own.model_dump_json(indent=1))

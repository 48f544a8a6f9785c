"""Copies the checkpoint of a stopped job to another folder or store: `rejoin checkpoint copy`.

The manifests are copied last: a copy that was cut off is refused by `rejoin run`.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from spark_jobs.driver.ownership import BEAT_S, OWNER, Ownership
from spark_jobs.driver.rescale_record import RECORD
from spark_jobs.errors import StateError
from spark_jobs.kernel.calls import CheckpointCopy, Kernel
from spark_jobs.streaming.manifest import MANIFEST, CheckpointFolder
from spark_jobs.streaming.object_store import store_failures

_THREADS = 8  # an object store takes some time for each file


@dataclass(frozen=True, slots=True)
class Progress:
    """How much is copied: `files` of `of_files`, `bytes` of `of_bytes`."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int


Show = Callable[[Progress], None]


def copy_checkpoint(kernel: Kernel, source: str, target: str, show: Show) -> Progress:
    """Copy the checkpoint of all queries in `source`; returns how much was copied.

    Raises StateError if a driver runs, there is no checkpoint, the target has files, or a file
    system fails. A copy that was cut off has no manifests.
    """
    with store_failures(
        "COPY_FAILED",
        f"{source} was not copied to {target}",
        "the source is as it was; delete what was copied, and copy again",
    ):
        copying = kernel.checkpoint_copy(source, target)
        queries = _queries(_files(copying))
        if not queries:
            raise StateError(
                "STATE_NOT_FOUND",
                f"{source} holds no checkpoint",
                hint="give the folder that `rejoin run` was given as --checkpoint",
            )
        if copying.hasTarget():
            raise StateError(
                "CHECKPOINT_EXISTS",
                f"{target} has files",
                hint="choose another folder; a copy that was cut off can be deleted",
            )
        with ExitStack() as owned:
            owners = {
                query: owned.enter_context(_owned(CheckpointFolder.stored(kernel, source, query)))
                for query in queries
            }
            files = {f: size for f, size in _files(copying).items() if _is_copied(f, owners)}
            manifests = {f"{query}/{MANIFEST}" for query in owners}
            copies = _Copies(copying, files, owners.values(), show)
            copies.make(files.keys() - manifests)
            for query, owner in owners.items():
                owner.hand_on(CheckpointFolder.stored(kernel, target, query))
            copies.make(manifests)
            return copies.made


class _Copies:
    """Copies files, several at a time, says how much is copied, and keeps the source's owners."""

    def __init__(
        self,
        copying: CheckpointCopy,
        sizes: Mapping[str, int],
        owners: Iterable[Ownership],
        show: Show,
    ) -> None:
        self.made = Progress(0, len(sizes), 0, sum(sizes.values()))
        self._copying, self._sizes, self._owners, self._show = copying, sizes, owners, show
        self._beaten = time.monotonic()

    def make(self, files: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            futures = {threads.submit(self._copying.copy, file): file for file in files}
            try:
                for future in as_completed(futures):
                    future.result()
                    self._count(futures[future])
                    self._beat()
            finally:
                threads.shutdown(cancel_futures=True)

    def _count(self, file: str) -> None:
        files, size = self.made.files + 1, self.made.bytes + self._sizes[file]
        self.made = replace(self.made, files=files, bytes=size)
        self._show(self.made)

    def _beat(self) -> None:
        if time.monotonic() - self._beaten >= BEAT_S:
            self._beaten = time.monotonic()
            for owner in self._owners:
                owner.beat()


def _queries(files: Iterable[str]) -> list[str]:
    return [file.removesuffix(f"/{MANIFEST}") for file in files if file.endswith(f"/{MANIFEST}")]


def _is_copied(file: str, queries: Iterable[str]) -> bool:
    """Whether a file belongs to the job; the copies get an owner of their own."""
    query, _, name = file.partition("/")
    return file == RECORD or (query in queries and name != OWNER)


def _files(copying: CheckpointCopy) -> dict[str, int]:
    return dict(json.loads(copying.files()))


@contextmanager
def _owned(folder: CheckpointFolder) -> Iterator[Ownership]:
    with Ownership.held(folder) as ownership:
        folder.read_manifest()
        folder.check_logs()
        yield ownership

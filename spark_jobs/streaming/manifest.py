"""The folder of a query's checkpoint: the manifest, and Spark's logs of offsets and commits.

The manifest, `<checkpoint>/<query>/rejoin/manifest.json`, is written before the first epoch. It
fixes where the inputs start and end, so that a restart reads the same rows. A compatible change of
the job replaces the plan in it (driver/verdict.py).
"""

import json
import time
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ValidationError
from pyspark.sql import SparkSession

from spark_jobs.access.topics import Offsets
from spark_jobs.errors import StateError
from spark_jobs.kernel.calls import CheckpointFiles, Kernel
from spark_jobs.plan.check.fingerprint import Fingerprint
from spark_jobs.streaming.sources import ScanStart, offsets_json

VERSION = 3
STATE_FORMAT = 1
"""The highest version byte that the kernel writes in front of a cell (kernel/Codec.scala)."""

LOCK_WAIT_S = 30.0
MANIFEST = "rejoin/manifest.json"
COUNTERS = "rejoin/counters.json"


class Writer(BaseModel, frozen=True):
    """The release that last wrote a manifest."""

    rejoin: str
    spark: str
    state_format: int


class Manifest(BaseModel, frozen=True):
    """The identity of a checkpoint, and everything that its state depends on.

    `state`: the digest by which release 0.1.0 compares, so that a return to it is possible while it
    reads the state format. Manifests of version 1 have no `plan` and no `written_by`.
    `topic_ids`: ids of the source topics; a topic that is deleted and created again has a new one.
    `sink_partitions`: their number in the sink's topic; a record's key or hash selects one.
    `ledgers`: the prefix of ledger names and transactional ids, unless the sink declares one: the
    job's name at the first start, so that a job can be renamed.
    If an older driver has not recorded these three, the next start does.
    `matched_topics`: by scan, the topics that its pattern has matched, with their indexes; deleted
    ones stay.
    `rescaled`: the first of the latest epochs that only moved state to other tasks, and the epoch
    after the last of them. `unledgered`: the first of the latest epochs that were written without
    epoch ledgers, at least once; None if the last one has ledgers.
    `even_groups`: key groups are spread evenly over the tasks (GroupKey.scala). A checkpoint that
    was begun otherwise stays as it is, with version 2.
    """

    version: int
    checkpoint: str
    query: str
    topics: tuple[str, ...]
    groups: int
    parallelism: int
    state: str
    scans: dict[str, ScanStart]
    plan: Fingerprint | None = None
    written_by: Writer | None = None
    topic_ids: dict[str, str] = {}
    sink_partitions: int | None = None
    ledgers: str | None = None
    matched_topics: dict[str, dict[str, int]] = {}
    rescaled: tuple[int, int] | None = None
    unledgered: int | None = None
    even_groups: bool = False

    @classmethod
    def read(cls, text: str, query: str, path: str) -> Self:
        """Parse the manifest of a query; `path` is for error messages."""
        try:
            found = cls.model_validate_json(text)
        except ValidationError as cause:
            raise StateError(
                "MANIFEST_UNREADABLE",
                f"query {query}: {path}/{MANIFEST} is damaged: {cause}",
                hint="restore the file, or start from a new checkpoint",
            ) from cause
        if found.version > VERSION:
            raise StateError(
                "MANIFEST_NEWER",
                f"query {query}: {path}/{MANIFEST} has version {found.version}, this release "
                f"reads up to {VERSION}",
                hint="use the release that wrote it, or a newer one",
            )
        return found

    def rescaled_to(self, parallelism: int, epoch: int | None) -> Self:
        """The manifest after `epoch` has moved the state to so many tasks.

        None if there was no state to move. The same for a manifest that is rescaled already.
        """
        rescaled = self.rescaled
        if epoch is not None:
            follows = rescaled is not None and rescaled[1] in (epoch, epoch + 1)
            rescaled = (rescaled[0] if rescaled and follows else epoch, epoch + 1)
        return self.model_copy(update={"parallelism": parallelism, "rescaled": rescaled})

    def may_be_ledgered(self, epoch: int) -> bool:
        """Whether an epoch that was begun may stand in a ledger: its first run may have had one."""
        return self.unledgered is None or epoch <= self.unledgered

    def since(self, epoch: int) -> int:
        """The epoch after the last one before `epoch` whose records stand in a ledger."""
        first, end = self.rescaled or (epoch, epoch)
        since = first if end == epoch else epoch
        return since if self.unledgered is None else min(since, self.unledgered)


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """The folder of one query, on any file system that Spark can use."""

    path: str
    _query: str
    _files: CheckpointFiles

    @classmethod
    def open(cls, spark: SparkSession, root: str, query: str) -> Self:
        path = f"{root.rstrip('/')}/{query}"
        return cls(path, query, Kernel.of(spark).checkpoint_files(spark, path))

    @classmethod
    def stored(cls, kernel: Kernel, root: str, query: str) -> Self:
        """Without a Spark session."""
        path = f"{root.rstrip('/')}/{query}"
        return cls(path, query, kernel.stored_files(path))

    def lock(self, wait_s: float = LOCK_WAIT_S) -> None:
        """Lock the folder; waits, because the JVM of a killed driver ends a little later."""
        deadline = time.monotonic() + wait_s
        while not self._files.lock():
            if time.monotonic() > deadline:
                raise StateError(
                    "CHECKPOINT_IN_USE",
                    f"query {self._query}: another driver uses {self.path}",
                    hint="stop it, or choose another checkpoint",
                )
            time.sleep(0.2)

    def unlock(self) -> None:
        self._files.unlock()

    @property
    def has_locks(self) -> bool:
        """Whether `lock` keeps other drivers out, which it does on a local disk only."""
        return bool(self._files.hasLocks())

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is none."""
        return self._files.read(name)

    def write(self, name: str, text: str) -> None:
        """Replace a file; readers see either the old or the new text."""
        self._files.write(name, text)

    def read_manifest(self) -> Manifest | None:
        """None before the first start."""
        text = self._files.read(MANIFEST)
        if text is None and self._last("commits") is not None:
            raise StateError(
                "MANIFEST_MISSING",
                f"query {self._query}: {self.path} is a checkpoint without {MANIFEST}",
                hint="restore the file, or start from a new checkpoint",
            )
        return None if text is None else Manifest.read(text, self._query, self.path)

    def write_manifest(self, manifest: Manifest) -> None:
        self._files.write(MANIFEST, manifest.model_dump_json(indent=1))

    def repeated_epoch(self) -> int | None:
        """The epoch that was planned but not committed: the next start repeats it."""
        planned, committed = self._last("offsets"), self._last("commits")
        return planned if planned is not None and planned != committed else None

    def has_committed(self, epoch: int) -> bool:
        return self._files.read(f"commits/{epoch}") is not None

    def begun_epoch(self) -> int | None:
        """The epoch that is not committed, and of which results may be there."""
        planned, following = self.repeated_epoch(), self.next_epoch
        return following if planned is None and self.has_barriers(following) else planned

    def has_barriers(self, epoch: int) -> bool:
        """Whether an epoch of real-time mode was begun with transactions."""
        return epoch in list(self._files.entries("barriers"))

    def take_back_epoch(self, epoch: int) -> None:
        """Remove what Spark has noted of its last epoch, the commit first."""
        self._files.delete(f"commits/{epoch}")
        for operator in self._files.entries("state"):
            self._files.delete(f"state/{operator}/_metadata/v2/{epoch}")
        self._files.delete(f"offsets/{epoch}")

    def drop_partitions(self, first: int) -> None:
        """Remove the state partitions from number `first` on."""
        for operator in self._files.entries("state"):
            for partition in self._files.entries(f"state/{operator}"):
                if partition >= first:
                    self._files.delete(f"state/{operator}/{partition}")

    def state_bytes(self, operator: int) -> int:
        """The size of an operator's files, those of older epochs among them."""
        return int(self._files.size(f"state/{operator}"))

    def move_offsets(self, positions: Offsets) -> None:
        """Let the next epoch read the topics from `positions`; no epoch may be uncommitted."""
        if lines := self._offset_lines():
            moved = [_moved(line, positions) for line in lines[2:]]
            self._files.write(f"offsets/{self._last('commits')}", "\n".join(lines[:2] + moved))

    def committed_offsets(self) -> list[Offsets | None]:
        """Offsets per source after the last epoch, in the query's order; None for a clock."""
        return [_kafka_offsets(line) for line in self._offset_lines()[2:]]

    def has_ended(self) -> bool:
        """Whether the last epoch brought the end mark to every clock of the query."""
        parsed = (json.loads(line) for line in self._offset_lines()[2:] if line != "-")
        ends = [offset["end"] for offset in parsed if isinstance(offset.get("end"), bool)]
        return bool(ends) and all(ends)

    @property
    def next_epoch(self) -> int:
        """The number of the first epoch that is not committed."""
        committed = self._last("commits")
        return 0 if committed is None else committed + 1

    def check_logs(self) -> None:
        """Raise StateError if the newest entries of Spark's logs are missing or damaged."""
        planned, committed = self._last("offsets"), self._last("commits")
        needed = {f"offsets/{n}" for n in (planned, committed) if n is not None}
        needed |= set() if committed is None else {f"commits/{committed}"}
        for name in sorted(needed):
            text = self._files.read(name)
            if text is None or not _is_log_entry(text):
                state = "is missing" if text is None else "is cut off or damaged"
                raise StateError(
                    "CHECKPOINT_DAMAGED",
                    f"query {self._query}: {self.path}/{name} {state}",
                    hint="restore the whole folder from one copy, or start from a new checkpoint; "
                    "this start has read and written nothing",
                )

    def _offset_lines(self) -> list[str]:
        """The offsets of the last epoch: a version, then metadata, then a line per source."""
        last = self._last("commits")
        text = None if last is None else self._files.read(f"offsets/{last}")
        return [] if text is None else text.splitlines()

    def _last(self, log: str) -> int | None:
        last = int(self._files.last(log))
        return None if last < 0 else last


def _moved(line: str, positions: Offsets) -> str:
    offsets = _kafka_offsets(line)
    return offsets_json({t: positions.get(t, o) for t, o in offsets.items()}) if offsets else line


def _is_log_entry(text: str) -> bool:
    """Whether the text is a version, then a JSON object per line or `-` for an unread source."""
    lines = text.splitlines()
    try:
        objects = [json.loads(line) for line in lines[1:] if line != "-"]
    except ValueError:
        return False
    return len(lines) > 1 and lines[0] in ("v1", "v2") and all(isinstance(o, dict) for o in objects)


def _kafka_offsets(line: str) -> Offsets | None:
    parsed = json.loads(line) if line != "-" else None
    if not isinstance(parsed, dict) or not all(isinstance(v, dict) for v in parsed.values()):
        return None
    return {topic: {int(p): at for p, at in offsets.items()} for topic, offsets in parsed.items()}

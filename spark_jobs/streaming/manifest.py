"""What a query's checkpoint remembers beside Spark's own files.

One JSON file per query, `<checkpoint>/<query>/rejoin/manifest.json`, written before the first
epoch. Where the inputs start and end is decided then and never again: a restart reads the same
rows. A job that differs in what state does not depend on replaces the plan in it (verdict.py).
"""

import json
import time
import uuid
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pyspark.sql import SparkSession

from spark_jobs.errors import StateError
from spark_jobs.plan.check.fingerprint import Fingerprint
from spark_jobs.streaming.kafka import Offsets, offsets_json
from spark_jobs.streaming.session import kernel

VERSION = 2
STATE_FORMAT = 1
"""The highest version byte that the kernel writes in front of a cell (kernel/Codec.scala)."""

LOCK_WAIT_S = 30.0
MANIFEST = "rejoin/manifest.json"
_COUNTERS = "rejoin/counters.json"


class ScanStart(BaseModel):
    """Where a scan began and, if it is bounded, where it ends.

    `loaded`: where probe rows wait for this table, the ends of its partitions at the first start;
    those without a record to read then are left out.
    """

    model_config = ConfigDict(frozen=True)

    starts: Offsets
    ends: Offsets | None
    loaded: Offsets | None = None


class Writer(BaseModel):
    """The release that wrote a manifest last."""

    model_config = ConfigDict(frozen=True)

    rejoin: str
    spark: str
    state_format: int


class Manifest(BaseModel):
    """The identity of a checkpoint and all that its state depends on.

    `state` is the digest by which release 0.1.0 compares, so that going back to it is possible
    while it reads the state format; manifests of version 1 have no `plan` and no `written_by`.
    `topic_ids`: of the sources' topics, which change when a topic is created anew.
    `sink_partitions`: those that the sink's topic had, among which a record's key or hash chooses.
    `ledgers`: what the names of ledgers and transactional ids begin with, unless the sink declares
    it: the job's name at the first start, so that a job may be called anew.
    All three are noted by the next start where an older driver has not.
    """

    model_config = ConfigDict(frozen=True)

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

    @staticmethod
    def new_identity() -> str:
        return uuid.uuid4().hex

    @classmethod
    def read(cls, text: str, query: str, path: str) -> Self:
        """Of a manifest's text; `path` is for the message."""
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
                hint="start the release that wrote it, or a newer one",
            )
        return found


class CheckpointFolder:
    """The folder of one query, on any file system Spark can reach; one driver works in it."""

    def __init__(self, spark: SparkSession, root: str, query: str) -> None:
        session: Any = spark._jsparkSession
        self.path = f"{root.rstrip('/')}/{query}"
        self._files = kernel(spark).CheckpointFiles(session, self.path)
        self._query = query

    def lock(self, wait_s: float = LOCK_WAIT_S) -> None:
        """Wait a while for an earlier driver to end: a killed one's JVM takes a moment."""
        deadline = time.monotonic() + wait_s
        while not self._files.lock():
            if time.monotonic() > deadline:
                raise StateError(
                    "CHECKPOINT_IN_USE",
                    f"query {self._query}: another driver works in {self.path}",
                    hint="stop it, or choose another checkpoint",
                )
            time.sleep(0.2)

    def unlock(self) -> None:
        self._files.unlock()

    @property
    def has_locks(self) -> bool:
        """Whether `lock` keeps other drivers out, as it does on a local disk only."""
        return bool(self._files.hasLocks())

    def read(self, name: str) -> str | None:
        """A file of the checkpoint; None if there is none."""
        found: str | None = self._files.read(name)
        return found

    def write(self, name: str, text: str) -> None:
        """Readers see the old text or the new one."""
        self._files.write(name, text)

    def read_manifest(self) -> Manifest | None:
        """None before the first start."""
        text = self._files.read(MANIFEST)
        if text is None:
            if self._last("commits") is None:
                return None
            raise StateError(
                "MANIFEST_MISSING",
                f"query {self._query}: {self.path} is a checkpoint, but has no {MANIFEST}",
                hint="restore the file, or start from a new checkpoint",
            )
        return Manifest.read(text, self._query, self.path)

    def write_manifest(self, manifest: Manifest) -> None:
        self._files.write(MANIFEST, manifest.model_dump_json(indent=1))

    def read_counters(self) -> str | None:
        """What the kernel had counted when an earlier driver wrote it down."""
        found: str | None = self._files.read(_COUNTERS)
        return found

    def write_counters(self, text: str) -> None:
        self._files.write(_COUNTERS, text)

    def repeated_epoch(self) -> int | None:
        """The epoch that was planned and not committed, which the next start repeats."""
        planned, committed = self._last("offsets"), self._last("commits")
        return planned if planned is not None and planned != committed else None

    def move_offsets(self, positions: Offsets) -> None:
        """Let the next epoch read these topics from there; no epoch may be half-done."""
        last = self._last("commits")
        text = None if last is None else self._files.read(f"offsets/{last}")
        if text is not None:
            lines = text.splitlines()
            moved = [_moved(line, positions) for line in lines[2:]]
            self._files.write(f"offsets/{last}", "\n".join([*lines[:2], *moved]))

    def committed_offsets(self) -> list[Offsets | None]:
        """Of each source in the query's order, after the last epoch; None for a clock."""
        last = self._last("commits")
        text = None if last is None else self._files.read(f"offsets/{last}")
        if text is None:
            return []
        lines = text.splitlines()[2:]  # a version, then metadata, then a line per source
        return [_kafka_offsets(line) for line in lines]

    @property
    def next_epoch(self) -> int:
        """The first that is not committed."""
        committed = self._last("commits")
        return 0 if committed is None else committed + 1

    def check_logs(self) -> None:
        """Raise StateError where the newest entries of Spark's logs are lost or half-written."""
        planned, committed = self._last("offsets"), self._last("commits")
        needed = {f"offsets/{n}" for n in (planned, committed) if n is not None}
        needed |= set() if committed is None else {f"commits/{committed}"}
        for name in sorted(needed):
            text = self._files.read(name)
            if text is None or not _is_log_entry(text):
                state = "is not there" if text is None else "is cut off or damaged"
                raise self.damaged(f"{self.path}/{name} {state}")

    def damaged(self, what: str) -> StateError:
        return StateError(
            "CHECKPOINT_DAMAGED",
            f"query {self._query}: {what}",
            hint="restore the whole folder from one copy, or start from a new checkpoint; nothing "
            "was read or written",
        )

    def _last(self, log: str) -> int | None:
        last = int(self._files.last(log))
        return None if last < 0 else last


def _moved(line: str, positions: Offsets) -> str:
    offsets = _kafka_offsets(line)
    return (
        line
        if offsets is None
        else offsets_json({t: positions.get(t, o) for t, o in offsets.items()})
    )


def _is_log_entry(text: str) -> bool:
    """A version, then a JSON object a line; `-` for a source that has not begun."""
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

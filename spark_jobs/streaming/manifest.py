"""What a query's checkpoint remembers beside Spark's own files, and whether a job still fits it.

One JSON file per query, `<checkpoint>/<query>/rejoin/manifest.json`, written once, before the
first epoch. Where the inputs start and end is decided then and never again: a restart reads the
same rows.
"""

import json
import time
import uuid
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pyspark.sql import SparkSession

from spark_jobs.errors import StateError
from spark_jobs.streaming.kafka import Offsets
from spark_jobs.streaming.session import kernel

LOCK_WAIT_S = 30.0
_MANIFEST = "rejoin/manifest.json"
_COUNTERS = "rejoin/counters.json"
_FIXED = ("topics", "'rejoin.key-groups'", "'rejoin.parallelism'")


class ScanStart(BaseModel):
    """Where a scan began and, if it is bounded, where it ends.

    `loaded`: where probe rows wait for this table, the ends of its partitions at the first start;
    those without a record to read then are left out.
    """

    model_config = ConfigDict(frozen=True)

    starts: Offsets
    ends: Offsets | None
    loaded: Offsets | None = None


class Manifest(BaseModel):
    """The identity of a checkpoint and all that its state depends on."""

    model_config = ConfigDict(frozen=True)

    version: int = 1
    checkpoint: str
    query: str
    topics: tuple[str, ...]
    groups: int
    parallelism: int
    state: str
    scans: dict[str, ScanStart]

    @staticmethod
    def new_identity() -> str:
        return uuid.uuid4().hex

    def check(
        self, topics: tuple[str, ...], groups: int, parallelism: int | None, state: str
    ) -> None:
        """Raise StateError unless a job of this shape can go on from here."""
        recorded = (self.topics, self.groups, self.parallelism)
        present = (topics, groups, parallelism or self.parallelism)
        for what, then, now in zip(_FIXED, recorded, present, strict=True):
            if then != now:
                raise StateError(
                    "CHECKPOINT_MISMATCH",
                    f"query {self.query}: the checkpoint was made with {what} {_text(then)}, the "
                    f"job says {_text(now)}",
                    hint="restore the old value, or give the changed job its own checkpoint",
                )
        if self.state != state:
            raise StateError(
                "STATE_INCOMPATIBLE",
                f"query {self.query}: the state in the checkpoint was made by a different join "
                "(other columns, keys, types or join kind)",
                hint="restore the old SQL, or give the changed job its own checkpoint",
            )


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

    def read_manifest(self) -> Manifest | None:
        """None before the first start."""
        text = self._files.read(_MANIFEST)
        if text is None:
            if self._last("commits") is None:
                return None
            raise StateError(
                "MANIFEST_MISSING",
                f"query {self._query}: {self.path} is a checkpoint, but has no {_MANIFEST}",
                hint="restore the file, or start from a new checkpoint",
            )
        try:
            return Manifest.model_validate_json(text)
        except ValidationError as cause:
            raise StateError(
                "MANIFEST_UNREADABLE",
                f"query {self._query}: {self.path}/{_MANIFEST} is damaged: {cause}",
            ) from cause

    def write_manifest(self, manifest: Manifest) -> None:
        self._files.write(_MANIFEST, manifest.model_dump_json(indent=1))

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

    def committed_offsets(self) -> list[Offsets | None]:
        """Of each source in the query's order, after the last epoch; None for a clock."""
        last = self._last("commits")
        text = None if last is None else self._files.read(f"offsets/{last}")
        if text is None:
            return []
        lines = text.splitlines()[2:]  # a version, then metadata, then a line per source
        return [_kafka_offsets(line) for line in lines]

    def _last(self, log: str) -> int | None:
        last = int(self._files.last(log))
        return None if last < 0 else last


def _kafka_offsets(line: str) -> Offsets | None:
    parsed = json.loads(line) if line != "-" else None
    if not isinstance(parsed, dict) or not all(isinstance(v, dict) for v in parsed.values()):
        return None
    return {topic: {int(p): at for p, at in offsets.items()} for topic, offsets in parsed.items()}


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)

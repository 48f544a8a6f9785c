"""Moves the state of a stopped job to another number of tasks: `rejoin rescale`.

Spark reads the state of each operator, exchanges it by key group and writes it into the new number
of partitions, as an epoch of its own that reads and writes no records. The ledgers of the sink stay
as they are: the manifest says which epochs had nothing to write (docs/delivery.md).
"""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.driver.ownership import BEAT_S, Ownership
from spark_jobs.driver.queries import present
from spark_jobs.driver.rescale_record import RescaleRecord, refuse_rescaling, settle_rescale
from spark_jobs.driver.verdict import judge, refuse
from spark_jobs.errors import ConfigError, RejoinError, StateError
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.settings import JobSettings
from spark_jobs.streaming.failure import JavaError, java_failures
from spark_jobs.streaming.manifest import CheckpointFolder, Manifest
from spark_jobs.streaming.object_store import check_store

_POLL_S = 0.2
_ESCAPED = re.compile(r'[\s%"<>\\^`{|}\[\]#?]')
_CANCEL_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rescale is: `done` of `of` operators, whose state files have `bytes` in all."""

    query: str
    done: int
    of: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A query after its rescale; `before` tasks, equal to the new number if it had it already."""

    query: str
    before: int
    operators: int
    bytes: int


Show = Callable[[Progress], None]
Say = Callable[[str], None]


def check_parallelism(settings: JobSettings, tasks: int) -> None:
    """Raise ConfigError for more tasks than key groups."""
    if tasks > settings.key_groups:
        raise ConfigError(
            "PARALLELISM_TOO_HIGH",
            f"--parallelism {tasks} is more than the {settings.key_groups} key groups of the job: "
            "some tasks would never get a key",
            hint=f"at most {settings.key_groups}; 'rejoin.key-groups' is fixed for a checkpoint",
        )


def rescale(
    spark: SparkSession,
    sinks: Mapping[str, KafkaSink],
    settings: JobSettings,
    tasks: int,
    show: Show,
    say: Say,
) -> list[Rescaled]:
    """Rescale all queries of a job, or none; queries without a checkpoint are left out.

    Raises StateError if a driver runs, an epoch is not committed, the job is another one or Spark
    fails; the checkpoint then is as before, at the latest after the next start.
    """
    check_parallelism(settings, tasks)
    root = settings.checkpoint
    check_store(spark, root)
    if (settled := settle_rescale(spark, root)) is not None:
        say(settled)
    with ExitStack() as owned:
        queries = [
            StoppedQuery.take(spark, name, sink, settings, owned) for name, sink in sinks.items()
        ]
        found = [query for query in queries if query is not None]
        if not found:
            raise StateError(
                "STATE_NOT_FOUND",
                f"{root} holds no checkpoint of this job",
                hint="give --checkpoint the folder that `rejoin run` was given",
            )
        refuse_rescaling(spark, root)
        changed = [query for query in found if query.manifest.parallelism != tasks]
        if changed:
            _move(spark, root, changed, tasks, show)
        return [
            Rescaled(q.name, q.manifest.parallelism, len(q.operators), sum(q.sizes)) for q in found
        ]


@dataclass(slots=True)
class StoppedQuery:
    """A query whose checkpoint this process owns; `sizes` of its operators' state, in bytes."""

    name: str
    folder: CheckpointFolder
    ownership: Ownership
    manifest: Manifest
    operators: Sequence[str]
    sizes: Sequence[int]

    @classmethod
    def take(
        cls,
        spark: SparkSession,
        name: str,
        sink: KafkaSink,
        settings: JobSettings,
        owned: ExitStack,
    ) -> "StoppedQuery | None":
        """None if there is no checkpoint; raises StateError if it cannot be rescaled."""
        folder = CheckpointFolder.open(spark, settings.checkpoint, name)
        if (manifest := folder.read_manifest()) is None:
            return None
        _check_path(folder.path)
        ownership = owned.enter_context(Ownership.held(folder))
        manifest = folder.read_manifest() or manifest
        sources = len(folder.committed_offsets()) or None
        refuse(name, judge(manifest, replace(present(sink, settings), parallelism=None), sources))
        folder.check_logs()
        if (epoch := folder.begun_epoch()) is not None:
            raise StateError(
                "RESCALE_EPOCH_OPEN",
                f"query {name}: epoch {epoch} has begun and is not committed: the job was killed",
                hint="start the job, stop it gracefully (SIGTERM or Ctrl-C), then rescale",
            )
        operators = [node.id for node in stateful_nodes(sink)]
        sizes = [folder.state_bytes(number) for number in range(len(operators))]
        return cls(name, folder, ownership, manifest, operators, sizes)

    @property
    def epoch(self) -> int | None:
        """The epoch that moves the state; None if there is none to move."""
        return self.folder.next_epoch if self.operators and self.folder.next_epoch > 0 else None


def _check_path(path: str) -> None:
    """Raise StateError where Spark's move of the state looks for a folder of another name."""
    if found := _ESCAPED.search(path):
        raise StateError(
            "RESCALE_PATH",
            f"Spark cannot rescale a checkpoint whose path has '{found[0]}': {path}",
            hint="`rejoin checkpoint copy` it to a folder with a plain name; nothing was changed",
        )


def _move(
    spark: SparkSession, root: str, queries: Sequence[StoppedQuery], tasks: int, show: Show
) -> None:
    record = RescaleRecord(parallelism=tasks, queries={q.name: q.epoch for q in queries})
    record.write(spark, root)
    moving = Moving(spark, [q for q in queries if q.epoch is not None], show)
    try:
        for query in moving.queries:
            moving.move(query, tasks)
        for query in queries:
            query.ownership.check()
    except BaseException as error:
        taken_over = isinstance(error, RejoinError) and error.code == "CHECKPOINT_TAKEN_OVER"
        if not taken_over and moving.cancel():
            with contextlib.suppress(JavaError):  # else the next start takes it back
                record.settle(spark, root, {q.name: q.folder for q in queries})
        raise
    record.settle(spark, root, {q.name: q.folder for q in queries})


class Moving:
    """Lets Spark move the state of queries, and watches it."""

    def __init__(self, spark: SparkSession, queries: Sequence[StoppedQuery], show: Show) -> None:
        self.queries = queries
        self._spark = spark
        self._show = show
        self._operators = sum(len(query.operators) for query in queries)
        self._bytes = sum(sum(query.sizes) for query in queries)
        self._jobs_before = set(self._jobs())
        self._moved = self._shown = 0  # operators
        self._beaten = time.monotonic()
        self._thread: threading.Thread | None = None

    def move(self, query: StoppedQuery, tasks: int) -> None:
        """Move the state of one query; raises RejoinError if Spark fails."""
        failures: list[BaseException] = []

        def repartition() -> None:
            manager: Any = self._spark._streamingCheckpointManager
            try:
                manager.repartition(query.folder.path, tasks)
            except BaseException as failure:
                failures.append(failure)

        self._thread = threading.Thread(target=repartition, daemon=True)
        self._thread.start()
        while self._thread.is_alive():
            self._thread.join(_POLL_S)
            self._beat()
            self._report(query)
        if failures:
            with _failed(query.name), java_failures(query.name):
                raise failures[0]
        self._moved += len(query.operators)
        self._show_up_to(self._moved, query.name)

    def cancel(self) -> bool:
        """Stop what Spark does; whether it has stopped."""
        if self._thread is not None and self._thread.is_alive():
            with contextlib.suppress(Exception):
                self._spark.sparkContext.cancelAllJobs()
            self._thread.join(_CANCEL_WITHIN_S)
        return self._thread is None or not self._thread.is_alive()

    def _beat(self) -> None:
        if time.monotonic() - self._beaten >= BEAT_S:
            self._beaten = time.monotonic()
            for query in self.queries:
                query.ownership.beat()

    def _report(self, query: StoppedQuery) -> None:
        """Spark runs one job for each operator, and says late that it has ended."""
        tracker = self._spark.sparkContext.statusTracker()
        infos = [tracker.getJobInfo(job) for job in self._jobs() if job not in self._jobs_before]
        done = sum(1 for info in infos if info is not None and info.status == "SUCCEEDED")
        self._show_up_to(min(done, self._moved + len(query.operators)), query.name)

    def _show_up_to(self, done: int, query: str) -> None:
        while self._shown < done:
            self._shown += 1
            self._show(Progress(query, self._shown, self._operators, self._bytes))

    def _jobs(self) -> Sequence[int]:
        return self._spark.sparkContext.statusTracker().getJobIdsForGroup(None)


@contextlib.contextmanager
def _failed(query: str) -> Iterator[None]:
    """Say of an error that Spark's move of the state has failed."""
    try:
        yield
    except RejoinError as error:
        if error.code != "QUERY_FAILED":
            raise
        raise StateError(
            "RESCALE_FAILED",
            error.message,
            hint="the checkpoint is as it was before; driver.log in the status folder has more",
        ) from error.__cause__

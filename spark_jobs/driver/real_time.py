"""Spark's real-time mode: task slots, the pace of watermarks, and what its epochs leave behind.

All tasks of a query run at once and for the length of an epoch: those that read Kafka, one per
clock, and those of each operator.
"""

from dataclasses import dataclass

from spark_jobs.driver.topics.inputs import partition_counts
from spark_jobs.errors import ConfigError, StateError
from spark_jobs.operators.kafka_scan import live_readers
from spark_jobs.options.spark import has_executors, known_cores
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.settings import available_cores
from spark_jobs.streaming.manifest import CheckpointFolder, Manifest
from spark_jobs.streaming.object_store import is_on_disk

MARK_ROWS_PER_S = 20_000
"""Watermarks are a row per source partition and key group: at most so many of them."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The task slots that a query occupies.

    `partitions` are those of each table, `tasks` those of each operator.
    """

    partitions: tuple[int, ...]
    clocks: int
    operators: tuple[str, ...]
    tasks: int

    @property
    def readers(self) -> int:
        return sum(min(table, live_readers(self.tasks)) for table in self.partitions)

    @property
    def needed(self) -> int:
        return self.readers + self.clocks + self.tasks * len(self.operators)

    @property
    def with_room(self) -> int:
        """Threads of a local Spark: topics may get partitions while it runs."""
        return self.needed - self.readers + live_readers(self.tasks) * len(self.partitions)

    def text(self) -> str:
        parts = [f"{self.readers} for reading Kafka"]
        parts += [f"{self.clocks} for clocks"] if self.clocks else []
        parts += [f"{self.tasks} for {operator}" for operator in self.operators]
        return " + ".join(parts)


def slots(sink: KafkaSink, parallelism: int) -> Slots:
    """What the query occupies with the partitions that its topics have now."""
    nodes = stateful_nodes(sink)
    return Slots(
        partitions=tuple(sum(partition_counts(scan).values()) for scan in scans(sink)),
        clocks=sum(node.timing.tick_ms is not None for node in nodes),
        operators=tuple(node.id for node in nodes),
        tasks=parallelism,
    )


def check_master(master: str, query: str, slots: Slots) -> None:
    """Raise ConfigError where the tasks of the query cannot all run at once."""
    if has_executors(master):
        raise ConfigError(
            "REAL_TIME_MASTER",
            f"real-time mode runs in the driver's process only, and the Spark master is {master}",
            hint="leave out --master; or SET 'rejoin.mode' = 'micro-batch'",
        )
    found = known_cores(master, {}, available_cores())
    if found is not None and found < slots.needed:
        raise ConfigError(
            "REAL_TIME_SLOTS",
            f"query {query} needs {slots.needed} task slots in real-time mode ({slots.text()}), and"
            f" {master} has {found}",
            hint=f"leave out --master, or give local[{slots.with_room}]; they are threads, not"
            " cores",
        )


def marks_ms(wanted_ms: int, partitions: int, groups: int) -> int:
    """How often watermarks come, so that they stay within their budget.

    >>> marks_ms(20, partitions=2, groups=128), marks_ms(20, partitions=8, groups=128)
    (20, 51)
    """
    return max(wanted_ms, partitions * groups * 1000 // MARK_ROWS_PER_S)


def check_barriers(folder: CheckpointFolder, query: str, *, has_steps: bool) -> None:
    """Raise StateError where parts of an epoch may be committed that only its barriers tell."""
    epoch = folder.next_epoch
    if not has_steps and folder.has_barriers(epoch):
        raise StateError(
            "REAL_TIME_EPOCH_OPEN",
            f"query {query}: epoch {epoch} was begun in real-time mode with transactions, and not"
            " committed",
            hint="run the job once more as it was, and stop it with SIGTERM",
        )


def check_checkpoint(folder: CheckpointFolder, query: str) -> None:
    """Raise ConfigError where the files of barriers cannot grow."""
    if not is_on_disk(folder.path):
        raise ConfigError(
            "REAL_TIME_CHECKPOINT",
            f"query {query}: an exactly-once sink in real-time mode needs a checkpoint on a disk of"
            f" the driver, and it is {folder.path}",
            hint="leave out 'sink.delivery-guarantee', and results come at least once; or SET"
            " 'rejoin.mode' = 'micro-batch'",
        )


def settle_epoch(folder: CheckpointFolder, query: str, manifest: Manifest) -> None:
    """Prepare a checkpoint whose last epoch was begun but not committed.

    An epoch of real-time mode runs to where it ends, and not to where an earlier one has ended.
    With barriers it is repeated up to the last of them. Raises StateError if a transaction may hold
    the epoch's results.
    """
    epoch = folder.repeated_epoch()
    if epoch is None:
        return
    if folder.has_barriers(epoch):
        folder.take_back_epoch(epoch)
        return
    if manifest.unledgered is None:
        raise StateError(
            "REAL_TIME_EPOCH_OPEN",
            f"query {query}: epoch {epoch} of an exactly-once run was begun and not committed",
            hint="run the job once more with SET 'rejoin.mode' = 'micro-batch', and stop it with"
            " SIGTERM",
        )
    folder.take_back_epoch(epoch)

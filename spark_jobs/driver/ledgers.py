"""The epoch ledgers of an exactly-once sink: taking them over from the drivers before this one."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from spark_jobs.driver.ownership import Ownership
from spark_jobs.driver.topics.inputs import partition_counts
from spark_jobs.errors import ConfigError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running
from spark_jobs.operators.sink_spec import describe, is_dense
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Operator
from spark_jobs.streaming.manifest import CheckpointFolder

EpochWritten: TypeAlias = Literal["yes", "no"]


@dataclass(slots=True)
class Ledgers:
    """The ledgers of one query's transactional writers.

    `epoch_written`: the user's answer for the epoch to repeat, where its ledger is lost.
    """

    folder: CheckpointFolder
    ownership: Ownership
    epoch_written: EpochWritten | None
    _taken: int | None = None

    def take_over(self, sink: KafkaSink, running: Running) -> Running:
        """Fence the writers of earlier drivers and read their ledgers; later calls do nothing.

        Returns the start with the number of ledgers.
        """
        if sink.guarantee != "exactly-once":
            return running
        if self._taken is None:
            self._taken = self._take_over(sink, running)
        return replace(running, ledgers=self._taken)

    def _take_over(self, sink: KafkaSink, running: Running) -> int:
        writers = most_writers(sink, running.manifest.parallelism)
        epoch, repeated = self.folder.next_epoch, self.folder.repeated_epoch() is not None
        # an epoch that was begun without ledgers is written as if it were new
        repeated = repeated and running.manifest.may_be_ledgered(epoch)
        known = self.ownership.own.writers
        if self.ownership.before is None and is_dense(sink) and epoch > 0:
            known = writers  # drivers of older releases did not record the number
        answers_used = Kernel.of(running.spark).take_over(
            describe(sink, replace(running, ledgers=writers)),
            writers,
            epoch,
            since=running.manifest.since(epoch),
            repeated=repeated,
            known=known,
            written=self.epoch_written,
        )
        if self.epoch_written is not None and answers_used == 0:
            raise ConfigError(
                "EPOCH_KNOWN",
                f"query {running.query}: --epoch-written is given, but the epoch ledgers are there",
                hint="leave the option out",
            )
        self.ownership.record_ledgers(writers)
        return writers


def most_writers(sink: KafkaSink, parallelism: int) -> int:
    """How many tasks the stage before a sink has at most; each task is a writer.

    Spark numbers the tasks of a union branch by branch.
    """
    if sink.exchange:
        return parallelism
    return sum(_most_tasks(project.input, parallelism) for project in sink.inputs)


def _most_tasks(node: Operator, parallelism: int) -> int:
    """State partitions, or the partitions of a scan and one task for its `loaded` marks."""
    if isinstance(node, KafkaScan):
        return sum(partition_counts(node).values()) + node.gated
    return parallelism

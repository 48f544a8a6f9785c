"""The epoch ledgers of an exactly-once sink: taking them over from the drivers before this one."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spark_jobs.driver.inputs import partition_counts
from spark_jobs.driver.ownership import Ownership
from spark_jobs.errors import ConfigError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running
from spark_jobs.operators.sink_spec import describe, is_dense
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.streaming.manifest import CheckpointFolder

EpochWritten: TypeAlias = Literal["yes", "no"]


@dataclass(slots=True)
class Ledgers:
    """The ledgers of one query's transactional writers.

    `epoch_written`: the user's answer for the epoch to repeat, where its ledger is lost.
    """

    sink: KafkaSink
    folder: CheckpointFolder
    ownership: Ownership
    epoch_written: EpochWritten | None
    _taken: bool = False

    def take_over(self, running: Running) -> None:
        """Fence the writers of earlier drivers and read their ledgers; later calls do nothing."""
        if self._taken or self.sink.guarantee != "exactly-once":
            return
        writers, dense = running.manifest.parallelism, is_dense(self.sink)
        if not dense:  # one per source task: the partitions, and the marks of a scan that is loaded
            found = scans(self.sink)
            writers = sum(sum(partition_counts(s).values()) + s.gated for s in found)
        epoch, repeated = self.folder.next_epoch, self.folder.repeated_epoch() is not None
        known = self.ownership.own.writers
        if self.ownership.before is None and dense and epoch > 0:
            known = writers  # drivers of older releases did not record the number
        answers_used = Kernel.of(running.spark).take_over(
            describe(self.sink, running),
            writers,
            epoch,
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
        self._taken = True

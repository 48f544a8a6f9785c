"""The epoch ledgers of an exactly-once sink: taking them over from the drivers before this one."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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

    @contextmanager
    def taken_over(self, sink: KafkaSink, running: Running) -> Iterator[Running]:
        """Fence the writers of earlier drivers and read their ledgers while the block runs.

        Gives the start with the number of ledgers. They are taken over once, and before each start
        whose epochs have barriers: a writer that lingers must not commit what it alone knows of.
        What goes wrong is raised at the end of the block, unless the block has raised something
        else.
        """
        if sink.guarantee != "exactly-once":
            yield running
            return
        writers = self._taken or most_writers(sink, running.manifest.parallelism)
        numbered = replace(running, ledgers=writers)
        if self._taken is not None and not running.has_steps:
            yield numbered
            return
        take_over = self._call(sink, numbered, writers)
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(take_over)
            yield numbered
            answers_used = taking.result()
        if self._taken is None and self.epoch_written is not None and answers_used == 0:
            raise ConfigError(
                "EPOCH_KNOWN",
                f"query {running.query}: --epoch-written is given, but the epoch ledgers are there",
                hint="leave the option out",
            )
        self.ownership.record_ledgers(writers)
        self._taken = writers

    def _call(self, sink: KafkaSink, running: Running, writers: int) -> Callable[[], int]:
        """What takes them over, and returns how many ledgers needed the user's answer."""
        epoch, repeated = self.folder.next_epoch, self.folder.begun_epoch() is not None
        # an epoch that was begun without ledgers is written as if it were new
        repeated = repeated and running.manifest.may_be_ledgered(epoch)
        known = self.ownership.own.writers
        if self.ownership.before is None and is_dense(sink) and epoch > 0:
            known = writers  # drivers of older releases did not record the number
        return partial(
            Kernel.of(running.spark).take_over,
            describe(sink, running),
            writers,
            epoch,
            since=running.manifest.since(epoch),
            repeated=repeated,
            known=known,
            written=self.epoch_written,
        )


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

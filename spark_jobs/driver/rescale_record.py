"""A rescale that has begun: complete it or take it back, for all queries of a checkpoint alike.

`rejoin rescale` writes `<checkpoint>/rejoin-rescale.json`, then lets Spark move the state of one
query after the other. Spark ends each with a commit of an epoch that has no records. Once all of
them are committed, the manifests follow, and the file is removed. Whoever finds it, after a crash,
does the same: completes if all of these epochs are committed, else removes those that are. What
it decides by does not change while it works, so it may be interrupted as well.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from pydantic import BaseModel, ValidationError
from pyspark.sql import SparkSession

from spark_jobs.driver.ownership import Ownership
from spark_jobs.errors import StateError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.streaming.manifest import CheckpointFolder

RECORD = "rejoin-rescale.json"


class RescaleRecord(BaseModel, frozen=True):
    """The rescale of a checkpoint to `parallelism` tasks.

    `queries`: of each query the epoch that moves its state; None if it keeps none.
    """

    parallelism: int
    queries: dict[str, int | None]

    def write(self, spark: SparkSession, root: str) -> None:
        Kernel.of(spark).checkpoint_files(spark, root).write(RECORD, self.model_dump_json(indent=1))

    def settle(
        self, spark: SparkSession, root: str, folders: Mapping[str, CheckpointFolder]
    ) -> bool:
        """Complete the rescale or take it back; returns whether it is complete.

        The caller owns the folders of all its queries.
        """
        moved = all(e is None or folders[q].has_committed(e) for q, e in self.queries.items())
        for query, epoch in self.queries.items():
            if moved:
                self._complete(folders[query], epoch)
            else:
                _take_back(folders[query], epoch)
        Kernel.of(spark).checkpoint_files(spark, root).delete(RECORD)
        return moved

    def _complete(self, folder: CheckpointFolder, epoch: int | None) -> None:
        manifest = folder.read_manifest()
        if manifest is not None:
            folder.write_manifest(manifest.rescaled_to(self.parallelism, epoch))
        if epoch is not None:
            folder.drop_partitions(self.parallelism)


def settle_rescale(spark: SparkSession, root: str) -> str | None:
    """Settle a rescale that was cut off; returns what became of it, None if there was none."""
    text = Kernel.of(spark).checkpoint_files(spark, root).read(RECORD)
    if text is None:
        return None
    record = _read(text, root)
    with ExitStack() as owned:
        taken = {query: CheckpointFolder.open(spark, root, query) for query in record.queries}
        for folder in taken.values():
            owned.enter_context(Ownership.held(folder))
        tasks = record.parallelism
        if record.settle(spark, root, taken):
            return f"a rescale to {tasks} tasks was cut off at its end, and is complete now"
        return f"a rescale to {tasks} tasks was cut off: it is taken back"


def refuse_rescaling(spark: SparkSession, root: str) -> None:
    """Raise StateError if a rescale began, and died, while its caller took the folders.

    Called by their owner before it changes Spark's logs.
    """
    if Kernel.of(spark).checkpoint_files(spark, root).read(RECORD) is not None:
        raise StateError(
            "CHECKPOINT_IN_USE",
            f"a rescale of {root} has begun meanwhile",
            hint="start again: that settles the rescale",
        )


def _take_back(folder: CheckpointFolder, epoch: int | None) -> None:
    """As if Spark had not begun the epoch; the manifest has not been changed yet."""
    manifest = folder.read_manifest()
    if epoch is not None and manifest is not None:
        folder.take_back_epoch(epoch)
        folder.drop_partitions(manifest.parallelism)


def _read(text: str, root: str) -> RescaleRecord:
    try:
        return RescaleRecord.model_validate_json(text)
    except ValidationError as cause:
        raise StateError(
            "CHECKPOINT_DAMAGED",
            f"{root}/{RECORD} is damaged: {cause}",
            hint="restore the whole folder from one copy",
        ) from cause

"""Source topics that were deleted and created again, where the job continues after data loss."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from spark_jobs.access.topics import Offsets
from spark_jobs.driver.topics.inputs import earliest_offsets, topic_ids
from spark_jobs.errors import StateError
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.streaming.manifest import CheckpointFolder, Manifest


def follow_recreated_topics(
    spark: SparkSession,
    scans: Sequence[KafkaScan],
    folder: CheckpointFolder,
    manifest: Manifest,
    bounded: bool,
) -> Manifest:
    """Read recreated topics from their beginning; returns the manifest with their new ids."""
    ids = topic_ids(spark, manifest.query, scans)
    recreated = [t for t, known in manifest.topic_ids.items() if ids.get(t, known) != known]
    if not recreated:
        return manifest
    if bounded or folder.begun_epoch() is not None:
        raise StateError(
            "TOPIC_RECREATED",
            f"query {manifest.query}: {', '.join(recreated)} was deleted and created again, and "
            f"{'the run' if bounded else 'an epoch'} cannot finish without the deleted records",
            hint="start from a new checkpoint",
        )
    starts: Offsets = {}
    for scan in scans:
        starts |= {t: at for t, at in earliest_offsets(scan).items() if t in recreated}
    folder.move_offsets(starts)
    moved = {
        scan: start.model_copy(update={"starts": {**start.starts, **_of(start.starts, starts)}})
        for scan, start in manifest.scans.items()
    }
    ids = {**manifest.topic_ids, **ids}
    followed = manifest.model_copy(update={"topic_ids": ids, "scans": moved})
    folder.write_manifest(followed)
    return followed


def _of(topics: Offsets, starts: Offsets) -> Offsets:
    return {topic: at for topic, at in starts.items() if topic in topics}

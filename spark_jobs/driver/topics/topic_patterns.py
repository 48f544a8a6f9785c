"""The topics that patterns match: looked for at each start of a query, and while it runs."""

from dataclasses import replace

from pyspark.sql import SparkSession

from spark_jobs.access.topics import open_topics, resolved
from spark_jobs.driver.topics.inputs import earliest_offsets, topic_ids
from spark_jobs.errors import KafkaError, StateError
from spark_jobs.plan.nodes.parts import Topic
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.strategy.matched_topics import MatchedTopics, numbered_after, with_topics
from spark_jobs.streaming.manifest import CheckpointFolder, Manifest


def topic_names(scan: KafkaScan) -> list[str]:
    """The topics of a planned scan, listed or matched now. Raises KafkaError if none matches."""
    if scan.pattern is None:
        return [topic.name for topic in scan.topics]
    names = _matching(scan)
    if not names:
        servers = resolved(scan.properties["bootstrap.servers"])
        raise KafkaError(
            "TOPIC_MISSING",
            f"table {scan.table}: no topic at {servers} matches '{scan.pattern}', or the job may "
            "not see one",
            hint="the expression has to match whole names; the right Describe makes topics visible",
        )
    return names


def at_broker(scan: KafkaScan) -> KafkaScan:
    """The planned scan with the topics that there are, for checks that need no indexes."""
    if scan.pattern is None:
        return scan
    index = scan.topics[0].index
    return replace(scan, topics=tuple(Topic(name, index) for name in topic_names(scan)))


def first_topics(sink: KafkaSink) -> MatchedTopics:
    """What the patterns of a query match at its first start."""
    return numbered_after(sink, {}, {scan.id: topic_names(scan) for scan in patterned(sink)})


def patterned(sink: KafkaSink) -> list[KafkaScan]:
    """The scans whose topics are matched."""
    return [scan for scan in scans(sink) if scan.pattern is not None]


def has_new_topics(sink: KafkaSink, manifest: Manifest) -> bool:
    return any(
        set(_matching(scan)) - manifest.matched_topics[scan.id].keys() for scan in patterned(sink)
    )


def follow_topics(
    spark: SparkSession,
    sink: KafkaSink,
    folder: CheckpointFolder,
    manifest: Manifest,
    goes_on_after_data_loss: bool,
) -> tuple[Manifest, KafkaSink]:
    """The manifest with the topics that match by now, and the plan that reads those that exist.

    New topics are read from their first record on. Raises StateError if a topic was deleted, unless
    the job goes on after data loss: its index stays its own.
    """
    found = {scan.id: _matching(scan) for scan in patterned(sink)}
    known = manifest.matched_topics
    manifest = _with_new(spark, sink, manifest, found)
    gone = [t for scan, topics in known.items() for t in topics if t not in found[scan]]
    if gone and (not goes_on_after_data_loss or folder.begun_epoch() is not None):
        raise StateError(
            "TOPIC_DELETED",
            f"query {manifest.query}: {', '.join(gone)} was deleted, and the job has read it",
            hint="SET 'rejoin.on-data-loss' = 'continue' goes on without it, once no epoch has to "
            "be repeated that read it; or start from a new checkpoint",
        )
    existing = {
        scan: {name: index for name, index in topics.items() if name in found[scan]}
        for scan, topics in manifest.matched_topics.items()
    }
    for scan in patterned(sink):
        if not existing[scan.id]:
            topic_names(scan)  # raises: there is nothing to read
    return manifest, with_topics(sink, existing)


def _with_new(
    spark: SparkSession, sink: KafkaSink, manifest: Manifest, found: dict[str, list[str]]
) -> Manifest:
    known = manifest.matched_topics
    new = {scan: [n for n in names if n not in known[scan]] for scan, names in found.items()}
    if not any(new.values()):
        return manifest
    matched = numbered_after(sink, known, new)
    only_new = with_topics(sink, {s: {n: matched[s][n] for n in names} for s, names in new.items()})
    starts = dict(manifest.scans)
    for scan in (scan for scan in patterned(only_new) if scan.topics):
        start = starts[scan.id]
        begin = {**start.starts, **earliest_offsets(scan)}
        starts[scan.id] = start.model_copy(update={"starts": begin})
    ids = topic_ids(spark, manifest.query, [scan for scan in patterned(only_new) if scan.topics])
    return manifest.model_copy(
        update={
            "matched_topics": matched,
            "scans": starts,
            "topic_ids": {**manifest.topic_ids, **ids},
        }
    )


def _matching(scan: KafkaScan) -> list[str]:
    with open_topics(scan.table, (), scan.properties) as topics:
        return list(topics.matching(scan.pattern or ""))

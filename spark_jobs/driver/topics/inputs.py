"""The scans of a query at their brokers: where they start and end, how much is left to read."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from spark_jobs.access.topics import Limit, Offsets, TableTopics, open_topics
from spark_jobs.driver.report import Loads
from spark_jobs.kernel.calls import Kernel
from spark_jobs.plan.nodes.parts import ReadFrom
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.streaming.failure import java_failures
from spark_jobs.streaming.sources import ScanStart


def first_start(scan: KafkaScan) -> ScanStart:
    """Where the scan starts and ends, decided once for the life of a checkpoint."""
    with _topics(scan) as topics:
        if scan.bounded.mode == "unbounded":
            starts, ends = topics.starts(_limit(scan.startup)), None
        else:
            ends = topics.ends(_limit(scan.bounded))
            starts = topics.exact_starts(_limit(scan.startup))
        loaded = topics.to_load(_limit(scan.startup), ends) if scan.gated else None
    return ScanStart(starts=starts, ends=ends, loaded=loaded)


def partition_counts(scan: KafkaScan) -> dict[str, int]:
    with _topics(scan) as topics:
        return topics.partition_counts()


def earliest_offsets(scan: KafkaScan) -> Offsets:
    with _topics(scan) as topics:
        return topics.exact_starts(Limit("earliest-offset"))


def initial_content(scans: Sequence[KafkaScan], starts: Mapping[str, ScanStart]) -> Loads:
    """What still exists of the initial content of tables that probe rows wait for."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for scan in scans:
        start = starts[scan.id]
        existing = earliest_offsets(scan) if start.loaded else {}
        for topic, ends in (start.loaded or {}).items():
            declared, earliest = start.starts.get(topic, {}), existing.get(topic, {})
            found[topic] = {
                p: (min(max(declared.get(p, 0), earliest.get(p, 0), 0), end), end)
                for p, end in ends.items()
            }
    return found


def unread_records(
    scans: Sequence[KafkaScan], starts: Mapping[str, ScanStart], committed: Sequence[Offsets]
) -> int:
    """Records before the ends of bounded scans; `committed`: the offsets read, per scan."""
    left = 0
    for i, scan in enumerate(scans):
        start = starts[scan.id]
        at = committed[i] if i < len(committed) else start.starts
        for topic, ends in (start.ends or {}).items():
            left += sum(max(end - at[topic].get(p, 0), 0) for p, end in ends.items())
    return left


def topic_ids(spark: SparkSession, query: str, scans: Sequence[KafkaScan]) -> dict[str, str]:
    """The ids of the topics; a topic that is deleted and created again has another one."""
    found: dict[str, str] = {}
    for scan in scans:
        topics = [topic.name for topic in scan.topics]
        with java_failures(query):
            found |= Kernel.of(spark).topic_ids(scan.properties, topics)
    return found


def set_partitions(
    spark: SparkSession, query: str, scans: Sequence[KafkaScan], counts: Mapping[str, int]
) -> None:
    """Give the query's clocks the partition counts, which are by topic name."""
    topics = {t.index: counts[t.name] for scan in scans for t in scan.topics}
    Kernel.of(spark).set_partitions(query, topics)


def _topics(scan: KafkaScan) -> AbstractContextManager[TableTopics]:
    return open_topics(scan.table, [topic.name for topic in scan.topics], scan.properties)


def _limit(declared: ReadFrom) -> Limit:
    offsets = {int(p): at for p, at in (declared.offsets or {}).items()}
    return Limit.read(declared.mode, declared.timestamp_ms, offsets)

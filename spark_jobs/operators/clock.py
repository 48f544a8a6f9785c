"""The clock of operators that depend on time: how many partitions there are, ticks, the end."""

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.operators.running import Running, Scan, scans
from spark_jobs.plan.check.fingerprint import stateful_nodes
from spark_jobs.plan.nodes.physical import Physical
from spark_jobs.streaming.session import kernel


def build_clock(tick_ms: int, gated: Sequence[Scan], running: Running) -> DataFrame:
    """An operator's own clock, which moves as seldom as that operator allows: a tick is a batch.

    `gated`: scans whose partitions it calls loaded where these have nothing to load.
    """
    options = {
        "job": running.query,
        "groups": str(running.manifest.groups),
        "tickMs": str(tick_ms),
        "end": str(running.ending).lower(),
        "loading": json.dumps(_loading(gated, running)),
    }
    return running.frame(running.kernel.clock(running.spark._jsparkSession, json.dumps(options)))


def _loading(gated: Sequence[Scan], running: Running) -> dict[str, list[int]]:
    """By topic index, the partitions that a scan itself will call loaded."""
    found: dict[str, list[int]] = {}
    for scan in gated:
        ends = running.manifest.scans[scan.id].loaded or {}
        for topic in scan.node.topics:
            found.setdefault(str(topic.index), []).extend(ends.get(topic.name, {}))
    return {index: sorted(set(partitions)) for index, partitions in found.items()}


def needs_clock(root: Physical) -> bool:
    """Whether anything in the plan waits for time to pass or for the input to end."""
    return any(node.timing.tick_ms is not None for node in stateful_nodes(root))


def tell_partitions(
    spark: SparkSession, query: str, root: Physical, counts: Mapping[str, int]
) -> None:
    """Tell the query's clocks the partition counts by topic name."""
    topics = {t.index: counts[t.name] for scan in scans(root) for t in scan.node.topics}
    kernel(spark).Clock.setPartitions(query, json.dumps(sorted(topics.items())))

"""The clock of operators that depend on time: how many partitions there are, ticks, the end."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import Physical, Stateful
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.streaming.session import kernel


def build_clock(node: Stateful, tick_ms: int, running: Running) -> DataFrame:
    """An operator's own clock, which moves as seldom as that operator allows: a tick is a batch.

    It calls those partitions of gated scans loaded that have nothing to load.
    """
    options = {
        "job": running.query,
        "groups": str(running.manifest.groups),
        "tickMs": str(tick_ms),
        "end": str(running.ending).lower(),
        "loading": json.dumps(_loading(node, running)),
    }
    return running.frame(running.kernel.clock(running.spark._jsparkSession, json.dumps(options)))


def _loading(node: Stateful, running: Running) -> dict[str, list[int]]:
    """The partitions, by topic index, that a scan itself will call loaded."""
    found: dict[str, list[int]] = {}
    for scan in (scan for scan in scans(node) if scan.gated):
        ends = running.manifest.scans[scan.id].loaded or {}
        for topic in scan.topics:
            found.setdefault(str(topic.index), []).extend(ends.get(topic.name, {}))
    return {index: sorted(set(partitions)) for index, partitions in found.items()}


def needs_clock(root: Physical) -> bool:
    """Whether anything in the plan waits for time to pass or for the input to end."""
    return any(node.timing.tick_ms is not None for node in stateful_nodes(root))


def tell_partitions(
    spark: SparkSession, query: str, root: Physical, counts: Mapping[str, int]
) -> None:
    """Tell the query's clocks the partition counts by topic name."""
    topics = {t.index: counts[t.name] for scan in scans(root) for t in scan.topics}
    kernel(spark).Clock.setPartitions(query, json.dumps(sorted(topics.items())))

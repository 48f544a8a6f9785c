"""The clock of plans that depend on time: how many partitions there are, ticks, the end mark."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.operators.running import Running, scans
from spark_jobs.plan.physical import Physical, TemporalJoin, inputs_of
from spark_jobs.streaming.session import kernel

MIN_TICK_MS = 1000


def build_clock(node: TemporalJoin, running: Running) -> DataFrame:
    """Ticks only where an idle timeout needs them, twice in its time: a tick costs a batch."""
    tick_ms = max(node.idle_timeout_ms // 2, MIN_TICK_MS) if node.idle_timeout_ms else 0
    options = {
        "job": running.query,
        "groups": str(running.manifest.groups),
        "tickMs": str(tick_ms),
        "end": str(running.ending).lower(),
    }
    return running.frame(running.kernel.clock(running.spark._jsparkSession, json.dumps(options)))


def needs_clock(node: Physical) -> bool:
    """Whether anything in the plan waits for time to pass or for the input to end."""
    return isinstance(node, TemporalJoin) or any(needs_clock(i) for i in inputs_of(node))


def tell_partitions(
    spark: SparkSession, query: str, root: Physical, counts: Mapping[str, int]
) -> None:
    """Tell the query's clock the partition counts by topic name."""
    topics = {t.index: counts[t.name] for scan in scans(root) for t in scan.topics}
    kernel(spark).Clock.setPartitions(query, json.dumps(sorted(topics.items())))

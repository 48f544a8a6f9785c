"""The clock of operators that depend on time: a source of ticks, partition counts and end marks."""

import json

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import Stateful
from spark_jobs.plan.nodes.walk import scans


def build_clock(node: Stateful, tick_ms: int, running: Running) -> DataFrame:
    """The clock of one operator, with its own interval, because each tick starts an epoch.

    In gated scans, it marks the partitions without initial content as loaded; the scan itself
    marks the others.
    """
    options = {
        "job": running.query,
        "groups": str(running.manifest.groups),
        "tickMs": str(tick_ms),
        "end": str(running.ending).lower(),
        "loading": json.dumps(_loading(node, running)),
        "checkpoint": running.folder,
    }
    return Kernel.of(running.spark).clock(running.spark, options)


def _loading(node: Stateful, running: Running) -> dict[str, list[int]]:
    """The partitions that have initial content, by topic index."""
    found: dict[str, list[int]] = {}
    for scan in (scan for scan in scans(node) if scan.gated):
        ends = running.manifest.scans[scan.id].loaded or {}
        for topic in scan.topics:
            found.setdefault(str(topic.index), []).extend(ends.get(topic.name, {}))
    return {index: sorted(set(partitions)) for index, partitions in found.items()}

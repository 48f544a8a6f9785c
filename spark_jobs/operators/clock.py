"""The clock of operators that depend on time: a source of ticks, partition counts and end marks."""

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, Scan


def build_clock(tick_ms: int, gated: Sequence[Scan], running: Running) -> DataFrame:
    """The clock of one operator, with its own interval, because each tick starts an epoch.

    `gated`: scans whose partitions the clock marks as loaded if they have no initial content.
    """
    options = {
        "job": running.query,
        "groups": str(running.manifest.groups),
        "tickMs": str(tick_ms),
        "end": str(running.ending).lower(),
        "loading": json.dumps(_loading(gated, running)),
    }
    return Kernel.of(running.spark).clock(running.spark, options)


def _loading(gated: Sequence[Scan], running: Running) -> dict[str, list[int]]:
    """By topic index, the partitions with initial content, which the scan marks as loaded."""
    found: dict[str, list[int]] = {}
    for scan in gated:
        ends = running.manifest.scans[scan.id].loaded or {}
        for topic in scan.node.topics:
            found.setdefault(str(topic.index), []).extend(ends.get(topic.name, {}))
    return {index: sorted(set(partitions)) for index, partitions in found.items()}

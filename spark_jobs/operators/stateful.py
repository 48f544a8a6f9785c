"""Stateful nodes: envelopes into one transformWithState, changes out of it."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, spec
from spark_jobs.plan.nodes.physical import Stateful


def build_stateful(
    node: Stateful, rows: DataFrame, running: Running, *, passes_loaded: bool
) -> DataFrame:
    """The operator's changes; `rows`: the envelopes of all its inputs.

    `passes_loaded`: it passes on which partitions are loaded, because a later operator needs it.
    """
    kernel = Kernel.of(running.spark)
    return kernel.stateful(rows, spec(node), running.query, passes_loaded=passes_loaded)

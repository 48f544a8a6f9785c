"""Stateful nodes: envelopes into one transformWithState, changes out of it."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, spec
from spark_jobs.plan.nodes.physical import KafkaScan, Stateful


def build_stateful(
    node: Stateful, rows: DataFrame, running: Running, *, moves_on: bool
) -> DataFrame:
    """The operator's changes; `rows`: the envelopes of all its inputs.

    `moves_on`: they go to another operator, or in exchange to other tasks.
    """
    kernel = Kernel.of(running.spark)
    return kernel.stateful(
        rows,
        spec(node),
        running.query,
        passes_loaded=node.passes_loaded,
        real_time=running.real_time,
        steps=running.has_steps,
        moves_on=moves_on,
        groups=running.manifest.groups,
        hears_end=all(isinstance(given, KafkaScan) for given in node.inputs),
        even_groups=running.manifest.even_groups,
    )

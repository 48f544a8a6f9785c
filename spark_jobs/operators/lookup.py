"""Lookups: what a database holds of the keys of left rows, in front of a lookup join."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, spec
from spark_jobs.plan.nodes.physical import KafkaSink, LookupJoin, Stateful
from spark_jobs.plan.nodes.walk import stateful_nodes


def build_lookup(node: Stateful, rows: DataFrame, running: Running) -> DataFrame:
    """The left rows with the answers; all lookups are done before the operator begins."""
    kernel = Kernel.of(running.spark)
    return kernel.lookup(rows, spec(node), running.query, running.folder)


def check_lookups(sink: KafkaSink, kernel: Kernel) -> None:
    """Look at each table that the query looks rows up in; Java's exception says what is wrong."""
    for node in stateful_nodes(sink):
        if isinstance(node.machine, LookupJoin):
            kernel.check_lookup(spec(node))

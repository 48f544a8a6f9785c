"""Lookups: what a database holds of the keys of left rows, in front of a lookup join."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, spec
from spark_jobs.plan.nodes.physical import KafkaSink, LookupJoin, Stateful
from spark_jobs.plan.nodes.walk import stateful_nodes


def build_lookup(node: Stateful, rows: DataFrame, running: Running, moves_on: bool) -> DataFrame:
    """The left rows with the answers; all lookups are done before the operator begins.

    `moves_on`: what was looked up may decide which task has the results next. Then a repeated
    epoch has to meet the same rows: a result could move between a writer that has committed the
    epoch and one that has not. It also has to where results are remembered, to be taken back.
    Elsewhere the rows of a key group and their results are one task's, which has either sent all
    of them or none.
    """
    kernel = Kernel.of(running.spark)
    is_kept = moves_on or (isinstance(node.machine, LookupJoin) and node.machine.probe_changes)
    folder = running.folder if is_kept else None
    return kernel.lookup(rows, spec(node), running.query, folder)


def check_lookups(sink: KafkaSink, kernel: Kernel) -> None:
    """Look at each table that the query looks rows up in; Java's exception says what is wrong."""
    for node in stateful_nodes(sink):
        if isinstance(node.machine, LookupJoin):
            kernel.check_lookup(spec(node))

"""Rekey: the changes that one operator makes become input of the next one, under its key."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, spec
from spark_jobs.plan.nodes.physical import Rekey


def build_rekey(node: Rekey, changes: DataFrame, running: Running) -> DataFrame:
    described = {**spec(node), "input": spec(node.input)}
    return Kernel.of(running.spark).rekey(changes, described, steps=running.has_steps)

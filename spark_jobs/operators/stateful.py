"""Stateful operators: envelopes into one transformWithState, changes out of it."""

import json

from pyspark.sql import DataFrame

from spark_jobs.operators.running import Running, operator_id, spec
from spark_jobs.plan.nodes.physical import Rekey, Stateful


def build_stateful(
    node: Stateful, rows: DataFrame, running: Running, *, passes_loaded: bool
) -> DataFrame:
    """The changes that an operator makes of the envelopes of all its inputs.

    `passes_loaded`: an operator further on has to hear which partitions are loaded.
    """
    name = operator_id(running.query, node)
    told = {"name": name, "query": running.query, "passesLoaded": passes_loaded}
    described = spec(node) | told
    return running.frame(running.kernel.stateful(rows._jdf, json.dumps(described)))


def build_rekey(node: Rekey, changes: DataFrame, running: Running) -> DataFrame:
    """An operator's changes as envelopes under the next one's key."""
    described = {**spec(node), "input": spec(node.input)}
    return running.frame(running.kernel.rekey(changes._jdf, json.dumps(described)))

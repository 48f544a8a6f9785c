"""Stateful nodes: envelopes into one transformWithState, changes out of it."""

import json

from pyspark.sql import DataFrame

from spark_jobs.operators.running import Running, operator_id, spec
from spark_jobs.plan.nodes.physical import Stateful


def build_stateful(
    node: Stateful, rows: DataFrame, running: Running, *, passes_loaded: bool
) -> DataFrame:
    """The operator's changes; `rows`: the envelopes of all its inputs.

    `passes_loaded`: it passes on which partitions are loaded, because a later operator needs it.
    """
    name = operator_id(running.query, node)
    added = {"name": name, "query": running.query, "passesLoaded": passes_loaded}
    return running.frame(running.kernel.stateful(rows._jdf, json.dumps(spec(node) | added)))

"""Joins and the normaliser: envelopes into one transformWithState, changes out of it."""

import json
from functools import reduce

from pyspark.sql import DataFrame

from spark_jobs.operators.clock import build_clock
from spark_jobs.operators.running import Running, StatefulNode, operator_id, spec
from spark_jobs.plan.physical import Normalize, RegularJoin, Rekey, TemporalJoin


def build_join(
    node: RegularJoin | TemporalJoin, inputs: list[DataFrame], running: Running
) -> DataFrame:
    """Both inputs in one stream of envelopes; for a temporal join the clock's marks among them."""
    if isinstance(node, TemporalJoin):
        inputs = [*inputs, build_clock(node, running)]
    return _stateful(node, reduce(DataFrame.unionAll, inputs), running)


def build_normalize(node: Normalize, rows: DataFrame, running: Running) -> DataFrame:
    """Upserts to a complete changelog."""
    return _stateful(node, rows, running)


def build_rekey(node: Rekey, changes: DataFrame, running: Running) -> DataFrame:
    """The normaliser's changes as envelopes under the join key."""
    described = {**spec(node), "input": spec(node.input)}
    return running.frame(running.kernel.rekey(changes._jdf, json.dumps(described)))


def _stateful(node: StatefulNode, rows: DataFrame, running: Running) -> DataFrame:
    named = {**spec(node), "name": operator_id(running.query, node)}
    return running.frame(running.kernel.stateful(rows._jdf, json.dumps(named)))

"""Physical plan to Spark query: a walk from the sink to the scans."""

from typing import assert_never

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.operators.kafka_scan import build_scan
from spark_jobs.operators.kafka_sink import build_changes, build_sink
from spark_jobs.operators.running import Running
from spark_jobs.operators.stateful import build_join, build_normalize, build_rekey
from spark_jobs.plan.physical import (
    KafkaScan,
    KafkaSink,
    Normalize,
    Operator,
    RegularJoin,
    Rekey,
    TemporalJoin,
)


def build_query(sink: KafkaSink, running: Running) -> DataStreamWriter:
    """The query of one INSERT, ready to be given a trigger and a checkpoint."""
    project = sink.input
    return build_sink(sink, build_changes(project, _rows(project.input, running)), running)


def _rows(node: Operator, running: Running) -> DataFrame:
    if isinstance(node, KafkaScan):
        return build_scan(node, running, chunked=False)
    return _build(node, running)


def _build(node: Operator | Rekey, running: Running) -> DataFrame:
    match node:
        case KafkaScan():
            return build_scan(node, running, chunked=True)
        case Normalize():
            return build_normalize(node, _build(node.input, running), running)
        case Rekey():
            return build_rekey(node, _build(node.input, running), running)
        case RegularJoin() | TemporalJoin():
            return build_join(node, [_build(i, running) for i in node.inputs], running)
        case _:
            assert_never(node)

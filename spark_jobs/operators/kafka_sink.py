"""KafkaSink: the writer at the end of a query."""

import json

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.kernel.calls import Message
from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import KafkaSink

SINK = "org.apache.spark.sql.rejoin.sink.RecordSink"


def build_sink(
    sink: KafkaSink, described: Message, records: DataFrame, running: Running
) -> DataStreamWriter:
    """Writes the records to the topic, with the sink's delivery guarantee; not started yet."""
    if sink.exchange:
        # dead-letter records go to one task, in the order of their source partitions
        key = expr("CASE WHEN isDeadLetter THEN NULL ELSE key END")
        records = records.repartition(running.manifest.parallelism, key)
    return records.writeStream.format(SINK).option("sink", json.dumps(described))

"""KafkaSink: the writer at the end of a query."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.kernel.calls import Kernel, Message
from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import KafkaSink


def build_sink(
    sink: KafkaSink, described: Message, records: DataFrame, running: Running
) -> DataStreamWriter:
    """Writes the records to the topic; not started yet."""
    if sink.exchange:
        # dead-letter records go to one task, in the order of their source partitions
        key = expr("CASE WHEN isDeadLetter THEN NULL ELSE key END")
        records = records.repartition(running.manifest.parallelism, key)
    return Kernel.of(running.spark).foreach_writer(records, described)

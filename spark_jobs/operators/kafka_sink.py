"""KafkaSink: the writer at the end of a query."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import KafkaSink


def build_sink(
    sink: KafkaSink, described: str, records: DataFrame, running: Running
) -> DataStreamWriter:
    """Writes the records to the topic; not started yet."""
    if sink.exchange:
        # dead-letter records go to one task, in the order of their source partitions
        key = expr("CASE WHEN exists(headers, h -> h.key = 'rejoin.reason') THEN NULL ELSE key END")
        records = records.repartition(running.manifest.parallelism, key)
    writer = records.writeStream
    # PySpark's own foreach takes no writer that runs in the JVM
    writer._jwrite = running.kernel.foreachWriter(records._jdf, described)
    return writer

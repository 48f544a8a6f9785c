package org.apache.spark.sql.rejoin.sink

import java.util

import org.apache.spark.SparkContext
import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import org.apache.spark.sql.rejoin.run.Counters

/** Writes rows of [[SinkRecord]] to Kafka with a [[TransactionalWriter]]; option `sink`: a [[SinkSpec]] as JSON.
  *
  * It is what Spark's `foreach` makes of a writer, and real-time mode admits no other class. But `foreach` analyses
  * how a row becomes a record in each epoch, and generates the code for it in each task.
  */
final class RecordSink extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = SinkRecord.schema
  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table = {
    val counters = Counters.of(SparkContext.getOrCreate())
    val writer = new TransactionalWriter(SinkSpec.read(properties.get("sink")), counters)
    new ForeachWriterTable(writer, Right(SinkRecord.of _))
  }
}

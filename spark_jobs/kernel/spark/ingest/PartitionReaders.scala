package org.apache.spark.sql.rejoin.ingest

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.types.StructType

/** Reads what several readers read. Each is made when the one before it has ended. */
private final class SeveralReader(readers: Iterator[PartitionReader[InternalRow]])
    extends PartitionReader[InternalRow] {
  private var reader: PartitionReader[InternalRow] = _
  private val counted = new mutable.HashMap[String, Long]

  override def next(): Boolean = {
    var found = reader != null && reader.next()
    while (!found && readers.hasNext) {
      close()
      reader = readers.next()
      found = reader.next()
    }
    found
  }

  override def get(): InternalRow = reader.get()

  override def currentMetricsValues(): Array[CustomTaskMetric] = {
    val sums = counted.clone()
    addTo(sums)
    sums.map { case (name, n) => CountedMetric(name, n) }.toArray
  }

  override def close(): Unit = if (reader != null) {
    addTo(counted)
    reader.close()
    reader = null
  }

  private def addTo(sums: mutable.Map[String, Long]): Unit =
    if (reader != null)
      reader.currentMetricsValues().foreach(m => sums(m.name) = sums.getOrElse(m.name, 0L) + m.value)
}

private[sql] final case class CountedMetric(name: String, value: Long) extends CustomTaskMetric

/** Reads rows that are already there. */
private[rejoin] final class RowReader(rows: Iterator[InternalRow], schema: StructType)
    extends PartitionReader[InternalRow] {
  private val toUnsafe = UnsafeProjection.create(schema)
  private var row: InternalRow = _

  override def next(): Boolean = rows.hasNext && {
    row = toUnsafe(rows.next())
    true
  }
  override def get(): InternalRow = row
  override def close(): Unit = ()
}

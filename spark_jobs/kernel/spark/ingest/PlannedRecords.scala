package org.apache.spark.sql.kafka010.rejoin

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BaseGenericInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader}
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition
import org.apache.spark.sql.kafka010.consumer.rejoin.PlannedConsumers
import org.apache.spark.sql.rejoin.ingest.CountedMetric
import org.apache.spark.unsafe.types.UTF8String

/** Reads what Spark's Kafka source has planned of a partition, with Spark's own consumer.
  *
  * Spark's reader projects each record into a row of its own. Here the row is the record: its key and value are copied
  * only where they are read. Spark lets its own package alone have the consumer, so this class is in there.
  */
final class PlannedRecords(planned: InputPartition) extends PartitionReader[InternalRow] {
  private val of = planned.asInstanceOf[KafkaBatchInputPartition]
  private val range = of.offsetRange
  private val consumer = PlannedConsumers.acquire(range.topicPartition, of.executorKafkaParams)
  private val row = new RecordRow(UTF8String.fromString(range.topic), of.includeHeaders)
  private var offset = range.fromOffset

  override def next(): Boolean = offset < range.untilOffset && {
    row.record = consumer.get(offset, range.untilOffset, of.pollTimeoutMs, of.failOnDataLoss)
    if (row.record != null) offset = row.record.offset + 1
    row.record != null
  }

  override def get(): InternalRow = row
  override def close(): Unit = consumer.release()

  /** Spark asks for them after every hundred records: as a rule there is nothing to add up. */
  override def currentMetricsValues(): Array[CustomTaskMetric] = {
    val (outOfRange, lost) = (consumer.getNumOffsetOutOfRange(), consumer.getNumDataLoss())
    if (outOfRange == 0 && lost == 0) PlannedRecords.NothingLost
    else Array(CountedMetric("offsetOutOfRange", outOfRange), CountedMetric("dataLoss", lost))
  }
}

object PlannedRecords {

  /** The Kafka partition of a planned one. */
  def place(planned: InputPartition): TopicPartition =
    planned.asInstanceOf[KafkaBatchInputPartition].offsetRange.topicPartition

  private val NothingLost = Array.empty[CustomTaskMetric]
}

/** A record as a row of Spark's Kafka source. */
private[sql] final class RecordRow(topic: UTF8String, hasHeaders: Boolean) extends BaseGenericInternalRow {
  import RecordRow._

  var record: ConsumerRecord[Array[Byte], Array[Byte]] = _

  override def numFields: Int = if (hasHeaders) Headers + 1 else Headers

  override def isNullAt(column: Int): Boolean = column match {
    case Key => record.key == null
    case Value => record.value == null
    case Headers => !record.headers.iterator.hasNext
    case _ => false
  }

  override def getBinary(column: Int): Array[Byte] = if (column == Key) record.key else record.value
  override def getUTF8String(column: Int): UTF8String = topic
  override def getInt(column: Int): Int = if (column == Partition) record.partition else record.timestampType.id
  override def getLong(column: Int): Long = if (column == Offset) record.offset else record.timestamp * 1000L
  override def getArray(column: Int): ArrayData = new GenericArrayData(record.headers.toArray.map { header =>
    InternalRow(UTF8String.fromString(header.key), header.value)
  })

  override protected def genericGet(column: Int): Any = if (isNullAt(column)) null
  else column match {
    case Key | Value => getBinary(column)
    case Topic => topic
    case Partition | TimestampType => getInt(column)
    case Offset | Timestamp => getLong(column)
    case Headers => getArray(column)
  }

  override def setNullAt(column: Int): Unit = throw readOnly
  override def update(column: Int, value: Any): Unit = throw readOnly
  private def readOnly = new UnsupportedOperationException("a record is not changed")
}

/** The columns of Spark's Kafka source. */
private object RecordRow {
  final val Key = 0
  final val Value = 1
  final val Topic = 2
  final val Partition = 3
  final val Offset = 4
  final val Timestamp = 5
  final val TimestampType = 6
  final val Headers = 7
}

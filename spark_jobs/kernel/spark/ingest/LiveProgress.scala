package org.apache.spark.sql.rejoin.ingest

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.kafka010.rejoin.RecordRow
import org.apache.spark.unsafe.types.UTF8String

/** How far a [[LiveReader]] has read a partition, and its records as rows. */
private[ingest] final class LiveProgress(partition: LivePartition, hasHeaders: Boolean) {
  val at: TopicPartition = partition.at
  var next: Long = partition.from // the offset behind the last record
  var upTo: Long = Long.MaxValue // the offset behind the last record of the running step, if that was noted before
  private val held = new mutable.Queue[ConsumerRecord[Array[Byte], Array[Byte]]] // of later steps
  private val row = new RecordRow(UTF8String.fromString(at.topic), hasHeaders)

  /** Whether it has the records of the running step, where that was noted before.
    *
    * @param isReadTo
    *   whether all records in front of an offset have been taken or kept: there may be none, or no more
    */
  def hasAll(isReadTo: Long => Boolean): Boolean =
    next >= upTo || (if (held.nonEmpty) held.head.offset >= upTo else isReadTo(upTo))

  /** Keeps a record of a later step; whether it is one. */
  def holds(record: ConsumerRecord[Array[Byte], Array[Byte]]): Boolean = {
    val isLater = held.nonEmpty || record.offset >= upTo
    if (isLater) held += record
    isLater
  }

  /** A record that was kept and belongs to the running step; null if there is none. */
  def takeHeld(): ConsumerRecord[Array[Byte], Array[Byte]] =
    if (held.isEmpty || held.head.offset >= upTo) null else held.dequeue()

  /** Records that were deleted since the step was noted do not come again. */
  def endStep(): Unit = if (upTo != Long.MaxValue) next = math.max(next, upTo)

  /** Whether the end of its initial content is still to be marked. */
  def isLoading: Boolean = partition.loadedAt.isDefined
  def isLoaded: Boolean = partition.loadedAt.exists(next >= _)
  def hasRecords: Boolean = next > partition.from

  def rowOf(record: ConsumerRecord[Array[Byte], Array[Byte]]): InternalRow = {
    row.record = record
    row
  }
}

/** Where the readers of a table stand, as [[ReaderSteps]] notes it. */
private[ingest] object LiveProgress {
  def text(partitions: Seq[LiveProgress]): String =
    partitions.map(each => s"${each.at.topic}:${each.at.partition}:${each.next}").mkString(" ")

  /** The offset behind the last record of each partition, from the notes of all readers of the epoch: another one may
    * have read a partition before.
    */
  def offsetsOf(table: String, notes: Map[String, String]): Map[TopicPartition, Long] =
    (for {
      (reader, text) <- notes.toSeq if reader.startsWith(nameOf(table))
      at <- text.split(' ')
    } yield {
      val parts = at.split(':')
      new TopicPartition(parts(0), parts(1).toInt) -> parts(2).toLong
    }).toMap

  /** The name of a reader's notes, where the readers of a table are numbered. */
  def nameOf(table: String, reader: Int): String = s"${nameOf(table)}$reader"

  /** No other table's name begins with it. */
  private def nameOf(table: String): String = s"${URLEncoder.encode(table, UTF_8)}@"
}

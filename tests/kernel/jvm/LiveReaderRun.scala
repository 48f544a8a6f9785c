package org.apache.spark.sql.rejoin.ingest

import java.nio.file.Path
import java.util

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.ConsumerConfig
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.serialization.ByteArrayDeserializer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.kafka010.rejoin.{LiveConsumers, LiveOffsets, LiveSource}
import org.apache.spark.unsafe.types.UTF8String

/** Readers of one topic, epoch after epoch. */
final class LiveReaderRun(servers: String, topic: String) {
  private val run = util.UUID.randomUUID.toString
  private val source = LiveSource(
    Map[String, Object](
      ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG -> servers,
      ConsumerConfig.AUTO_OFFSET_RESET_CONFIG -> "none",
      ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG -> "false",
      ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG -> classOf[ByteArrayDeserializer].getName,
      ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG -> classOf[ByteArrayDeserializer].getName).asJava,
    None,
    hasHeaders = false)
  LiveConsumers.open(run)

  /** A reader of partitions from these offsets on, in an epoch without an end. */
  def reader(from: util.Map[String, Number], marksMs: Long): LiveReaderRun.OfEpoch = {
    val partitions = from.asScala.toSeq.sortBy(_._1).map { case (partition, offset) =>
      LivePartition(new TopicPartition(topic, partition.toInt), offset.longValue, None)
    }
    new LiveReaderRun.OfEpoch(LivePartitions(partitions, source, run, marksMs, "t", 0), None, _ => ())
  }

  /** The only reader of an epoch with barriers, which are noted in a folder; each step is committed at once. */
  def stepped(from: util.Map[String, Number], everyMs: Long, folder: String): LiveReaderRun.OfEpoch = {
    val partitions = from.asScala.toSeq.sortBy(_._1).map { case (partition, offset) =>
      LivePartition(new TopicPartition(topic, partition.toInt), offset.longValue, None)
    }
    val barriers = new Barriers(everyMs, new BarrierLog(Path.of(folder)))
    val steps = new ReaderSteps(barriers, LiveProgress.nameOf("t", 0), 0, 1)
    new LiveReaderRun.OfEpoch(LivePartitions(partitions, source, run, 0, "t", 0), Some(steps), barriers.commit(0, _))
  }

  def end(): Unit = LiveConsumers.end(run)
}

object LiveReaderRun {
  final class OfEpoch(of: LivePartitions, steps: Option[ReaderSteps], commit: Long => Unit) {
    private val epoch = LiveEpoch.until(Long.MaxValue)
    epoch.reads("t", 1)
    private val reader = new LiveReader(of, epoch, steps, marker)

    /** The partition, offset and timestamp type of the next record or marker; null if there is none in this time. */
    def next(withinMs: Long): Array[Long] =
      if (!reader.nextWithTimeout(System.currentTimeMillis(), withinMs).hasRecord) null
      else {
        val row = reader.get()
        if (row.getInt(6) == Ingest.Barrier) commit(row.getLong(4))
        Array(row.getInt(3).toLong, row.getLong(4), row.getInt(6).toLong)
      }

    def hasLooked: Boolean = epoch.isRead

    /** Ends the epoch; returns where the next one begins. */
    def close(): util.Map[String, Long] = {
      val stands = reader.getOffset.asInstanceOf[LiveOffsets].next
      reader.close()
      stands.map { case (at, offset) => at.partition.toString -> offset }.toMap.asJava
    }
  }

  private def marker(at: TopicPartition, offset: Long, kind: Int): InternalRow =
    new GenericInternalRow(Array[Any](null, null, UTF8String.fromString(at.topic), at.partition, offset, 0L, kind))
}

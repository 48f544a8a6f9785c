package org.apache.spark.sql.rejoin.sink

import java.util.Collections
import java.util.Properties
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.kafka.clients.admin.Admin
import org.apache.kafka.clients.producer.ProducerConfig
import org.apache.kafka.common.compress.Compression
import org.apache.kafka.common.config.{ConfigResource, TopicConfig}
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.record.{AbstractRecords, CompressionType, MemoryRecords, RecordBatch, SimpleRecord}

/** A record is too large: its size, the limit, and the name of the limit. */
final case class TooLarge(bytes: Int, limit: Int, limitName: String)

/** Finds records that the producer or the broker would reject for their size, before they are sent.
  *
  * kafka-clients 3.9.2 rejects a record whose uncompressed size is above `max.request.size` or
  * `buffer.memory` (KafkaProducer.ensureValidRecordSize). The broker rejects a batch whose size as sent is
  * above the topic's `max.message.bytes`; the producer then splits it down to single records
  * (Sender.completeBatch). In a transaction either makes the commit fail without naming the record.
  */
final class RecordSizes(settings: Properties) {
  private val config = new ProducerConfig(settings)
  private val compressionType = CompressionType.forName(config.getString(ProducerConfig.COMPRESSION_TYPE_CONFIG))
  private val compression = Compression.of(compressionType).build()
  private val ofTopics = new mutable.HashMap[String, Int]

  private val (ofProducer, producersName) = {
    val request = config.getInt(ProducerConfig.MAX_REQUEST_SIZE_CONFIG).toInt
    val buffer = config.getLong(ProducerConfig.BUFFER_MEMORY_CONFIG).toLong
    if (buffer < request) (buffer.toInt, "the producer's 'buffer.memory'")
    else (request, "the producer's 'max.request.size'")
  }

  /** A record without headers always fits if its key and value together have at most this size. */
  def surelyFits(topic: String): Int = math.min(ofProducer, ofTopic(topic)) - RecordSizes.Overhead

  /** The size of a record that is too large, and the limit it exceeds; None for a record that fits. */
  def tooLarge(record: SinkRecord): Option[TooLarge] = {
    val headers = RecordSizes.headers(record)
    val bytes = AbstractRecords.estimateSizeInBytesUpperBound(
      RecordBatch.CURRENT_MAGIC_VALUE, compressionType, record.key, record.value, headers)
    lazy val limit = ofTopic(record.topic)
    lazy val sent = MemoryRecords
      .withRecords(compression, new SimpleRecord(record.timestamp.getOrElse(0L), record.key, record.value, headers))
      .sizeInBytes
    if (bytes > ofProducer) Some(TooLarge(bytes, ofProducer, producersName))
    else if (bytes > limit && sent > limit)
      Some(TooLarge(sent, limit, s"'max.message.bytes' of topic ${record.topic}"))
    else None
  }

  /** Read from the broker once. Without the right to read it there is no limit here, only at the broker. */
  private def ofTopic(topic: String): Int = ofTopics.getOrElseUpdate(
    topic,
    try
      Using.resource(Admin.create(KafkaBrokers.clientSettings(settings))) { admin =>
        val resource = new ConfigResource(ConfigResource.Type.TOPIC, topic)
        val config = admin.describeConfigs(Collections.singleton(resource)).values.get(resource)
        config.get(RecordSizes.TimeoutS, TimeUnit.SECONDS).get(TopicConfig.MAX_MESSAGE_BYTES_CONFIG).value.toInt
      }
    catch { case NonFatal(_) => Int.MaxValue })
}

object RecordSizes {
  private val TimeoutS = 30L

  /** More than the headers of a batch and of a record take. */
  private final val Overhead = 512

  def headers(record: SinkRecord): Array[Header] =
    if (record.headers == null) Array.empty
    else record.headers.map(h => new RecordHeader(h.key, h.value): Header).toArray
}

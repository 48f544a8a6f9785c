package org.apache.spark.sql.rejoin.ingest

import java.time.Duration
import java.util.{Collections, Properties}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.consumer.{ConsumerConfig, KafkaConsumer}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.TimeoutException
import org.apache.kafka.common.serialization.ByteArrayDeserializer

import org.apache.spark.sql.rejoin.run.References

/** Where the last record before an offset is: what follows it may be marks of transactions, aborted records, or gaps
  * that compaction has left. A reader that only sees records never gets to the offset itself.
  */
private[ingest] object ContentEnd {
  private val TimeoutNs = Duration.ofSeconds(60).toNanos
  private val Poll = Duration.ofMillis(100)

  /** The offset behind the last record in `[from, end)`; `from` if there is none. */
  def of(partition: TopicPartition, from: Long, end: Long, client: Map[String, String]): Long =
    Using.resource(new KafkaConsumer[Array[Byte], Array[Byte]](settings(client))) { consumer =>
      consumer.assign(Collections.singletonList(partition))
      Iterator
        .iterate(1L)(_ * 16)
        .map(back => math.max(end - back, from))
        .map(start => (start, lastIn(consumer, partition, start, end)))
        .collectFirst {
          case (_, Some(offset)) => offset + 1
          case (`from`, None) => from
        }
        .get
    }

  private def lastIn(
      consumer: KafkaConsumer[Array[Byte], Array[Byte]],
      partition: TopicPartition,
      start: Long,
      end: Long): Option[Long] = {
    val deadline = System.nanoTime + TimeoutNs
    var last: Option[Long] = None
    consumer.seek(partition, start)
    while (consumer.position(partition) < end) {
      if (System.nanoTime > deadline) throw new TimeoutException(s"$partition cannot be read up to offset $end")
      last = consumer.poll(Poll).records(partition).asScala.map(_.offset).filter(_ < end).lastOption.orElse(last)
    }
    last
  }

  private def settings(client: Map[String, String]): Properties = {
    val settings = new Properties
    for ((name, value) <- References.resolveAll(client) if ConsumerConfig.configNames.contains(name))
      settings.put(name, value)
    settings.remove(ConsumerConfig.GROUP_ID_CONFIG)
    settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false")
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest")
    settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, classOf[ByteArrayDeserializer].getName)
    settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, classOf[ByteArrayDeserializer].getName)
    settings
  }
}

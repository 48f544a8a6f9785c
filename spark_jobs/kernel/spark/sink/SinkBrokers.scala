package org.apache.spark.sql.rejoin.sink

import java.time.Duration

import org.apache.kafka.clients.consumer.OffsetAndMetadata
import org.apache.kafka.clients.producer.{Callback, ProducerRecord}
import org.apache.kafka.common.TopicPartition

/** What writers need of the world around their JVM: Kafka and a clock. */
private[rejoin] trait SinkBrokers {
  def connect(spec: SinkSpec, id: String): SinkConnection

  /** Of a clock that only moves forward. */
  def nanoTime: Long
}

/** What a writer asks of Kafka under its transactional id; the methods are those of Kafka's own producer. */
private[rejoin] trait SinkConnection {
  def initTransactions(): Unit
  def beginTransaction(): Unit

  /** `done` may be null. */
  def send(record: ProducerRecord[Array[Byte], Array[Byte]], done: Callback): Unit

  /** Makes the offset of a group part of the open transaction. */
  def sendOffset(group: String, place: TopicPartition, offset: OffsetAndMetadata): Unit
  def commitTransaction(): Unit
  def abortTransaction(): Unit
  def flush(): Unit
  def close(timeout: Duration): Unit

  /** Reads committed offsets until it is closed. */
  def ledgers(): LedgerReader
  def partitionsOf(topic: String): Int
  def sizes: RecordSizes
}

private[rejoin] trait LedgerReader extends AutoCloseable {

  /** The committed offset.
    *
    * @param stable
    *   whether to wait for a transaction that writes to it, rather than to give the offset before
    */
  def committed(group: String, place: TopicPartition, stable: Boolean): Option[OffsetAndMetadata]
  override def close(): Unit
}

package org.apache.spark.sql.kafka010.consumer.rejoin

import java.time.Duration
import java.{util => ju}

import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.common.TopicPartition

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.kafka010.consumer.{FetchedDataPool, InternalKafkaConsumer, InternalKafkaConsumerPool,
  KafkaDataConsumer}
import org.apache.spark.sql.kafka010.consumer.InternalKafkaConsumerPool.{ObjectFactory, PoolConfig}
import org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer.{AvailableOffsetRange, CacheKey}
import org.apache.spark.util.ShutdownHookManager

/** The consumers of this JVM with which tasks read what is planned: Spark's, in a pool of Spark's, but for
  * [[FewRequests]].
  */
private[kafka010] object PlannedConsumers {
  private type Client = ju.Map[String, Object]

  private object Making extends ObjectFactory {
    override def create(key: CacheKey): InternalKafkaConsumer =
      new FewRequests(key.topicPartition, keyToKafkaParams.get(key))
  }

  private lazy val pool = {
    val conf = SparkEnv.get.conf
    val made = new InternalKafkaConsumerPool(Making, new PoolConfig(conf))
    ShutdownHookManager.addShutdownHook(() => made.close())
    made
  }
  private lazy val fetched = {
    val made = new FetchedDataPool(SparkEnv.get.conf)
    ShutdownHookManager.addShutdownHook(() => made.shutdown())
    made
  }

  /** A consumer for this task. Nothing is left from before if the task is a repeated one, as in Spark. */
  def acquire(partition: TopicPartition, client: Client): KafkaDataConsumer = {
    val task = TaskContext.get()
    if (task != null && task.attemptNumber() > 0) {
      val key = new CacheKey(partition, client)
      pool.invalidateKey(key)
      fetched.invalidate(key)
    }
    new KafkaDataConsumer(partition, client, pool, fetched)
  }
}

/** Spark's consumer, which asks the broker where the partition begins and ends only if records are missing.
  *
  * Spark asks after every poll, two requests, to tell records that were deleted from those that are not there because
  * of compaction and transactions. Where no offset is left out there is nothing to tell apart.
  */
private final class FewRequests(partition: TopicPartition, client: ju.Map[String, Object])
    extends InternalKafkaConsumer(partition, client) {
  private type Record = ConsumerRecord[Array[Byte], Array[Byte]]

  private val kafka = {
    val field = classOf[InternalKafkaConsumer].getDeclaredField("consumer")
    field.setAccessible(true)
    field.get(this).asInstanceOf[KafkaConsumer[Array[Byte], Array[Byte]]]
  }

  override def fetch(offset: Long, pollTimeoutMs: Long): (ju.List[Record], Long, AvailableOffsetRange) = {
    seek(offset)
    val records = kafka.poll(Duration.ofMillis(pollTimeoutMs)).records(partition)
    if (records.isEmpty) super.fetch(offset, pollTimeoutMs) // waits once more, and says why
    else {
      val after = kafka.position(partition)
      val last = records.get(records.size - 1).offset
      val isWhole = last - offset + 1 == records.size
      (records, after, if (isWhole) AvailableOffsetRange(offset, after) else getAvailableOffsetRange())
    }
  }
}

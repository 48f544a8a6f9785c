package org.apache.spark.sql.kafka010.rejoin

import java.time.Duration
import java.util

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.common.TopicPartition

import org.apache.spark.SparkEnv
import org.apache.spark.kafka010.{KafkaConfigUpdater, KafkaTokenClusterConf, KafkaTokenUtil}
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.PartitionOffset
import org.apache.spark.sql.kafka010.{KafkaBatchInputPartition, KafkaSourcePartitionOffset}

/** How a table's partitions are read in real-time mode.
  *
  * @param settings
  *   the consumer's
  * @param tokens
  *   the cluster for which Spark adds delegation tokens to them, if there is one
  */
final case class LiveSource(
    settings: util.Map[String, Object],
    tokens: Option[KafkaTokenClusterConf],
    hasHeaders: Boolean)

object LiveSource {

  /** As Spark has planned any of the partitions. */
  def apply(planned: InputPartition): LiveSource = {
    val of = planned.asInstanceOf[KafkaBatchInputPartition]
    val servers = of.executorKafkaParams.get("bootstrap.servers").toString
    val tokens = KafkaTokenUtil.findMatchingTokenClusterConfig(SparkEnv.get.conf, servers)
    LiveSource(of.executorKafkaParams, tokens, of.includeHeaders)
  }
}

/** Where a task stands when its epoch of real-time mode ends: the offset behind the last record of each partition. */
final case class LiveOffsets(next: Seq[(TopicPartition, Long)]) extends PartitionOffset {

  /** As Spark's source knows them. */
  def partitions: Seq[PartitionOffset] = next.map { case (at, offset) => KafkaSourcePartitionOffset(at, offset) }
}

/** One consumer for the partitions that a task reads in real-time mode: one request asks for all of them.
  *
  * Spark has a consumer for each partition. At 10,000 records a second, each of its requests brought a few records.
  */
private[sql] final class LiveConsumer(val partitions: Seq[TopicPartition], source: LiveSource) extends AutoCloseable {
  private val settings =
    KafkaConfigUpdater("executor", source.settings.asScala.toMap).setAuthenticationConfigIfNeeded(source.tokens).build()
  private val consumer = new KafkaConsumer[Array[Byte], Array[Byte]](settings)
  private var hasPositions = false
  private var hasFailed = false
  consumer.assign(partitions.asJava)

  /** Reads on at these offsets; what was fetched in advance is kept where the consumer stands there already. */
  def seek(offsets: Iterable[(TopicPartition, Long)]): Unit = {
    resume()
    for ((at, offset) <- offsets if !hasPositions || consumer.position(at) != offset) consumer.seek(at, offset)
    hasPositions = true
  }

  /** The records that have come, or none when the time is over. Throws Kafka's OffsetOutOfRangeException. */
  def poll(timeoutMs: Long): util.Iterator[ConsumerRecord[Array[Byte], Array[Byte]]] =
    try consumer.poll(Duration.ofMillis(timeoutMs)).iterator
    catch {
      case e: Throwable =>
        hasFailed = true
        throw e
    }

  /** Whether the broker has said that all records of a partition were returned. */
  def isAtEnd(at: TopicPartition): Boolean = consumer.currentLag(at).orElse(1L) == 0

  /** Gets no more records of a partition until [[resume]]. */
  def pause(at: TopicPartition): Unit = consumer.pause(util.Collections.singleton(at))

  def resume(): Unit = consumer.resume(consumer.paused())

  /** Whether all records of a partition in front of an offset have come. */
  def isAt(at: TopicPartition, offset: Long): Boolean = hasPositions && consumer.position(at) >= offset

  /** Whether another task can go on with it. */
  def isUsable: Boolean = !hasFailed && !KafkaTokenUtil.needTokenUpdate(settings, source.tokens)

  override def close(): Unit =
    try consumer.close(Duration.ZERO)
    catch { case NonFatal(_) => } // of an interrupted task
}

/** Consumers wait here for the next epoch: connecting anew would make results wait at each end of an epoch. */
private[sql] object LiveConsumers {
  private val idle = mutable.HashMap.empty[String, List[LiveConsumer]] // by run; one that has ended has no entry

  /** A table is being read from here on, until the end of this run. */
  def open(run: String): Unit = synchronized { idle.getOrElseUpdate(run, Nil) }

  /** The consumer that read the same partitions before, or a new one. */
  def take(run: String, partitions: Seq[TopicPartition], source: LiveSource): LiveConsumer = {
    val (same, former) = remove(run, partitions).partition(had => had.partitions == partitions && had.isUsable)
    (former ++ same.drop(1)).foreach(_.close())
    same.headOption.getOrElse(new LiveConsumer(partitions, source))
  }

  def giveBack(run: String, consumer: LiveConsumer): Unit = {
    val isKept = synchronized {
      val isOpen = idle.contains(run)
      if (isOpen) idle(run) ::= consumer
      isOpen
    }
    if (!isKept) consumer.close()
  }

  /** Consumers of this run are closed now, or when their task ends. */
  def end(run: String): Unit = synchronized(idle.remove(run)).foreach(_.foreach(_.close()))

  private def remove(run: String, partitions: Seq[TopicPartition]): List[LiveConsumer] = synchronized {
    val (found, others) = idle.getOrElse(run, Nil).partition(_.partitions.exists(partitions.contains))
    if (found.nonEmpty) idle(run) = others
    found
  }
}

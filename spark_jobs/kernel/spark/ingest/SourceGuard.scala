package org.apache.spark.sql.rejoin.ingest

import java.util.Properties
import java.util.concurrent.{ExecutionException, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.kafka.clients.admin.{Admin, AdminClientConfig, ListOffsetsOptions, OffsetSpec}
import org.apache.kafka.common.{IsolationLevel, TopicPartition}
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException

import org.apache.spark.sql.rejoin.run.References

/** Records that the query had not read yet are gone, or its topic was recreated. */
final class DataLossException(code: String, message: String) extends IllegalStateException(s"[$code] $message")

/** Detects what Spark's Kafka source does not: a recreated topic, and how many records are gone.
  *
  * @param ids
  *   the topics' ids when the checkpoint was new
  * @param toleratesLoss
  *   whether the query counts lost records and continues with the remaining ones
  */
final class SourceGuard(table: String, ids: Map[String, String], toleratesLoss: Boolean, client: Map[String, String])
    extends AutoCloseable {
  private lazy val admin = Admin.create(SourceGuard.settings(client))
  private var opened = false
  private var checkedAt = Long.MinValue

  /** Throws if a topic was deleted or recreated; calls the broker at most once a second. */
  def checkTopics(): Unit =
    if (System.nanoTime - checkedAt > SourceGuard.EveryNs || checkedAt == Long.MinValue) {
      opened = true
      checkedAt = System.nanoTime
      val present = SourceGuard.topicIds(admin, ids.keys.toSeq)
      for ((topic, id) <- ids)
        present.get(topic) match {
          case Some(`id`) =>
          case Some(_) =>
            throw new DataLossException(
              "TOPIC_RECREATED",
              s"table $table: topic '$topic' was deleted and created again; its former records are gone, and " +
                "the offsets in the checkpoint now mean other records")
          case None =>
            throw new DataLossException("TOPIC_DELETED", s"table $table: topic '$topic' was deleted")
        }
    }

  /** How many records of which partitions were deleted before the query read them; throws unless loss is tolerated. */
  def checkRecords(start: Map[String, Map[String, Long]]): Map[TopicPartition, Long] = {
    opened = true
    val wanted = for ((topic, offsets) <- start.toSeq; partition <- offsets.keys)
      yield new TopicPartition(topic, partition.toInt) -> OffsetSpec.earliest
    val found = SourceGuard.await(admin.listOffsets(wanted.toMap.asJava).all)
    val lost = for {
      (topic, offsets) <- start.toSeq.sortBy(_._1)
      (partition, at) <- offsets.toSeq.sortBy(_._1.toInt)
      place = new TopicPartition(topic, partition.toInt)
      earliest = found.get(place).offset
      if earliest > at
    } yield (place, s"$topic[$partition]: offsets $at to ${earliest - 1}", earliest - at)
    if (lost.nonEmpty && !toleratesLoss)
      throw new DataLossException(
        "SOURCE_DATA_LOST",
        s"table $table: ${lost.map(_._3).sum} records were deleted before they were read: " +
          lost.map(_._2).mkString(", "))
    lost.map { case (place, _, records) => place -> records }.toMap
  }

  /** Whether the partitions end at these offsets: one request. No if it fails: Spark's own look says what is wrong. */
  def haveEnds(ends: Map[String, Map[String, Long]]): Boolean = {
    opened = true
    val at = for ((topic, offsets) <- ends; (partition, end) <- offsets)
      yield new TopicPartition(topic, partition.toInt) -> end
    try {
      val found = SourceGuard.await(admin.listOffsets(at.map(_._1 -> OffsetSpec.latest).asJava, SourceGuard.Latest).all)
      at.forall { case (partition, end) => found.get(partition).offset == end }
    } catch { case NonFatal(_) => false }
  }

  override def close(): Unit = if (opened) admin.close()
}

object SourceGuard {
  private val EveryNs = TimeUnit.SECONDS.toNanos(1)
  private val TimeoutS = 60L
  private val Latest = new ListOffsetsOptions(IsolationLevel.READ_COMMITTED).timeoutMs(5000)

  def topicIds(client: Map[String, String], topics: Seq[String]): Map[String, String] =
    Using.resource(Admin.create(settings(client)))(topicIds(_, topics))

  /** The ids of those topics that exist. */
  private def topicIds(admin: Admin, topics: Seq[String]): Map[String, String] = {
    val described = admin.describeTopics(topics.asJava).topicNameValues.asScala
    described.toMap.flatMap { case (topic, description) =>
      try Some(topic -> await(description).topicId.toString)
      catch { case _: UnknownTopicOrPartitionException => None }
    }
  }

  private def await[T](future: org.apache.kafka.common.KafkaFuture[T]): T =
    try future.get(TimeoutS, TimeUnit.SECONDS)
    catch { case e: ExecutionException => throw e.getCause }

  private[rejoin] def settings(client: Map[String, String]): Properties = {
    val settings = new Properties
    for ((name, value) <- References.resolveAll(client) if AdminClientConfig.configNames.contains(name))
      settings.put(name, value)
    settings
  }
}

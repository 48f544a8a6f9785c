package org.apache.spark.sql.rejoin.ingest

import java.util.Properties
import java.util.concurrent.{ExecutionException, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.admin.{Admin, AdminClientConfig, OffsetSpec}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException

import org.apache.spark.sql.rejoin.run.References

/** Records that the query still had to read are gone, or its topic is another one. */
final class DataLossException(code: String, message: String) extends IllegalStateException(s"[$code] $message")

/** Sees what Spark's Kafka source does not: that a topic was recreated, and how many records are gone.
  *
  * @param ids
  *   of the topics when the checkpoint began
  * @param goesOn
  *   lost records are counted, and the query goes on with those that are left
  */
final class SourceGuard(table: String, ids: Map[String, String], goesOn: Boolean, client: Map[String, String])
    extends AutoCloseable {
  private lazy val admin = Admin.create(SourceGuard.settings(client))
  private var opened = false
  private var checkedAt = Long.MinValue

  /** Refuses topics that were deleted or recreated; asks the broker at most once a second. */
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
              s"table $table: topic '$topic' was deleted and created again; what it held then is gone, and the " +
                "offsets in the checkpoint mean other records now")
          case None =>
            throw new DataLossException("TOPIC_DELETED", s"table $table: topic '$topic' was deleted")
        }
    }

  /** Refuses or counts records between the position of the query and the first that there is.
    *
    * How many there are.
    */
  def checkRecords(start: Map[String, Map[String, Long]]): Long = {
    opened = true
    val asked = for ((topic, offsets) <- start.toSeq; partition <- offsets.keys)
      yield new TopicPartition(topic, partition.toInt) -> OffsetSpec.earliest
    val found = SourceGuard.answer(admin.listOffsets(asked.toMap.asJava).all)
    val lost = for {
      (topic, offsets) <- start.toSeq.sortBy(_._1)
      (partition, at) <- offsets.toSeq.sortBy(_._1.toInt)
      earliest = found.get(new TopicPartition(topic, partition.toInt)).offset
      if earliest > at
    } yield (s"$topic[$partition]: offsets $at to ${earliest - 1}", earliest - at)
    val total = lost.map(_._2).sum
    if (total > 0 && !goesOn)
      throw new DataLossException(
        "SOURCE_DATA_LOST",
        s"table $table: $total records were deleted before they were read: ${lost.map(_._1).mkString(", ")}")
    total
  }

  override def close(): Unit = if (opened) admin.close()
}

object SourceGuard {
  private val EveryNs = TimeUnit.SECONDS.toNanos(1)
  private val TimeoutS = 60L

  def topicIds(client: Map[String, String], topics: Seq[String]): Map[String, String] =
    Using.resource(Admin.create(settings(client)))(topicIds(_, topics))

  /** Of the topics that exist. */
  private def topicIds(admin: Admin, topics: Seq[String]): Map[String, String] = {
    val asked = admin.describeTopics(topics.asJava).topicNameValues.asScala
    asked.toMap.flatMap { case (topic, described) =>
      try Some(topic -> answer(described).topicId.toString)
      catch { case _: UnknownTopicOrPartitionException => None }
    }
  }

  private def answer[T](future: org.apache.kafka.common.KafkaFuture[T]): T =
    try future.get(TimeoutS, TimeUnit.SECONDS)
    catch { case e: ExecutionException => throw e.getCause }

  private[rejoin] def settings(client: Map[String, String]): Properties = {
    val settings = new Properties
    for ((name, value) <- References.resolveAll(client) if AdminClientConfig.configNames.contains(name))
      settings.put(name, value)
    settings
  }
}

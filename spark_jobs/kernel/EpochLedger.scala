package org.apache.spark.sql.rejoin

import java.util.{Collections, Properties}
import java.util.concurrent.{ExecutionException, TimeUnit}

import scala.util.Using

import org.apache.kafka.clients.admin.{Admin, ListConsumerGroupOffsetsOptions, ListConsumerGroupOffsetsSpec}
import org.apache.kafka.clients.consumer.{ConsumerGroupMetadata, OffsetAndMetadata}
import org.apache.kafka.clients.producer.KafkaProducer
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.GroupIdNotFoundException
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats}
import org.json4s.JsonDSL._

/** What stands in a ledger: the epoch after the last committed one, and whose epochs these are. */
final case class LedgerEntry(next: Long, checkpoint: String)

/** A sink partition that cannot go on without losing or doubling rows. */
final class LedgerException(code: String, message: String) extends IllegalStateException(s"[$code] $message")

/** The last committed epoch of one sink partition, kept by the broker as a consumer group's offset.
  *
  * It is committed in the same transaction as the epoch's records, so it tells for certain whether
  * an epoch that Spark repeats has been written already.
  *
  * @param group
  *   also the transactional id
  * @param topic
  *   the sink's; its partition 0 carries the number
  */
final class EpochLedger(group: String, topic: String) {
  private val place = new TopicPartition(topic, 0)

  /** Makes `entry` part of the producer's open transaction. */
  def write(producer: KafkaProducer[_, _], entry: LedgerEntry): Unit = {
    val metadata = compact(render(("checkpoint" -> entry.checkpoint) ~ ("version" -> 1)))
    producer.sendOffsetsToTransaction(
      Collections.singletonMap(place, new OffsetAndMetadata(entry.next, metadata)),
      new ConsumerGroupMetadata(group))
  }

  /** Reads the committed entry; waits for a transaction that is being completed. */
  def read(client: Properties): Option[LedgerEntry] =
    Using.resource(Admin.create(client)) { admin =>
      val asked = Collections.singletonMap(
        group,
        new ListConsumerGroupOffsetsSpec().topicPartitions(Collections.singletonList(place)))
      val offsets = admin.listConsumerGroupOffsets(asked, new ListConsumerGroupOffsetsOptions().requireStable(true))
      val committed = offsets.partitionsToOffsetAndMetadata(group)
      try Option(committed.get(EpochLedger.TimeoutS, TimeUnit.SECONDS).get(place)).map(entry)
      catch { case e: ExecutionException if e.getCause.isInstanceOf[GroupIdNotFoundException] => None }
    }

  private def entry(offset: OffsetAndMetadata): LedgerEntry = {
    implicit val formats: Formats = DefaultFormats
    val checkpoint =
      if (offset.metadata.startsWith("{")) (parse(offset.metadata) \ "checkpoint").extractOpt[String] else None
    LedgerEntry(offset.offset, checkpoint.getOrElse(""))
  }

  /** Whether `epoch` has still to be written (false: it is committed).
    *
    * @param checkpoint
    *   identity of the checkpoint that counts the epochs
    * @param repeated
    *   the one epoch that an earlier driver began and did not finish, if any: only that one can
    *   have been committed without the present driver knowing
    * @param dense
    *   the query writes every partition in every epoch
    */
  def admits(
      found: Option[LedgerEntry],
      epoch: Long,
      checkpoint: String,
      repeated: Option[Long],
      dense: Boolean): Boolean =
    found match {
      case Some(entry) if entry.checkpoint == checkpoint => admits(entry.next, epoch, dense)
      case Some(_) if epoch > 0 =>
        throw new LedgerException(
          "SINK_LEDGER_FOREIGN",
          s"the epoch ledger '$group' was taken over by a job with another checkpoint " +
            s"while this one is at epoch $epoch: " +
            "give each job its own sink.transactional-id-prefix")
      case None if dense && epoch > 0 && repeated.contains(epoch) =>
        throw new LedgerException(
          "SINK_LEDGER_MISSING",
          s"the epoch ledger '$group' on topic '$topic' is gone (offsets of idle groups expire) " +
            s"and epoch $epoch may or may not " +
            "be written already: compare the sink with the input and start from a new checkpoint")
      case _ => true
    }

  private def admits(next: Long, epoch: Long, dense: Boolean): Boolean =
    if (next == epoch || (!dense && next < epoch)) true
    else if (next == epoch + 1) false
    else
      throw new LedgerException(
        "SINK_LEDGER_GAP",
        s"the epoch ledger '$group' on topic '$topic' says that epoch ${next - 1} was the last, " +
          s"and now comes epoch $epoch: " +
          "the checkpoint or the broker was set back to an older state")
}

object EpochLedger {
  private val TimeoutS = 60L
}

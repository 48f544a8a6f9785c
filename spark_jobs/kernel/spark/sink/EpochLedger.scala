package org.apache.spark.sql.rejoin.sink

import org.apache.kafka.clients.consumer.OffsetAndMetadata
import org.apache.kafka.common.TopicPartition
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.rejoin.ingest.BarrierLog

/** The content of a ledger.
  *
  * @param next
  *   the epoch after the last committed one
  * @param checkpoint
  *   the checkpoint whose epochs are counted
  * @param generation
  *   number of the driver that wrote it; each driver of a checkpoint has a higher one
  * @param barrier
  *   the last committed barrier of the epoch `next`, in real-time mode; -1 for none
  */
final case class LedgerEntry(next: Long, checkpoint: String, generation: Long, barrier: Long = -1L)

/** How a starting driver takes over the ledgers of its checkpoint.
  *
  * @param epoch
  *   the first epoch that the driver runs or repeats
  * @param since
  *   the epoch after the last one that had anything to write: earlier than `epoch` if those between only moved
  *   state to other tasks (`rejoin rescale`)
  * @param repeated
  *   whether an earlier driver began that epoch, so that it may be written already
  * @param writers
  *   how many writers had a ledger under an earlier driver; further writers are new
  * @param written
  *   whether a repeated epoch whose ledger is gone was written, if the user has said so (`--epoch-written`)
  * @param folder
  *   the query's part of the checkpoint
  */
final case class Takeover(
    checkpoint: String,
    generation: Long,
    epoch: Long,
    since: Long,
    repeated: Boolean,
    writers: Long,
    written: Option[Boolean],
    dense: Boolean,
    folder: String) {

  /** The last barrier of the epoch that the folder has. */
  def barrier: Long = BarrierLog.last(folder, epoch)
}

/** A writer of a sink cannot continue without losing or repeating rows. */
final class LedgerException(code: String, message: String) extends IllegalStateException(s"[$code] $message")

/** The last committed epoch of one writer, kept by the broker as a consumer group's offset.
  *
  * It is committed in the same transaction as the epoch's records, so it shows for certain whether an epoch
  * that Spark repeats was written before. A driver also writes it before its first epoch: a ledger that is
  * missing later has been lost.
  *
  * @param group
  *   also the transactional id
  * @param topic
  *   the sink's topic; the ledger is an offset of its partition 0
  */
final class EpochLedger(group: String, topic: String) {
  private val place = new TopicPartition(topic, 0)

  /** Makes `entry` part of the writer's open transaction. */
  def write(kafka: SinkConnection, entry: LedgerEntry): Unit = {
    val metadata = compact(
      render(
        ("checkpoint" -> entry.checkpoint) ~ ("generation" -> entry.generation) ~ ("version" -> 1) ~
          ("barrier" -> Option.when(entry.barrier >= 0)(entry.barrier))))
    kafka.sendOffset(group, place, new OffsetAndMetadata(entry.next, metadata))
  }

  /** Reads the committed entry, after waiting for a transaction that is being completed. */
  def read(ledgers: LedgerReader): Option[LedgerEntry] = ledgers.committed(group, place, stable = true).map(entry)

  /** Reads the committed entry and does not wait: whoever died with a transaction open has to be fenced first. */
  def peek(ledgers: LedgerReader): Option[LedgerEntry] = ledgers.committed(group, place, stable = false).map(entry)

  private def entry(offset: OffsetAndMetadata): LedgerEntry = {
    implicit val formats: Formats = DefaultFormats
    val metadata = if (offset.metadata.startsWith("{")) parse(offset.metadata) else parse("{}")
    LedgerEntry(
      offset.offset,
      (metadata \ "checkpoint").extractOpt[String].getOrElse(""),
      (metadata \ "generation").extractOpt[Long].getOrElse(0),
      (metadata \ "barrier").extractOpt[Long].getOrElse(-1L))
  }

  /** Throws if a later driver of the same checkpoint has written to the ledger.
    *
    * Also checked before the producer fences others: a driver that was replaced must not disturb its successor.
    */
  def refuseNewer(found: Option[LedgerEntry], checkpoint: String, generation: Long): Unit =
    for (entry <- found if entry.checkpoint == checkpoint && entry.generation > generation)
      throw new LedgerException(
        "CHECKPOINT_TAKEN_OVER",
        s"driver ${entry.generation} of this checkpoint has written to the epoch ledger '$group', this one is " +
          s"driver $generation")

  /** Throws if a later driver than the checkpoint's folder knows of has written to the ledger.
    *
    * The starting driver owns the folder, so that was no other one: the folder was set back by two starts or more.
    */
  def refuseOlderFolder(found: Option[LedgerEntry], checkpoint: String, generation: Long): Unit =
    for (entry <- found if entry.checkpoint == checkpoint && entry.generation > generation)
      throw new LedgerException(
        "SINK_LEDGER_GAP",
        s"driver ${entry.generation} of this checkpoint wrote last to the epoch ledger '$group' on topic '$topic', " +
          s"and the checkpoint's folder says that this is driver $generation: the folder is an older copy (the " +
          s"ledger expects epoch ${entry.next})")

  /** Whether `epoch` is still to be written; false if it is committed.
    *
    * @param dense
    *   whether the query has a task for every writer in every epoch
    * @param isNew
    *   whether the writer may have no ledger yet: its source partition was added after the driver's start
    */
  def admits(found: Option[LedgerEntry], epoch: Long, checkpoint: String, dense: Boolean, isNew: Boolean): Boolean =
    found match {
      case Some(entry) if entry.checkpoint == checkpoint => admits(entry, epoch, dense)
      case Some(_) => throw foreign(epoch)
      case None => isNew || (throw missing(epoch))
    }

  /** Whether `epoch` follows on an entry or is the one that it has committed. */
  def fits(entry: LedgerEntry, epoch: Long, dense: Boolean): Boolean =
    entry.next == epoch || entry.next == epoch + 1 || (!dense && entry.next < epoch)

  /** The entry from which a starting driver continues.
    *
    * @param writer
    *   number of the writer
    */
  def takenOver(found: Option[LedgerEntry], writer: Long, by: Takeover): LedgerEntry = {
    val isNew = writer >= by.writers
    val next = found match {
      case Some(entry) if entry.checkpoint == by.checkpoint && isBehindRescale(entry, isNew, by) => by.epoch
      case Some(entry) if entry.checkpoint == by.checkpoint =>
        admits(entry, by.epoch, by.dense)
        if (entry.next > by.epoch && !by.repeated) throw gap(entry.next, by.epoch)
        if (entry.next == by.epoch && entry.barrier >= 0 && entry.barrier > by.barrier) throw gap(entry.next, by.epoch)
        entry.next
      case Some(_) if !isNew || by.epoch > 0 => throw foreign(by.epoch)
      case Some(_) => by.epoch
      case None if isNew || !by.repeated => by.epoch
      case None => if (by.written.getOrElse(throw missing(by.epoch))) by.epoch + 1 else by.epoch
    }
    val barrier = found.filter(entry => entry.checkpoint == by.checkpoint && entry.next == next).fold(-1L)(_.barrier)
    LedgerEntry(next, by.checkpoint, by.generation, barrier)
  }

  /** Whether the writer has only missed epochs in which it had nothing to write.
    *
    * They moved state to other tasks, or there were fewer tasks and this writer was none of them.
    */
  private def isBehindRescale(entry: LedgerEntry, isNew: Boolean, by: Takeover): Boolean =
    entry.next < by.epoch && (isNew || (!by.repeated && entry.next >= by.since))

  private def admits(entry: LedgerEntry, epoch: Long, dense: Boolean): Boolean =
    if (fits(entry, epoch, dense)) entry.next <= epoch else throw gap(entry.next, epoch)

  private def gap(next: Long, epoch: Long) = new LedgerException(
    "SINK_LEDGER_GAP",
    s"the epoch ledger '$group' on topic '$topic' says that epoch ${next - 1} was the last, and now comes epoch " +
      s"$epoch: the checkpoint or the broker was set back to an older state")

  private def foreign(epoch: Long) = new LedgerException(
    "SINK_LEDGER_FOREIGN",
    s"the epoch ledger '$group' was taken over by a job with another checkpoint while this one is at epoch " +
      s"$epoch: give each job its own sink.transactional-id-prefix")

  private def missing(epoch: Long) = new LedgerException(
    "SINK_LEDGER_MISSING",
    s"the epoch ledger '$group' on topic '$topic' is gone (deleted, or idle for longer than the broker's " +
      s"offsets.retention.minutes) and epoch $epoch may or may not be written already")
}

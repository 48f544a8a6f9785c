package org.apache.spark.sql.rejoin.sink

import java.time.Duration
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.kafka.clients.producer.{Callback, ProducerRecord}
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.utils.Utils

import org.apache.spark.sql.rejoin.run.RowsTaken

/** A producer of one writer, kept between epochs. */
private[rejoin] final class SinkProducer(spec: SinkSpec, writer: Long, val serial: Long, brokers: SinkBrokers) {
  val id: String = spec.writerId(writer)
  private val producer = brokers.connect(spec, id)
  val admission = new SinkAdmission(spec, id, producer.sizes)
  private val ledger = new EpochLedger(id, spec.topic)
  private val partitions = new mutable.HashMap[String, Int]
  private var known: Option[LedgerEntry] = _
  private var committedAt: Long = _
  @volatile private var failure: Exception = _
  private val held = new mutable.ArrayBuffer[(ProducerRecord[Array[Byte], Array[Byte]], Callback)]

  /** Whether the epoch is still to be written; if so, opens a transaction. */
  def begin(epoch: Long): Boolean =
    if (!spec.exactlyOnce) true
    else {
      if (known == null) known = acquire(ledger.refuseNewer(_, spec.checkpoint, spec.generation))
      val isNew = !spec.dense && writer >= spec.ledgers
      val admitted = ledger.admits(known, epoch, spec.checkpoint, spec.dense, isNew)
      if (admitted) producer.beginTransaction()
      admitted
    }

  /** Makes the ledger this driver's; true if only the user's `--epoch-written` said which epoch is written. */
  def takeOver(by: Takeover): Boolean = {
    val found = acquire(ledger.refuseOlderFolder(_, by.checkpoint, by.generation))
    commitEntry(ledger.takenOver(found, writer, by))
    found.isEmpty && by.repeated && writer < by.writers
  }

  /** Commits the ledger again if the last commit was long ago. */
  def beat(): Unit =
    if (known != null && TimeUnit.NANOSECONDS.toMillis(brokers.nanoTime - committedAt) >= spec.heartbeatMs)
      known.foreach(commitEntry)

  /** Fences an earlier writer, ends its transaction, and reads its ledger.
    *
    * @param refuse
    *   throws if the entry is of a later driver; called before an earlier writer is fenced, too
    */
  private def acquire(refuse: Option[LedgerEntry] => Unit): Option[LedgerEntry] =
    Using.resource(producer.ledgers()) { ledgers =>
      refuse(ledger.peek(ledgers))
      producer.initTransactions()
      val found = ledger.read(ledgers)
      refuse(found)
      committedAt = brokers.nanoTime
      found
    }

  /** Sends a record; in real-time mode its latency is counted as soon as Kafka has it, by the client's own thread. */
  def send(record: SinkRecord, latencies: Latencies): Unit = {
    if (failure != null) throw failure
    val timestamp: java.lang.Long = record.timestamp.fold[java.lang.Long](null)(Long.box)
    val out = new ProducerRecord(record.topic, partitionOf(record), timestamp, record.key, record.value)
    if (record.headers != null) record.headers.foreach(h => out.headers.add(new RecordHeader(h.key, h.value)))
    if (spec.exactlyOnce) producer.send(out, null) // a failure shows at the commit
    else {
      val done: Callback = (_, error) =>
        if (error != null) failure = error
        else if (spec.realTime && !record.isDeadLetter)
          latencies.addAt(record.recordMs, System.currentTimeMillis())
      if (spec.realTime) hold(out, done) else producer.send(out, done)
    }
  }

  /** The results of rows that were taken together leave together: sent one by one, the first would go to the broker
    * in a request of its own.
    */
  private def hold(record: ProducerRecord[Array[Byte], Array[Byte]], done: Callback): Unit = {
    held += ((record, done))
    if (!RowsTaken.isWithin || held.size == SinkProducer.MostHeld) sendHeld()
    else if (held.size == 1) RowsTaken.atEnd(() => sendHeld())
  }

  private def sendHeld(): Unit = {
    held.foreach { case (record, done) => producer.send(record, done) }
    held.clear()
  }

  def commit(epoch: Long): Unit =
    if (spec.exactlyOnce) finish(LedgerEntry(epoch + 1, spec.checkpoint, spec.generation))
    else {
      sendHeld()
      producer.flush()
      if (failure != null) throw failure
    }

  /** The last barrier of an epoch that is not committed as a whole; -1 for none. */
  def committedBarrier(epoch: Long): Long = known.filter(_.next == epoch).fold(-1L)(_.barrier)

  /** Commits the records up to a barrier of the epoch, and opens the next transaction. */
  def commitStep(epoch: Long, barrier: Long): Unit = {
    finish(LedgerEntry(epoch, spec.checkpoint, spec.generation, barrier))
    producer.beginTransaction()
  }

  private def commitEntry(entry: LedgerEntry): Unit = {
    producer.beginTransaction()
    finish(entry)
  }

  /** Ends the transaction with the entry in it.
    *
    * The records go first: if the client learns that it is fenced while another request waits, it forgets that one,
    * and the caller waits out `max.block.ms` for a timeout that looks like a broker that is down.
    */
  private def finish(entry: LedgerEntry): Unit = {
    producer.flush()
    ledger.write(producer, entry)
    producer.commitTransaction()
    known = Some(entry)
    committedAt = brokers.nanoTime
  }

  /** Aborts even in a task that is being interrupted: an open transaction would block the readers of the topic. */
  def discard(): Unit = {
    val interrupted = Thread.interrupted()
    held.clear()
    try {
      if (spec.exactlyOnce) producer.abortTransaction()
    } catch {
      case NonFatal(_) => // never begun, fenced or unreachable; the next producer ends the transaction
    } finally {
      producer.close(Duration.ZERO)
      if (interrupted) Thread.currentThread.interrupt()
    }
  }

  /** Whether it can write an epoch.
    *
    * A ledger that does not fit was moved by another JVM, which has fenced this producer. The same may hold for a
    * ledger that is behind the epoch, unless `isOnlyJvm`: a query that is not dense has no task in some epochs.
    */
  def serves(other: SinkSpec, epoch: Long, isOnlyJvm: Boolean): Boolean =
    spec == other && Option(known).flatten.forall(ledger.fits(_, epoch, spec.dense || !isOnlyJvm))

  def close(): Unit = producer.close(SinkProducer.CloseTimeout)

  /** The partition; null leaves it to the client, which hashes the key over the present partitions. */
  private def partitionOf(record: SinkRecord): Integer = {
    val pinned = record.topic == spec.topic && spec.partitions.isDefined
    if (record.key == null || record.isDeadLetter)
      Math.floorMod(record.hash, if (pinned) spec.partitions.get else partitionsOf(record.topic))
    else if (pinned) Utils.toPositive(Utils.murmur2(record.key)) % spec.partitions.get
    else null
  }

  private def partitionsOf(topic: String): Int =
    partitions.getOrElseUpdate(topic, producer.partitionsOf(topic))
}

private object SinkProducer {
  private val CloseTimeout = Duration.ofSeconds(5)
  private final val MostHeld = 100
}

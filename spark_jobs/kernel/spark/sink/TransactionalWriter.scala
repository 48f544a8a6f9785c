package org.apache.spark.sql.rejoin.sink

import java.time.Duration
import java.util.Properties
import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.kafka.clients.admin.{Admin, AdminClientConfig}
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerConfig, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.serialization.ByteArraySerializer
import org.apache.kafka.common.utils.Utils

import org.apache.spark.sql.ForeachWriter

import org.apache.spark.sql.rejoin.run.{Counters, JvmCounts, References}

/** Writes the records of one task of a query's sink to Kafka, one transaction per epoch.
  *
  * `close` runs before Spark commits the epoch. If the driver dies in between, the next one repeats the
  * epoch, finds it in the [[EpochLedger]] and skips it. With the other guarantees there are no
  * transactions: `close` waits until the broker has all records, and a repeated epoch writes them again.
  */
final class TransactionalWriter(spec: SinkSpec, counters: Counters) extends ForeachWriter[SinkRecord] {
  @transient private var producer: SinkProducer = _
  @transient private var waiting: ArrayBuffer[SinkRecord] = _
  @transient private var epoch: Long = _
  @transient private var records: Long = _

  override def open(writer: Long, epoch: Long): Boolean = {
    this.epoch = epoch
    records = 0
    waiting = if (spec.deletesFirst) new ArrayBuffer[SinkRecord] else null
    producer = SinkProducer.take(spec, writer, epoch)
    try {
      val admitted = producer.begin(epoch)
      if (!admitted) release()
      admitted
    } catch {
      case e: Throwable =>
        discard()
        throw e
    }
  }

  override def process(record: SinkRecord): Unit =
    if (waiting == null || record.isRetraction || record.isDeadLetter) send(record) else waiting += record

  override def close(error: Throwable): Unit =
    if (producer != null) {
      if (error != null) discard()
      else
        try {
          if (waiting != null) waiting.foreach(send)
          producer.commit(epoch)
          counters.written(spec.name, records)
          if (spec.exactlyOnce) JvmCounts.add("commits", spec.name)
          release()
        } catch {
          case e: Throwable =>
            discard()
            throw e
        }
    }

  private def send(record: SinkRecord): Unit = {
    val admitted = producer.admission(record, epoch, counters)
    if (admitted != null) {
      producer.send(admitted)
      if (!admitted.isDeadLetter) records += 1
    }
  }

  private def release(): Unit = {
    SinkProducer.giveBack(producer)
    producer = null
  }

  /** The next producer with the same id ends what a failed transaction has left open. */
  private def discard(): Unit = {
    if (spec.exactlyOnce) JvmCounts.add("aborts", spec.name)
    producer.discard()
    producer = null
  }
}

/** A producer of one writer, kept between epochs. */
private[rejoin] final class SinkProducer(spec: SinkSpec, writer: Long, val serial: Long) {
  val id: String = spec.writerId(writer)
  private val settings = SinkProducer.settings(spec, id)
  private val producer = new KafkaProducer[Array[Byte], Array[Byte]](settings)
  val admission = new SinkAdmission(spec, id, new RecordSizes(settings))
  private val ledger = new EpochLedger(id, spec.topic)
  private val partitions = new mutable.HashMap[String, Int]
  private var known: Option[LedgerEntry] = _
  private var committedAt: Long = _
  @volatile private var failure: Exception = _

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
    if (known != null && TimeUnit.NANOSECONDS.toMillis(System.nanoTime - committedAt) >= spec.heartbeatMs)
      known.foreach(commitEntry)

  /** Fences an earlier writer, ends its transaction, and reads its ledger.
    *
    * @param refuse
    *   throws if the entry is of a later driver; called before an earlier writer is fenced, too
    */
  private def acquire(refuse: Option[LedgerEntry] => Unit): Option[LedgerEntry] =
    Using.resource(Admin.create(SinkProducer.clientSettings(settings))) { admin =>
      refuse(ledger.read(admin))
      producer.initTransactions()
      val found = ledger.read(admin)
      refuse(found)
      committedAt = System.nanoTime
      found
    }

  def send(record: SinkRecord): Unit = {
    if (failure != null) throw failure
    val timestamp: java.lang.Long = record.timestamp.fold[java.lang.Long](null)(Long.box)
    val sent = new ProducerRecord(record.topic, partitionOf(record), timestamp, record.key, record.value)
    if (record.headers != null) record.headers.foreach(h => sent.headers.add(new RecordHeader(h.key, h.value)))
    if (spec.exactlyOnce) producer.send(sent) // a failure shows at the commit
    else producer.send(sent, (_: RecordMetadata, error: Exception) => if (error != null) failure = error)
  }

  def commit(epoch: Long): Unit =
    if (spec.exactlyOnce) finish(LedgerEntry(epoch + 1, spec.checkpoint, spec.generation))
    else {
      producer.flush()
      if (failure != null) throw failure
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
    committedAt = System.nanoTime
  }

  /** Aborts even in a task that is being interrupted: an open transaction would block the readers of the topic. */
  def discard(): Unit = {
    val interrupted = Thread.interrupted()
    try {
      if (spec.exactlyOnce) producer.abortTransaction()
    } catch {
      case NonFatal(_) => // never begun, fenced or unreachable; the next producer ends the transaction
    } finally {
      producer.close(Duration.ZERO)
      if (interrupted) Thread.currentThread.interrupt()
    }
  }

  /** Whether it can write an epoch. If the ledger that it knows does not fit, another executor may have moved it. */
  def serves(other: SinkSpec, epoch: Long): Boolean =
    spec == other && Option(known).flatten.forall(ledger.fits(_, epoch, spec.dense))

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
    partitions.getOrElseUpdate(topic, producer.partitionsFor(topic).size)
}

private[rejoin] object SinkProducer {
  private val CloseTimeout = Duration.ofSeconds(5)
  private val BeatMs = 5000L
  private val idle = new mutable.HashMap[String, SinkProducer]
  private val newest = new mutable.HashMap[String, Long] // by id, the last producer's serial number
  private var made = 0L
  private lazy val heart = Executors.newSingleThreadScheduledExecutor { beat =>
    val thread = new Thread(beat, "rejoin-ledger-heartbeat")
    thread.setDaemon(true)
    thread
  }
  private lazy val beating = heart.scheduleWithFixedDelay(() => beatAll(), BeatMs, BeatMs, TimeUnit.MILLISECONDS)

  /** Takes the writer's producer out of the pool, so that no lingering task can share it. */
  def take(spec: SinkSpec, writer: Long, epoch: Long): SinkProducer = {
    val kept = synchronized(idle.remove(spec.writerId(writer)))
    val (fit, unfit) = kept.partition(_.serves(spec, epoch))
    unfit.foreach(_.close())
    fit.headOption.getOrElse(make(spec, writer))
  }

  /** Puts a producer into the pool, unless there is a newer one of its id, which has fenced it. */
  def giveBack(producer: SinkProducer): Unit = {
    beating
    val isNewest = synchronized {
      val found = newest.get(producer.id).contains(producer.serial)
      if (found) idle.put(producer.id, producer)
      found
    }
    if (!isNewest) producer.close()
  }

  /** A producer that fences all others of its id once it begins. */
  private def make(spec: SinkSpec, writer: Long): SinkProducer = {
    val serial = synchronized {
      made += 1
      newest.put(spec.writerId(writer), made)
      made
    }
    new SinkProducer(spec, writer, serial)
  }

  /** Makes all ledgers this driver's, before its first epoch, and fences the writers of earlier drivers.
    *
    * Returns for how many of them only the user's `--epoch-written` said which epoch is written.
    */
  def takeOver(spec: SinkSpec, writers: Int, by: Takeover): Int = {
    (0L until writers.toLong).count { writer =>
      synchronized(idle.remove(spec.writerId(writer))).foreach(_.close())
      val producer = make(spec, writer)
      val answered =
        try producer.takeOver(by)
        catch {
          case e: Throwable =>
            producer.discard()
            throw e
        }
      giveBack(producer)
      answered
    }
  }

  /** A task that needs a producer during its heartbeat gets a new one, which fences the old one. */
  private def beatAll(): Unit =
    for (id <- synchronized(idle.keys.toSeq); producer <- synchronized(idle.remove(id)))
      try {
        producer.beat()
        giveBack(producer)
      } catch {
        case NonFatal(_) => producer.discard() // fenced or unreachable: the next epoch will find out
      }

  def settings(spec: SinkSpec, id: String): Properties = {
    val settings = new Properties
    settings.put(ProducerConfig.ACKS_CONFIG, "all")
    settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "lz4")
    settings.put(ProducerConfig.LINGER_MS_CONFIG, "20")
    settings.put(ProducerConfig.BATCH_SIZE_CONFIG, "262144")
    settings.put(ProducerConfig.BUFFER_MEMORY_CONFIG, "67108864")
    // the transaction stays open for the length of an epoch; brokers allow 15 minutes by default
    if (spec.exactlyOnce) settings.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, "600000")
    References.resolveAll(spec.properties).foreach { case (name, value) => settings.put(name, value) }
    settings.put(ProducerConfig.CLIENT_ID_CONFIG, id)
    settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, classOf[ByteArraySerializer].getName)
    settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, classOf[ByteArraySerializer].getName)
    if (spec.exactlyOnce) settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, id)
    settings
  }

  /** Connection and security settings, without those that only a producer understands. */
  def clientSettings(producer: Properties): Properties = {
    val settings = new Properties
    producer.forEach { (name, value) =>
      if (AdminClientConfig.configNames.contains(name)) settings.put(name, value)
    }
    settings
  }
}

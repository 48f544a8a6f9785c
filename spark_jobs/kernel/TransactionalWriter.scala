package org.apache.spark.sql.rejoin

import java.time.Duration
import java.util.Properties

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.kafka.clients.admin.AdminClientConfig
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerConfig, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.kafka.common.serialization.ByteArraySerializer
import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.ForeachWriter

/** How the records of one query are written.
  *
  * @param checkpoint
  *   identity of the checkpoint that counts the epochs
  * @param repeated
  *   the epoch that an earlier driver began and did not finish
  * @param dense
  *   every epoch has a task for every sink partition
  * @param deletesFirst
  *   records of one key come from several upstream partitions: tombstones leave before the others
  */
final case class SinkSpec(
    name: String,
    topic: String,
    guarantee: String,
    transactionalIdPrefix: String,
    properties: Map[String, String],
    checkpoint: String,
    repeated: Option[Long],
    dense: Boolean,
    deletesFirst: Boolean) {
  def exactlyOnce: Boolean = guarantee == "exactly-once"
  def writerId(partition: Long): String = s"$transactionalIdPrefix-$name-$partition"
}

object SinkSpec {
  def read(json: String): SinkSpec = {
    implicit val formats: Formats = DefaultFormats
    parse(json).extract[SinkSpec]
  }
}

/** Writes the records of one query and sink partition to Kafka, one transaction per epoch.
  *
  * `close` comes before Spark commits the epoch. A driver that dies in between finds the epoch in
  * the [[EpochLedger]] when it repeats it, and skips it. With the other guarantees there are
  * no transactions: `close` waits until the broker has all records, and a repeated epoch repeats them.
  */
final class TransactionalWriter(spec: SinkSpec, counters: Counters) extends ForeachWriter[SinkRecord] {
  @transient private var producer: SinkProducer = _
  @transient private var waiting: ArrayBuffer[SinkRecord] = _
  @transient private var epoch: Long = _
  @transient private var records: Long = _

  override def open(partition: Long, epoch: Long): Boolean = {
    this.epoch = epoch
    records = 0
    waiting = if (spec.deletesFirst) new ArrayBuffer[SinkRecord] else null
    producer = SinkProducer.take(spec, partition)
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
    if (waiting != null && record.value != null) waiting += record else send(record)

  override def close(error: Throwable): Unit =
    if (producer != null) {
      if (error != null) discard()
      else
        try {
          if (waiting != null) waiting.foreach(send)
          producer.commit(epoch)
          counters.add((s"written/${spec.name}", records))
          release()
        } catch {
          case e: Throwable =>
            discard()
            throw e
        }
    }

  private def send(record: SinkRecord): Unit = {
    producer.send(record)
    records += 1
  }

  private def release(): Unit = {
    SinkProducer.giveBack(producer)
    producer = null
  }

  /** What a failed transaction left behind is settled by the next producer of the same id. */
  private def discard(): Unit = {
    producer.discard()
    producer = null
  }
}

/** A producer of one sink partition, kept between epochs. */
private final class SinkProducer(spec: SinkSpec, val id: String) {
  private val settings = SinkProducer.settings(spec, id)
  private val producer = new KafkaProducer[Array[Byte], Array[Byte]](settings)
  private val ledger = new EpochLedger(id, spec.topic)
  private val partitions = new mutable.HashMap[String, Int]
  private var known: Option[LedgerEntry] = _
  @volatile private var failure: Exception = _

  /** Whether the epoch has still to be written; if so, a transaction is open. */
  def begin(epoch: Long): Boolean =
    if (!spec.exactlyOnce) true
    else {
      if (known == null) {
        producer.initTransactions() // fences an earlier writer and settles its transaction
        known = ledger.read(SinkProducer.clientSettings(settings))
      }
      val admitted = ledger.admits(known, epoch, spec.checkpoint, spec.repeated, spec.dense)
      if (admitted) producer.beginTransaction()
      admitted
    }

  def send(record: SinkRecord): Unit = {
    if (failure != null) throw failure
    val partition: Integer = if (record.key == null) Math.floorMod(record.hash, partitionsOf(record.topic)) else null
    val timestamp: java.lang.Long = record.timestamp.fold[java.lang.Long](null)(Long.box)
    val sent = new ProducerRecord(record.topic, partition, timestamp, record.key, record.value)
    if (record.headers != null) record.headers.foreach(h => sent.headers.add(new RecordHeader(h.key, h.value)))
    if (spec.exactlyOnce) producer.send(sent) // a failure shows at the commit
    else producer.send(sent, (_: RecordMetadata, error: Exception) => if (error != null) failure = error)
  }

  def commit(epoch: Long): Unit =
    if (spec.exactlyOnce) {
      val entry = LedgerEntry(epoch + 1, spec.checkpoint)
      ledger.write(producer, entry)
      producer.commitTransaction()
      known = Some(entry)
    } else {
      producer.flush()
      if (failure != null) throw failure
    }

  /** Aborts even in a task that is being interrupted: an open transaction would hold up every reader of the topic. */
  def discard(): Unit = {
    val interrupted = Thread.interrupted()
    try {
      if (spec.exactlyOnce) producer.abortTransaction()
    } catch {
      case NonFatal(_) => // never begun, fenced or unreachable; its successor settles the transaction
    } finally {
      producer.close(Duration.ZERO)
      if (interrupted) Thread.currentThread.interrupt()
    }
  }

  def serves(other: SinkSpec): Boolean = spec.copy(repeated = None) == other.copy(repeated = None)

  def close(): Unit = producer.close(SinkProducer.CloseTimeout)

  private def partitionsOf(topic: String): Int =
    partitions.getOrElseUpdate(topic, producer.partitionsFor(topic).size)
}

private object SinkProducer {
  private val CloseTimeout = Duration.ofSeconds(5)
  private val idle = new mutable.HashMap[String, SinkProducer]

  /** The partition's producer, which nobody else has then: a task that lingers cannot share it. */
  def take(spec: SinkSpec, partition: Long): SinkProducer = {
    val id = spec.writerId(partition)
    val kept = synchronized(idle.remove(id))
    kept.filterNot(_.serves(spec)).foreach(_.close())
    kept.filter(_.serves(spec)).getOrElse(new SinkProducer(spec, id))
  }

  def giveBack(producer: SinkProducer): Unit =
    synchronized(idle.put(producer.id, producer)).foreach(_.close())

  def settings(spec: SinkSpec, id: String): Properties = {
    val settings = new Properties
    settings.put(ProducerConfig.ACKS_CONFIG, "all")
    settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "lz4")
    settings.put(ProducerConfig.LINGER_MS_CONFIG, "20")
    settings.put(ProducerConfig.BATCH_SIZE_CONFIG, "262144")
    settings.put(ProducerConfig.BUFFER_MEMORY_CONFIG, "67108864")
    // the transaction stays open for the length of an epoch; brokers allow 15 minutes by default
    if (spec.exactlyOnce) settings.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, "600000")
    spec.properties.foreach { case (name, value) => settings.put(name, value) }
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

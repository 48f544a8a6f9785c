package org.apache.spark.sql.rejoin.simulation

import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.Properties

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.kafka.clients.consumer.OffsetAndMetadata
import org.apache.kafka.clients.producer.{Callback, ProducerConfig, ProducerRecord}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.{ProducerFencedException, TimeoutException}

import org.apache.spark.sql.rejoin.sink.{LedgerReader, RecordSizes, SinkBrokers, SinkConnection, SinkProducers,
  SinkSpec}

/** A transaction of a transactional id, from its first write on. */
final class Transaction(val id: String, val startMs: Long) {
  var state: Transaction.State = Transaction.Open
  var records = 0
  var offset: OffsetAndMetadata = _
}

object Transaction {
  sealed trait State
  case object Open extends State
  case object Committed extends State
  case object Aborted extends State
}

final case class LoggedRecord(key: String, value: String, transaction: Transaction)

/** The cluster: a sink topic, transactional ids with their producer epochs, the groups' offsets, a clock.
  *
  * @param fences
  *   whether an older producer of an id is refused and what it left open is aborted, as brokers do; without that the
  *   ledgers are unprotected
  */
final class SimulatedKafka(val partitions: Int, fences: Boolean) {
  var nowMs = 0L
  private val log = Vector.fill(partitions)(new ArrayBuffer[LoggedRecord])
  private val read = new Array[Int](partitions)
  private val producerEpochs = new mutable.HashMap[String, Int]
  private val open = new mutable.HashMap[String, ArrayBuffer[Transaction]]
  private val offsets = new mutable.HashMap[String, OffsetAndMetadata]

  /** The committed transactions, in their order. */
  val committed = new ArrayBuffer[Transaction]

  def initTransactions(id: String): Int = {
    if (fences) openOf(id).toSeq.foreach(end(_, Transaction.Aborted))
    val epoch = producerEpochs.getOrElse(id, -1) + 1
    producerEpochs(id) = epoch
    epoch
  }

  def refuseFenced(id: String, epoch: Int): Unit =
    if (fences && producerEpochs(id) != epoch)
      throw new ProducerFencedException(s"$id: producer epoch $epoch, the latest is ${producerEpochs(id)}")

  def begin(id: String): Transaction = {
    val begun = new Transaction(id, nowMs)
    openOf(id) += begun
    begun
  }

  def append(partition: Int, record: LoggedRecord): Unit = {
    record.transaction.records += 1
    log(partition) += record
  }

  def end(transaction: Transaction, state: Transaction.State): Unit = {
    transaction.state = state
    openOf(transaction.id) -= transaction
    if (state == Transaction.Committed) {
      committed += transaction
      if (transaction.offset != null) offsets(transaction.id) = transaction.offset
    }
  }

  def offset(group: String, stable: Boolean): Option[OffsetAndMetadata] = {
    if (stable && openOf(group).exists(_.offset != null))
      throw new TimeoutException(s"$group: an offset is being committed")
    offsets.get(group)
  }

  /** Aborts the transactions that are older than the producers' timeout, and fences who left them open. */
  def passTime(ms: Long): Unit = {
    nowMs += ms
    for (id <- open.keys.toSeq; late <- openOf(id).filter(nowMs - _.startMs > SimulatedKafka.TimeoutMs).toSeq) {
      end(late, Transaction.Aborted)
      producerEpochs(id) += 1
    }
  }

  /** What a read_committed reader gets since the last call: up to the first open transaction of each partition. */
  def poll(): Seq[LoggedRecord] =
    log.indices.flatMap { partition =>
      val stable = log(partition).indexWhere(_.transaction.state == Transaction.Open, read(partition))
      val end = if (stable < 0) log(partition).size else stable
      val found = log(partition).slice(read(partition), end).filter(_.transaction.state == Transaction.Committed)
      read(partition) = end
      found
    }

  private def openOf(id: String): ArrayBuffer[Transaction] = open.getOrElseUpdate(id, new ArrayBuffer[Transaction])
}

object SimulatedKafka {
  final val TimeoutMs = 600000L

  /** Every record fits; one for all, as reading the producer's settings takes longer than a history's epoch. */
  val Sizes: RecordSizes = {
    val settings = new Properties
    val serializer = classOf[org.apache.kafka.common.serialization.ByteArraySerializer].getName
    settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, serializer)
    settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, serializer)
    new RecordSizes(settings)
  }
}

/** The JVM of a driver or an executor has died: whatever it was doing ends there. */
final class JvmDied extends Error

/** What happens at a call to Kafka: the JVM dies (`die-`) or gets an error (`fail-`), `before` or `after` the call has
  * had its effect.
  */
final case class CallFault(kind: String, var in: Int)

/** A JVM with its pool of producers. All calls to Kafka pass here, so that it can die at any of them. */
final class SimulatedJvm(kafka: SimulatedKafka, isOnly: Boolean) extends SinkBrokers {
  val producers = new SinkProducers(this, isOnly, takenAtOnce = 1)
  var isDead = false
  var fault: Option[CallFault] = None

  def connect(spec: SinkSpec, id: String): SinkConnection = new SimulatedConnection(kafka, this, id)
  def nanoTime: Long = kafka.nowMs * 1000000L

  def call[A](effect: => A): A = {
    if (isDead) throw new JvmDied
    fault.foreach(_.in -= 1)
    fault.filter(_.in < 0) match {
      case None => effect
      case Some(CallFault(kind, _)) =>
        fault = None
        if (kind.endsWith("after")) effect
        if (kind.startsWith("die")) {
          isDead = true
          throw new JvmDied
        }
        throw new TimeoutException(kind)
    }
  }
}

/** A producer's connection; like Kafka's client, it reports what fails between begin and commit at the commit. */
private final class SimulatedConnection(kafka: SimulatedKafka, jvm: SimulatedJvm, id: String) extends SinkConnection {
  private var epoch = -1
  private var transaction: Transaction = _
  private var failure: RuntimeException = _
  val sizes: RecordSizes = SimulatedKafka.Sizes

  def initTransactions(): Unit = jvm.call { epoch = kafka.initTransactions(id) }

  def beginTransaction(): Unit = {
    transaction = null
    failure = null
  }

  def send(record: ProducerRecord[Array[Byte], Array[Byte]], done: Callback): Unit = later {
    val partition = if (record.partition == null) 0 else record.partition.intValue
    kafka.append(partition, LoggedRecord(text(record.key), text(record.value), begun()))
  }

  def sendOffset(group: String, place: TopicPartition, offset: OffsetAndMetadata): Unit = {
    refuseFailed()
    jvm.call {
      kafka.refuseFenced(id, epoch)
      begun().offset = offset
    }
  }

  def commitTransaction(): Unit = {
    refuseFailed()
    jvm.call {
      kafka.refuseFenced(id, epoch)
      kafka.end(begun(), Transaction.Committed)
    }
    transaction = null
  }

  def abortTransaction(): Unit = jvm.call {
    kafka.refuseFenced(id, epoch)
    if (transaction != null && transaction.state == Transaction.Open) kafka.end(transaction, Transaction.Aborted)
    transaction = null
  }

  def flush(): Unit = ()
  def close(timeout: Duration): Unit = ()
  def partitionsOf(topic: String): Int = kafka.partitions

  def ledgers(): LedgerReader = new LedgerReader {
    def committed(group: String, place: TopicPartition, stable: Boolean): Option[OffsetAndMetadata] =
      jvm.call(kafka.offset(group, stable))
    def close(): Unit = ()
  }

  private def begun(): Transaction = {
    if (transaction == null) transaction = kafka.begin(id)
    if (transaction.state != Transaction.Open) throw new ProducerFencedException(s"$id: the transaction has ended")
    transaction
  }

  private def later(effect: => Unit): Unit =
    if (failure == null)
      try
        jvm.call {
          kafka.refuseFenced(id, epoch)
          effect
        }
      catch { case e: RuntimeException => failure = e }

  private def refuseFailed(): Unit = if (failure != null) throw failure

  private def text(bytes: Array[Byte]): String = if (bytes == null) null else new String(bytes, UTF_8)
}

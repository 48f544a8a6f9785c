package org.apache.spark.sql.rejoin.sink

import java.time.Duration
import java.util
import java.util.concurrent.{ExecutionException, TimeUnit}
import java.util.{Collections, Properties}

import org.apache.kafka.clients.admin.{Admin, AdminClientConfig, ListConsumerGroupOffsetsOptions,
  ListConsumerGroupOffsetsSpec}
import org.apache.kafka.clients.consumer.{ConsumerGroupMetadata, OffsetAndMetadata}
import org.apache.kafka.clients.producer.{Callback, KafkaProducer, Producer, ProducerConfig, ProducerRecord}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.{GroupIdNotFoundException, TimeoutException}
import org.apache.kafka.common.serialization.ByteArraySerializer

import org.apache.spark.sql.rejoin.run.References

/** The brokers that a sink's properties name. */
private[rejoin] object KafkaBrokers extends SinkBrokers {
  private val shared = new SharedProducers

  def connect(spec: SinkSpec, id: String): SinkConnection =
    if (spec.atOnce) shared.connect(spec)
    else {
      val own = settings(spec, id)
      val producer = new KafkaProducer[Array[Byte], Array[Byte]](own)
      new KafkaConnection(producer, own, producer.close(_))
    }

  def nanoTime: Long = System.nanoTime

  def settings(spec: SinkSpec, id: String): Properties = {
    val settings = new Properties
    settings.put(ProducerConfig.ACKS_CONFIG, "all")
    // in real-time mode a batch is a few records: compressing them costs more than sending them
    settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, if (spec.realTime) "none" else "lz4")
    settings.put(ProducerConfig.LINGER_MS_CONFIG, if (spec.atOnce) "0" else "20")
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

/** @param release
  *   closes the producer, or leaves it to the other writers that have it
  */
private[sink] final class KafkaConnection(
    producer: Producer[Array[Byte], Array[Byte]],
    settings: Properties,
    release: Duration => Unit)
    extends SinkConnection {
  val sizes: RecordSizes = new RecordSizes(settings)

  def initTransactions(): Unit = producer.initTransactions()
  def beginTransaction(): Unit = producer.beginTransaction()
  def send(record: ProducerRecord[Array[Byte], Array[Byte]], done: Callback): Unit = { producer.send(record, done); () }
  def sendOffset(group: String, place: TopicPartition, offset: OffsetAndMetadata): Unit =
    producer.sendOffsetsToTransaction(Collections.singletonMap(place, offset), new ConsumerGroupMetadata(group))
  def commitTransaction(): Unit = producer.commitTransaction()
  def abortTransaction(): Unit = producer.abortTransaction()
  def flush(): Unit = producer.flush()
  def close(timeout: Duration): Unit = release(timeout)
  def ledgers(): LedgerReader = new KafkaLedgers(Admin.create(KafkaBrokers.clientSettings(settings)))
  def partitionsOf(topic: String): Int = producer.partitionsFor(topic).size
}

private final class KafkaLedgers(admin: Admin) extends LedgerReader {
  /** None also where the offset may not be read: the writing of the ledger will say which right is missing. */
  def committed(group: String, place: TopicPartition, stable: Boolean): Option[OffsetAndMetadata] = {
    val deadline = System.nanoTime + KafkaLedgers.Timeout.toNanos
    var found = offsets(group, place, stable)
    while (!found.containsKey(place) && offsets(group, place, stable = false).containsKey(place)) {
      if (System.nanoTime > deadline) throw new TimeoutException(s"group '$group': the offset of $place is not stable")
      Thread.sleep(KafkaLedgers.PauseMs)
      found = offsets(group, place, stable)
    }
    Option(found.get(place))
  }

  /** Holds null where there is no offset, and nothing at all where it is not stable or may not be read. */
  private def offsets(
      group: String,
      place: TopicPartition,
      stable: Boolean): util.Map[TopicPartition, OffsetAndMetadata] = {
    val wanted = Collections.singletonMap(
      group,
      new ListConsumerGroupOffsetsSpec().topicPartitions(Collections.singletonList(place)))
    val offsets = admin.listConsumerGroupOffsets(wanted, new ListConsumerGroupOffsetsOptions().requireStable(stable))
    val committed = offsets.partitionsToOffsetAndMetadata(group)
    try committed.get(KafkaLedgers.Timeout.toSeconds, TimeUnit.SECONDS)
    catch {
      case e: ExecutionException if e.getCause.isInstanceOf[GroupIdNotFoundException] =>
        Collections.singletonMap(place, null)
    }
  }

  def close(): Unit = admin.close()
}

private object KafkaLedgers {
  private val Timeout = Duration.ofSeconds(60)
  private val PauseMs = 50L
}

package org.apache.spark.sql.rejoin.sink

import java.time.Duration

import scala.collection.mutable

import org.apache.kafka.clients.producer.KafkaProducer

/** The producers of real-time mode, one for all writers of a query: a request carries the records of all of them. */
private[sink] final class SharedProducers {
  private val taken = new mutable.HashMap[SinkSpec, SharedProducer]

  /** A connection through the query's producer, which is closed with the last of them. */
  def connect(spec: SinkSpec): SinkConnection = synchronized {
    val settings = KafkaBrokers.settings(spec, spec.writersId)
    val shared = taken.getOrElseUpdate(spec, new SharedProducer(new KafkaProducer(settings)))
    shared.writers += 1
    new KafkaConnection(shared.producer, settings, release(spec, shared, _))
  }

  /** A writer that has failed waits for nothing; no later one takes the producer that it had. */
  private def release(spec: SinkSpec, shared: SharedProducer, timeout: Duration): Unit = {
    val isLast = synchronized {
      shared.writers -= 1
      val isLast = shared.writers == 0
      if ((isLast || timeout.isZero) && taken.get(spec).contains(shared)) taken -= spec
      isLast
    }
    if (isLast) shared.producer.close(timeout)
  }
}

private final class SharedProducer(val producer: KafkaProducer[Array[Byte], Array[Byte]]) {
  var writers = 0
}

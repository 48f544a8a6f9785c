package org.apache.spark.sql.rejoin.sink

import org.apache.spark.TaskContext
import org.apache.spark.sql.ForeachWriter

import org.apache.spark.sql.rejoin.run.{Counters, JvmCounts, TaskOverflow}
import rejoin.core.results.Overflow

/** Writes the records of one task of a query's sink to Kafka, one transaction per epoch.
  *
  * `close` runs before Spark commits the epoch. If the driver dies in between, the next one repeats the
  * epoch, finds it in the [[EpochLedger]] and skips it. With the other guarantees there are no
  * transactions: `close` waits until the broker has all records, and a repeated epoch writes them again.
  * In real-time mode records leave as they come, and only the last ones are waited for.
  */
final class TransactionalWriter(spec: SinkSpec, counters: Counters) extends ForeachWriter[SinkRecord] {
  @transient private lazy val task = new EpochWriter(spec, counters, SinkProducers.ofThisJvm, isRetry, TaskOverflow())

  override def open(writer: Long, epoch: Long): Boolean = task.open(writer, epoch)
  override def process(record: SinkRecord): Unit = task.process(record)
  override def close(error: Throwable): Unit = task.close(error)

  private def isRetry: Boolean = {
    val running = TaskContext.get()
    running != null && (running.attemptNumber() > 0 || running.stageAttemptNumber() > 0)
  }
}

/** The same without Spark's interface, with the producers of one JVM.
  *
  * @param isRetry
  *   whether another task has begun to write the epoch, perhaps in another JVM
  * @param overflow
  *   where records wait that do not fit into memory
  */
private[rejoin] final class EpochWriter(
    spec: SinkSpec,
    counters: Counters,
    producers: SinkProducers,
    isRetry: Boolean,
    overflow: Overflow) {
  private var producer: SinkProducer = _
  private var waiting: WaitingRecords = _
  private var epoch: Long = _
  private var records: Long = _
  private val latencies = new Latencies

  def open(writer: Long, epoch: Long): Boolean = {
    this.epoch = epoch
    records = 0
    latencies.start(System.currentTimeMillis())
    waiting = if (spec.deletesFirst) new WaitingRecords(overflow) else null
    producer = if (isRetry) producers.replace(spec, writer) else producers.take(spec, writer, epoch)
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

  def process(record: SinkRecord): Unit =
    if (waiting == null || record.isRetraction || record.isDeadLetter) send(record) else waiting.add(record)

  def close(error: Throwable): Unit =
    if (producer != null) {
      if (error != null) discard()
      else
        try {
          if (waiting != null) waiting.iterator.foreach(send)
          producer.commit(epoch)
          counters.written(spec.name, records)
          if (spec.realTime) latencies.count(0L, counters.latency(spec.name, _, _, _))
          else latencies.commit(System.currentTimeMillis(), counters.latency(spec.name, _, _, _))
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
      producer.send(admitted, latencies)
      if (!admitted.isDeadLetter) {
        records += 1
        if (!spec.realTime) latencies.add(admitted.recordMs)
      }
    }
  }

  private def release(): Unit = {
    producers.giveBack(producer)
    producer = null
  }

  /** The next producer with the same id ends what a failed transaction has left open. */
  private def discard(): Unit = {
    if (spec.exactlyOnce) JvmCounts.add("aborts", spec.name)
    producer.discard()
    producer = null
  }
}

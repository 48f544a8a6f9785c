package org.apache.spark.sql.rejoin.sink

import org.apache.spark.TaskContext
import org.apache.spark.sql.ForeachWriter

import org.apache.spark.sql.rejoin.ingest.{Barriers, LiveEpochs}
import org.apache.spark.sql.rejoin.run.{Counters, JvmCounts, StepWriter, TaskOverflow, TaskSteps}
import rejoin.core.results.Overflow

/** Writes the records of one task of a query's sink to Kafka, one transaction per epoch.
  *
  * `close` runs before Spark commits the epoch. If the driver dies in between, the next one repeats the
  * epoch, finds it in the [[EpochLedger]] and skips it. With the other guarantees there are no
  * transactions: `close` waits until the broker has all records, and a repeated epoch writes them again.
  * In real-time mode records leave as they come, and only the last ones are waited for; with transactions, each step of
  * the epoch is one. A writer that repeats an epoch leaves out the steps that its ledger has.
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
    overflow: Overflow)
    extends StepWriter {
  private var producer: SinkProducer = _
  private var waiting: WaitingRecords = _
  private var writer: Long = _
  private var epoch: Long = _
  private var records: Long = _ // that are not counted yet, without dead letters
  private var uncommitted: Long = _ // records of the open transaction
  private var committed: Long = _ // the barrier up to which an earlier writer has committed this epoch
  private val latencies = new Latencies

  def open(writer: Long, epoch: Long): Boolean = {
    this.writer = writer
    this.epoch = epoch
    records = 0
    uncommitted = 0
    latencies.start(System.currentTimeMillis())
    waiting = if (spec.deletesFirst) new WaitingRecords(overflow) else null
    producer = if (isRetry) producers.replace(spec, writer) else producers.take(spec, writer, epoch)
    try {
      val admitted = producer.begin(epoch)
      if (spec.inSteps) beginSteps(admitted)
      if (!admitted) release()
      admitted || spec.inSteps
    } catch {
      case e: Throwable =>
        discard()
        throw e
    }
  }

  /** An epoch that is committed as a whole has no step that is to be written. */
  private def beginSteps(isOpen: Boolean): Unit = {
    committed = if (isOpen) producer.committedBarrier(epoch) else Barriers.Last
    TaskSteps.setWriter(this)
  }

  override def commit(barrier: Long): Unit = {
    if (uncommitted > 0) {
      producer.commitStep(epoch, barrier)
      report()
      uncommitted = 0
    }
    LiveEpochs.of(spec.folder).running.commit(writer, barrier)
  }

  def process(record: SinkRecord): Unit =
    if (spec.inSteps && TaskSteps.running <= committed) ()
    else if (waiting == null || record.isRetraction || record.isDeadLetter) send(record) else waiting.add(record)

  def close(error: Throwable): Unit = {
    TaskSteps.setWriter(null)
    if (producer != null) {
      if (error != null) discard()
      else
        try {
          if (waiting != null) waiting.iterator.foreach(send)
          producer.commit(epoch)
          report()
          if (spec.exactlyOnce) JvmCounts.add("commits", spec.name)
          release()
        } catch {
          case e: Throwable =>
            discard()
            throw e
        }
    }
  }

  /** Counts the records that Kafka has by now, and how old their newest record was. */
  private def report(): Unit = {
    counters.written(spec.name, records)
    records = 0
    if (spec.atOnce) latencies.count(0L, counters.latency(spec.name, _, _, _))
    else latencies.commit(System.currentTimeMillis(), counters.latency(spec.name, _, _, _))
  }

  private def send(record: SinkRecord): Unit = {
    val admitted = producer.admission(record, epoch, counters)
    if (admitted != null) {
      producer.send(admitted, latencies)
      uncommitted += 1
      if (!admitted.isDeadLetter) {
        records += 1
        if (!spec.atOnce) latencies.add(admitted.recordMs)
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

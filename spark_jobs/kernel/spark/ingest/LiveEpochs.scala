package org.apache.spark.sql.rejoin.ingest

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution

import rejoin.core.row.Envelope

/** The epochs of a query in real-time mode, and when they end.
  *
  * Its first epochs are short. Some thousand methods run once when an epoch ends and the next one begins, and the JVM
  * compiles a method only after it has run some dozen times. Without short epochs, results would wait for these methods
  * as long as in a JVM that has just started, for hours.
  *
  * Planning and tasks share this object: real-time mode runs in the driver's JVM only.
  */
private[rejoin] final class LiveEpochs(checkpoint: String) {
  private var planned = 0
  private var isPlanned = false
  private var hasClock = false
  @volatile private var current = LiveEpoch.until(Long.MaxValue)

  /** The running epoch has ended: Spark asks each source where it is before it plans any of them. */
  def end(): Unit = synchronized { isPlanned = false }

  /** The query has a clock, which reads no table; said before any epoch is planned. */
  def addClock(): Unit = synchronized { hasClock = true }

  /** A source of the next epoch is planned; all of them get the same epoch.
    *
    * @param shortOnes
    *   how many epochs of the query are short
    * @param table
    *   the source's name
    * @param partitions
    *   how many partitions of the source are read
    * @param barriersMs
    *   how long a step is; 0 if the epoch has no barriers
    */
  def plan(lengthMs: Long, shortOnes: Int, table: String, partitions: Int, barriersMs: Long): Unit = synchronized {
    if (!isPlanned) {
      isPlanned = true
      current =
        if (planned < shortOnes) LiveEpoch.short(current.endsAtMs, lengthMs)
        else LiveEpoch.until(System.currentTimeMillis() + lengthMs)
      planned += 1
    }
    current.reads(table, partitions)
    if (barriersMs > 0) current.hasBarriers(barriersMs, checkpoint, hasClock)
  }

  /** The epoch that was planned last. */
  def running: LiveEpoch = current
}

private[rejoin] object LiveEpochs {
  private val checkpoints = new ConcurrentHashMap[String, LiveEpochs]

  /** Those of a query's checkpoint since this JVM has started. A query that is restarted in it goes on with long
    * epochs. A job that is started later with another checkpoint has its own, also where its query has the same name.
    */
  def of(checkpoint: String): LiveEpochs = checkpoints.computeIfAbsent(checkpoint, new LiveEpochs(_))
}

/** An epoch that ends for all its readers at once.
  *
  * Spark plans one source after the other, and would let each of them read for as long after its own planning: the rows
  * of the first ones would wait for the others.
  */
private[rejoin] final class LiveEpoch private (endsAt: => Long) {

  /** In milliseconds since 1970. */
  lazy val endsAtMs: Long = endsAt

  @volatile private var partitions = Map.empty[String, Int] // by table
  private val looked = new AtomicInteger
  private var hasClock = false
  private var makeBarriers: Option[Long => Barriers] = None
  private lazy val barriers = makeBarriers.map(_(LiveEpoch.numberInTask))

  /** A table is read in this epoch; said before any reader begins. */
  def reads(table: String, n: Int): Unit = partitions += table -> n

  /** The epoch has barriers; said before any reader begins. */
  def hasBarriers(intervalMs: Long, checkpoint: String, hasClock: Boolean): Unit = {
    this.hasClock = hasClock
    makeBarriers = Some(epoch => new Barriers(intervalMs, BarrierLog.of(checkpoint, epoch)))
  }

  /** The steps of a table's reader, which runs in this task, if the epoch has barriers. */
  def stepsOf(table: String, reader: Int): Option[ReaderSteps] = {
    val number = partitions.toSeq.sorted.takeWhile(_._1 != table).map(_._2).sum + reader
    barriers.map(new ReaderSteps(_, LiveProgress.nameOf(table, reader), number, readers))
  }

  /** Those of the clock. */
  def clockSteps(): Option[ReaderSteps] = barriers.map(new ReaderSteps(_, "clock", Envelope.ClockReader, readers))

  /** A writer, which runs in this task, has committed the steps up to a barrier. */
  def commit(writer: Long, barrier: Long): Unit = barriers.foreach(_.commit(writer, barrier))

  private def readers: Int = partitions.values.sum + (if (hasClock) 1 else 0)

  /** A reader has looked for a record once, whether there was one or not. */
  def hasLooked(): Unit = looked.incrementAndGet()

  /** Whether all partitions are being read: on a busy machine it takes seconds until the last reader begins. */
  def isRead: Boolean = looked.get >= partitions.values.sum
}

private[rejoin] object LiveEpoch {
  def until(endsAtMs: Long): LiveEpoch = new LiveEpoch(endsAtMs)

  /** Begins when its first reader asks for its end, and is as long as results have waited for it: a tenth of a second
    * at least, and more on a busy machine, where otherwise more records would come than such epochs read.
    */
  def short(endedMs: Long, atMostMs: Long): LiveEpoch = {
    def endsAtMs(nowMs: Long) = nowMs + math.max(LeastMs, math.min(nowMs - endedMs, atMostMs))
    new LiveEpoch(endsAtMs(System.currentTimeMillis()))
  }

  /** The number of the epoch, as Spark's tasks know it. */
  private def numberInTask: Long = TaskContext.get().getLocalProperty(MicroBatchExecution.BATCH_ID_KEY).toLong

  private final val LeastMs = 100L
}

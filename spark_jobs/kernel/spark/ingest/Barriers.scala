package org.apache.spark.sql.rejoin.ingest

import scala.collection.mutable

/** The barriers of one epoch of real-time mode, which divide its rows into steps. The results of a step are committed
  * together.
  *
  * A step ends for all readers at the same time: some time after the first of them has read a row of it, but not before
  * all writers have committed the one before it. While no rows come there is no barrier.
  *
  * @param log
  *   what is noted of them
  */
private[rejoin] final class Barriers(intervalMs: Long, val log: BarrierLog) {
  @volatile private var newest = (-1L, 0L) // the newest step that has begun, and when it ends

  private val committed = new mutable.HashMap[Long, Long] // by writer
  @volatile private var slowest = -1L // the barrier up to which all writers have committed

  /** A reader has read a row of a step. */
  def begin(step: Long, nowMs: Long): Unit =
    if (newest._1 < step) synchronized {
      if (newest._1 < step) newest = (step, nowMs + intervalMs)
    }

  /** When a step ends, in milliseconds since 1970: at once if another reader is in a later one already. */
  def endOf(step: Long): Long = {
    val (begun, endMs) = newest
    if (begun > step) 0L
    else if (begun < step || step > slowest + 1) Long.MaxValue
    else endMs
  }

  /** A writer has committed the steps up to a barrier. */
  def commit(writer: Long, barrier: Long): Unit = synchronized {
    committed(writer) = barrier
    slowest = committed.valuesIterator.min
  }
}

private[rejoin] object Barriers {

  /** The barrier at the end of an epoch. */
  final val Last = Long.MaxValue
}

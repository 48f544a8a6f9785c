package org.apache.spark.sql.rejoin.ingest

/** The barriers of one epoch of real-time mode, which divide its rows into steps. The results of a step are committed
  * together.
  *
  * A step ends for all readers at the same time, some time after the first of them has read a row of it. While no rows
  * come there is no barrier.
  *
  * @param log
  *   what is noted of them
  */
private[rejoin] final class Barriers(intervalMs: Long, val log: BarrierLog) {
  @volatile private var newest = (-1L, 0L) // the newest step that has begun, and when it ends

  /** A reader has read a row of a step. */
  def begin(step: Long, nowMs: Long): Unit =
    if (newest._1 < step) synchronized {
      if (newest._1 < step) newest = (step, nowMs + intervalMs)
    }

  /** When a step ends, in milliseconds since 1970: at once if another reader is in a later one already. */
  def endOf(step: Long): Long = {
    val (begun, endMs) = newest
    if (begun > step) 0L else if (begun == step) endMs else Long.MaxValue
  }
}

private[rejoin] object Barriers {

  /** The barrier at the end of an epoch. */
  final val Last = Long.MaxValue
}

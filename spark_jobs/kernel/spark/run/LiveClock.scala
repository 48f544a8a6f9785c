package org.apache.spark.sql.rejoin.run

import java.lang

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}

import org.apache.spark.sql.rejoin.ingest.{EnvelopeRow, Gate, LiveEpoch}
import rejoin.core.row.Envelope

/** What the clock shows during one epoch of real-time mode; `start` is where it stood before, `begun` what is true now.
  *
  * Partitions that are added to a topic are read, and so counted, from the next epoch on.
  *
  * @param isStart
  *   whether the query has just been started
  */
private[run] final case class LiveClockPartition(
    start: String,
    begun: String,
    groups: Int,
    tickMs: Long,
    loading: Map[Int, Set[Int]],
    isStart: Boolean)
    extends InputPartition

/** The [[ClockOffset]] at which an epoch has ended. */
private[run] final case class LiveClockOffset(json: String) extends PartitionOffset

/** The clock's marks: at once, as rows wait for the first of them in each epoch, then at each tick, and at the end.
  *
  * It also says when nothing was read, so that partitions do not become idle by that: from the end of the epoch before
  * to the first mark, and from there until every reader has looked for a record. Ticks wait for the slowest reader.
  */
private[run] final class LiveClock(clock: LiveClockPartition, epoch: LiveEpoch)
    extends SupportsRealTimeRead[InternalRow] {
  private val toUnsafe = UnsafeProjection.create(EnvelopeRow.schema)
  private val begun = ClockOffset.read(clock.begun)
  private var at = ClockOffset.read(clock.start)
  private var due = resume(System.currentTimeMillis(), clock.isStart)
  private var isRead = false
  private var row: InternalRow = _

  override def nextWithTimeout(startMs: lang.Long, timeoutMs: lang.Long): RecordStatus = {
    val deadline = math.min(startMs + timeoutMs, epoch.endsAtMs)
    while (!due.hasNext && !Gate.isClosed && System.currentTimeMillis() < deadline) {
      val now = System.currentTimeMillis()
      if (!isRead && epoch.isRead) {
        isRead = true
        if (clock.tickMs > 0) due = resume(now, clock.isStart)
      } else if (isRead && clock.tickMs > 0 && now - at.timeMs >= clock.tickMs) due = show(now)
      else Thread.sleep(math.max(math.min(LiveClock.PauseMs, deadline - now), 1L))
    }
    if (!due.hasNext) showEnd(deadline)
    val hasMark = due.hasNext
    if (hasMark) row = toUnsafe(EnvelopeRow(due.next()))
    RecordStatus.newStatusWithoutArrivalTime(hasMark)
  }

  /** The last mark, once: an epoch that is shorter than a tick counts as time in which partitions were silent, too. */
  private def showEnd(deadline: Long): Unit = {
    val endMs = math.min(System.currentTimeMillis(), deadline)
    if (isRead && clock.tickMs > 0 && endMs > at.timeMs) due = show(endMs)
    isRead = false
  }

  private def resume(nowMs: Long, isStart: Boolean): Iterator[Envelope] = {
    val marks = show(nowMs)
    Iterator.range(0, clock.groups).map(Envelope.resumed(_, nowMs, isStart)) ++ marks
  }

  /** No time comes again where the machine's clock jumps back. */
  private def show(nowMs: Long): Iterator[Envelope] = {
    val before = at
    at = begun.copy(timeMs = math.max(nowMs, before.timeMs))
    Clock.marks(before, at, clock.groups, clock.loading)
  }

  override def getOffset: PartitionOffset = LiveClockOffset(at.json())
  override def next(): Boolean = throw new UnsupportedOperationException("only in real-time mode")
  override def get(): InternalRow = row
  override def close(): Unit = ()
}

private object LiveClock {
  private final val PauseMs = 10L
}

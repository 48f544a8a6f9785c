package org.apache.spark.sql.rejoin.run

import java.lang

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}

import org.apache.spark.sql.rejoin.ingest.{EnvelopeRow, Gate, LiveEpoch, ReaderSteps}
import rejoin.core.row.{Envelope, RowKind}

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
  *
  * With `steps` it is one of the readers: it notes what it has shown in a step, shows the same where the step is
  * repeated, and sends barriers.
  */
private[run] final class LiveClock(clock: LiveClockPartition, epoch: LiveEpoch, steps: Option[ReaderSteps])
    extends SupportsRealTimeRead[InternalRow] {
  private val toUnsafe = UnsafeProjection.create(EnvelopeRow.schema)
  private val partitions = ClockOffset.read(clock.begun).partitions
  private val shown = new ArrayBuffer[ClockNote] // in the running step
  private var at = ClockOffset.read(clock.start)
  private var due: Iterator[Envelope] = Iterator.empty
  private var hasBegun = false
  private var isRead = false
  private var row: InternalRow = _

  override def nextWithTimeout(startMs: lang.Long, timeoutMs: lang.Long): RecordStatus = {
    val deadline = math.min(startMs + timeoutMs, epoch.endsAtMs)
    var waits = true
    while (!due.hasNext && waits) {
      val now = System.currentTimeMillis()
      if (steps.exists(_.isRepeating)) due = repeatStep()
      else if (steps.exists(_.isOver)) waits = false
      else if (!hasBegun) {
        hasBegun = true
        due = resume(now)
      } else if (now >= deadline || Gate.isClosed) {
        due = end(math.min(now, deadline))
        waits = false
      } else {
        due = next(now)
        if (!due.hasNext) Thread.sleep(pauseMs(now, deadline))
      }
    }
    val hasMark = due.hasNext
    if (hasMark) row = toUnsafe(EnvelopeRow(due.next()))
    RecordStatus.newStatusWithoutArrivalTime(hasMark)
  }

  /** What is due while the epoch runs. */
  private def next(nowMs: Long): Iterator[Envelope] =
    if (steps.exists(_.endsAtMs <= nowMs)) endStep(isLast = false)
    else if (!isRead && epoch.isRead) {
      isRead = true
      if (clock.tickMs > 0) resume(nowMs) else Iterator.empty
    } else if (isRead && clock.tickMs > 0 && nowMs - at.timeMs >= clock.tickMs) tick(nowMs)
    else Iterator.empty

  private def pauseMs(nowMs: Long, deadline: Long): Long = {
    val ends = steps.fold(deadline)(step => math.min(step.endsAtMs, deadline))
    math.max(math.min(LiveClock.PauseMs, ends - nowMs), 1L)
  }

  /** The last mark and barrier, once: an epoch that is shorter than a tick counts as time in which partitions were
    * silent, too.
    */
  private def end(endMs: Long): Iterator[Envelope] = {
    val last = if (isRead && clock.tickMs > 0 && endMs > at.timeMs) tick(endMs) else Iterator.empty
    isRead = false
    last ++ (if (steps.isDefined) endStep(isLast = true) else Iterator.empty)
  }

  private def resume(nowMs: Long): Iterator[Envelope] =
    show(if (clock.isStart) ClockNote.Started else ClockNote.Resumed, nowMs)

  private def tick(nowMs: Long): Iterator[Envelope] = show(ClockNote.Tick, nowMs)

  /** No time comes again where the machine's clock jumps back. */
  private def show(kind: String, nowMs: Long): Iterator[Envelope] = {
    val note = ClockNote(kind, math.max(nowMs, at.timeMs), partitions)
    steps.foreach(_.began(nowMs))
    shown += note
    marksOf(note)
  }

  private def marksOf(note: ClockNote): Iterator[Envelope] = {
    val before = at
    at = ClockOffset(note.timeMs, note.partitions, ended = false)
    val resumed = Iterator.range(0, clock.groups).map(Envelope.resumed(_, at.timeMs, note.kind == ClockNote.Started))
    val step = steps.fold(0L)(_.running)
    val marks = Clock.marks(before, at, clock.groups, clock.loading).map { mark =>
      if (mark.kind == RowKind.Loaded) mark.copy(seq = step) else mark
    }
    (if (note.kind == ClockNote.Tick) Iterator.empty else resumed) ++ marks
  }

  private def repeatStep(): Iterator[Envelope] = {
    val marks = ClockNote.read(steps.get.ownNote.getOrElse("")).flatMap(marksOf)
    marks.iterator ++ endStep(isLast = false)
  }

  private def endStep(isLast: Boolean): Iterator[Envelope] = {
    val own = steps.get
    val barrier = own.end(ClockNote.text(shown), isLast)
    shown.clear()
    Iterator.range(0, clock.groups).map(Envelope.barrier(_, 0, own.number, own.readers, barrier))
  }

  override def getOffset: PartitionOffset = LiveClockOffset(at.json())
  override def next(): Boolean = throw new UnsupportedOperationException("only in real-time mode")
  override def get(): InternalRow = row
  override def close(): Unit = steps.foreach(_.close())
}

private object LiveClock {
  private final val PauseMs = 10L
}

/** What the clock has shown at once: a tick, or that nothing was read before it.
  *
  * @param partitions
  *   as in a [[ClockOffset]]
  */
private final case class ClockNote(kind: String, timeMs: Long, partitions: Map[Int, Int])

private object ClockNote {
  final val Tick = "tick"
  final val Resumed = "resumed"
  final val Started = "started"

  /** `KIND TIME TOPIC=COUNT,...` of each, separated by semicolons. */
  def text(notes: Iterable[ClockNote]): String = notes.map { note =>
    val counts = note.partitions.toSeq.sorted.map { case (topic, count) => s"$topic=$count" }
    s"${note.kind} ${note.timeMs} ${counts.mkString(",")}"
  }.mkString(";")

  def read(text: String): Seq[ClockNote] = parts(text, ';').map { note =>
    val said = note.split(" ", 3)
    val partitions = parts(said(2), ',').map(_.split('=')).map(count => count(0).toInt -> count(1).toInt)
    ClockNote(said(0), said(1).toLong, partitions.toMap)
  }

  private def parts(text: String, separator: Char): Seq[String] = text.split(separator).toSeq.filter(_.nonEmpty)
}

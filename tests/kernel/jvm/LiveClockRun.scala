package org.apache.spark.sql.rejoin.run

import java.nio.file.Path
import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.rejoin.ingest.{BarrierLog, Barriers, EnvelopeRow, LiveEpoch, ReaderSteps}
import rejoin.core.row.RowKind

/** The clock of an epoch with barriers, beside one reader of a table. It begins anew with each object. Each step is
  * committed at once.
  *
  * @param partitions
  *   how many the only topic has, whose initial content is waited for in partition 0
  */
final class LiveClockRun(everyMs: Long, tickMs: Long, groups: Int, partitions: Int, endsInMs: Long, folder: String) {
  private val epoch = LiveEpoch.until(System.currentTimeMillis() + endsInMs)
  epoch.reads("t", 1)
  private val barriers = new Barriers(everyMs, new BarrierLog(Path.of(folder)))
  private val reader = new ReaderSteps(barriers, "t@0", 0, 2)
  private val stands = ClockOffset(100L, Map(0 -> 1), ended = false)
  private val clock = new LiveClock(
    LiveClockPartition(
      stands.json(),
      stands.copy(partitions = Map(0 -> partitions)).json(),
      groups,
      tickMs,
      Map(0 -> Set(0)),
      isStart = true),
    epoch,
    Some(new ReaderSteps(barriers, "clock", -1, 2)))

  /** Kind, group, time, source and number of the next mark; null if there is none in this time. */
  def next(withinMs: Long): Array[Long] =
    if (!clock.nextWithTimeout(System.currentTimeMillis(), withinMs).hasRecord) null
    else {
      val mark = EnvelopeRow.read(clock.get())
      if (mark.kind == RowKind.Barrier) barriers.commit(0, mark.seq)
      Array(mark.kind.toLong, mark.group.toLong, mark.time, mark.source.toLong, mark.seq)
    }

  /** The reader of the table has read a record. */
  def read(): Unit = reader.began(System.currentTimeMillis())

  /** The reader ends a step as well. */
  def endStep(isLast: Boolean): Long = reader.end("", isLast)

  /** The reader has looked for a record. */
  def looked(): Unit = epoch.hasLooked()

  /** Time and partition counts that the next epoch begins with. */
  def close(): util.Map[String, String] = {
    val end = ClockOffset.read(clock.getOffset.asInstanceOf[LiveClockOffset].json)
    clock.close()
    reader.close()
    Map("time" -> end.timeMs.toString, "partitions" -> end.partitions.mkString(",")).asJava
  }
}

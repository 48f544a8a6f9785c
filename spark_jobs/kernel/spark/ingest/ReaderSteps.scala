package org.apache.spark.sql.rejoin.ingest

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.kafka.common.TopicPartition

/** The steps of the reader of some partitions, and the barriers behind them.
  *
  * Where an epoch is repeated its first steps end at the offsets that were noted before; the others end when
  * [[Barriers]] says so.
  *
  * @param reader
  *   its number among the readers of the table
  * @param number
  *   its number among all readers of the epoch
  * @param readers
  *   how many those are
  */
private[ingest] final class ReaderSteps(
    barriers: Barriers,
    table: String,
    reader: Int,
    val number: Int,
    val readers: Int)
    extends AutoCloseable {
  import ReaderSteps._

  private val notes = barriers.log.open(nameOf(table, reader), readers)
  private var repeated = barriers.log.noted.map { case (barrier, texts) => barrier -> offsetsOf(table, texts) }.toList
  private var step = 0L

  /** Where the running step ends, if it was noted before. */
  def ends: Option[Map[TopicPartition, Long]] = repeated.headOption.map(_._2)

  /** Whether the running step was noted before. */
  def isRepeating: Boolean = repeated.nonEmpty

  /** A row of the running step is read. */
  def began(nowMs: Long): Unit = if (!isRepeating) barriers.begin(step, nowMs)

  /** When the running step ends; it is not one that was noted before. */
  def endsAtMs: Long = barriers.endOf(step)

  /** Whether no further step comes in this epoch. */
  def isOver: Boolean = step == Barriers.Last

  /** Ends the running step, which is the last one if the epoch ends; returns its barrier. */
  def end(offsets: => Seq[(TopicPartition, Long)], isLast: Boolean): Long = {
    val barrier = repeated.headOption.fold(if (isLast) Barriers.Last else step)(_._1)
    if (isRepeating) repeated = repeated.tail else notes.add(barrier, textOf(offsets))
    step = if (barrier == Barriers.Last) barrier else barrier + 1
    barrier
  }

  override def close(): Unit = notes.close()
}

private object ReaderSteps {
  def textOf(offsets: Seq[(TopicPartition, Long)]): String =
    offsets.map { case (at, next) => s"${at.topic}:${at.partition}:$next" }.mkString(" ")

  /** Where all readers of the table stood: a partition may have been read by another one. */
  def offsetsOf(table: String, texts: Map[String, String]): Map[TopicPartition, Long] =
    (for {
      (reader, text) <- texts.toSeq if reader.startsWith(nameOf(table))
      at <- text.split(' ')
    } yield {
      val parts = at.split(':')
      new TopicPartition(parts(0), parts(1).toInt) -> parts(2).toLong
    }).toMap

  def nameOf(table: String, reader: Int): String = s"${nameOf(table)}$reader"

  /** A file's name; no other table's begins with it. */
  private def nameOf(table: String): String = s"${URLEncoder.encode(table, UTF_8)}:"
}

package org.apache.spark.sql.rejoin.ingest

/** The steps of one reader, and the barriers behind them.
  *
  * Where an epoch is repeated its first steps are those that were noted before; the others end when [[Barriers]] says
  * so.
  *
  * @param name
  *   of its notes
  * @param number
  *   its number among the readers of the epoch
  * @param readers
  *   how many those are
  */
private[rejoin] final class ReaderSteps(barriers: Barriers, name: String, val number: Int, val readers: Int)
    extends AutoCloseable {
  private val notes = barriers.log.open(name, readers)
  private var repeated = barriers.log.noted.toList
  private var step = 0L

  /** What all readers have noted of the running step, by their names, if it was noted before. */
  def noted: Option[Map[String, String]] = repeated.headOption.map(_._2)

  /** What this one has noted of the running step; None if its epoch had ended in front of it. */
  def ownNote: Option[String] = noted.flatMap(_.get(name))

  /** Whether the running step was noted before. */
  def isRepeating: Boolean = repeated.nonEmpty

  /** The number of the running step. */
  def running: Long = step

  /** A row of the running step is read. */
  def began(nowMs: Long): Unit = if (!isRepeating) barriers.begin(step, nowMs)

  /** When the running step ends; it is not one that was noted before. */
  def endsAtMs: Long = barriers.endOf(step)

  /** Whether no further step comes in this epoch. */
  def isOver: Boolean = step == Barriers.Last

  /** Ends the running step, which is the last one if the epoch ends; returns its barrier.
    *
    * @param text
    *   what is to be noted of it
    */
  def end(text: => String, isLast: Boolean): Long = {
    val barrier = repeated.headOption.fold(if (isLast) Barriers.Last else step)(_._1)
    if (isRepeating) repeated = repeated.tail else notes.add(barrier, text)
    step = if (barrier == Barriers.Last) barrier else barrier + 1
    barrier
  }

  override def close(): Unit = notes.close()
}

package rejoin.core.machine

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Envelope, RowKind}

/** The key groups of one task of real-time mode with transactions: their rows wait for the barrier behind their step.
  *
  * A step is complete in a group once every reader has sent its barrier, or a later one. Then its rows are run as one
  * batch, as those of an epoch are in micro-batches. So what a step gives depends on its rows alone, and not on which
  * of them came first.
  *
  * @param groupsOfTask
  *   how many groups the task has; asked when the first barrier comes
  */
final class SteppedGroups(groupsOfTask: => Int) {
  import SteppedGroups._

  private lazy val count = groupsOfTask

  private val groups = new mutable.HashMap[Int, Group]
  private val complete = new mutable.HashMap[Long, Int] // by barrier, in how many groups

  /** Adds a row, a mark or a barrier of a group.
    *
    * @param run
    *   is given the rows and marks of each step that it completes, and the step's number
    * @return
    *   the barrier up to which all groups are complete by it
    */
  def add(key: Int, envelope: Envelope)(run: (Long, Iterable[Envelope]) => Unit): Option[Long] = {
    val group = groups.getOrElseUpdate(key, new Group)
    if (envelope.kind != RowKind.Barrier) {
      if (envelope.kind != RowKind.EpochEnd) group.add(envelope)
      None
    } else group.end(envelope).flatMap { barrier =>
      if (envelope.group == 0) group.takeStart().foreach(run(_, Nil))
      val steps = group.takeUpTo(barrier)
      steps.foreach { case (step, rows) => run(step, rows) }
      val n = complete.getOrElse(barrier, 0) + 1
      if (n < count) complete(barrier) = n else complete -= barrier
      Option.when(n == count)(barrier)
    }
  }

  /** Whether rows wait for a barrier that has not come. */
  def isWaiting: Boolean = groups.valuesIterator.exists(_.isWaiting)
}

private object SteppedGroups {
  private final class Group {
    private val steps = mutable.TreeMap.empty[Long, ArrayBuffer[Envelope]]
    private val ended = new mutable.HashMap[Int, Long] // by reader, its last barrier
    private var done = -1L
    private var hasStarted = false

    def isWaiting: Boolean = steps.nonEmpty

    def add(envelope: Envelope): Unit = steps.getOrElseUpdate(stepOf(envelope), new ArrayBuffer) += envelope

    /** A reader's barrier; returns the barrier up to which the group is complete if it moves. */
    def end(barrier: Envelope): Option[Long] = {
      ended(barrier.source) = barrier.seq
      val upTo = if (ended.size < barrier.time) -1L else ended.valuesIterator.min
      val moves = upTo > done
      if (moves) done = upTo
      Option.when(moves)(upTo)
    }

    /** The first step, once and if it has no rows: what no row brings (Machine.begin) is part of it, whichever barrier
      * comes first.
      */
    def takeStart(): Option[Long] = {
      val isDue = !hasStarted && !steps.contains(0L)
      hasStarted = true
      Option.when(isDue)(0L)
    }

    def takeUpTo(barrier: Long): Iterator[(Long, Iterable[Envelope])] =
      Iterator.continually(steps.headOption.filter(_._1 <= barrier)).takeWhile(_.isDefined).flatten.map {
        case (step, rows) =>
          steps -= step
          step -> rows
      }

    private def stepOf(envelope: Envelope): Long = envelope.kind match {
      case RowKind.Clock | RowKind.Resumed | RowKind.End => ended.getOrElse(Envelope.ClockReader, -1L) + 1
      case kind => if (RowKind.isMark(kind)) envelope.seq else envelope.time
    }
  }
}

package rejoin.core.machine.join

import rejoin.core.row.{KeptRow, KeyContents}
import rejoin.core.state.{IntervalRows, KeyedState, StateCell}
import rejoin.core.time.VisitIndex

/** What an interval join keeps under the join key in hand: the rows of both sides, and when it visits the key next.
  *
  * {{{
  * cell 'I' + join key : version, time of the next visit, left rows, right rows
  * cells 'L' / 'R'     : further pages of left / right rows
  * }}}
  */
final class IntervalCells(isOuter: Array[Boolean]) {
  import IntervalCells._

  val sides: Array[IntervalRows] = Array(new IntervalRows('L'), new IntervalRows('R'))
  private val header = new StateCell(Tag)
  private var visitAt = NoVisit

  def isEmpty: Boolean = sides(0).isEmpty && sides(1).isEmpty

  def load(key: Array[Byte], state: KeyedState): Unit = {
    sides.foreach(_.reset(key, state))
    visitAt = NoVisit
    val in = header.open(key, state)
    if (in != null) {
      visitAt = in.signed()
      sides.foreach(_.read(in))
    }
  }

  def save(state: KeyedState): Unit = {
    val out = header.write().signed(visitAt)
    sides.foreach(_.write(out))
    header.save(state, isEmpty = isEmpty)
  }

  /** Forgets the visit that is registered if it is due by `now`: this batch makes it. */
  def forgetVisit(now: Long): Unit = if (visitAt <= now) visitAt = NoVisit

  /** Registers a visit at the time, unless there is one that comes as early. */
  def register(wanted: Long, now: Long, key: Array[Byte], index: VisitIndex): Unit = {
    val visitTime = index.visitTime(wanted, now)
    if (visitTime < visitAt) {
      visitAt = visitTime
      index.register(wanted, now, key)
    }
  }

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(sides.toSeq.map(_.size), hasTimes = true) {
      def foreach(visit: KeptRow => Unit): Unit =
        sides.indices.foreach(side => sides(side).show(side, isOuter(side))(visit))
    }
  }
}

object IntervalCells {
  final val Tag = 'I'
  private val NoVisit = Long.MaxValue
}

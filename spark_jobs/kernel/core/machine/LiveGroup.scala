package rejoin.core.machine

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Envelope, GroupBatch, Output, RowKind, Unhealed}
import rejoin.core.state.KeyedState
import rejoin.core.time.{GroupState, Timing}

/** A key group during one epoch of real-time mode, in which its rows and marks come one by one.
  *
  * Each of them is a batch of its own. The group's cell is read once. After a watermark alone it is not written: marks
  * come to every group many times a second, and state counts only once the epoch is committed. Whoever sends
  * watermarks ends with an [[RowKind.EpochEnd]], upon which the cell is written.
  *
  * Where time is the clock's, rows wait for its first mark in the epoch: the time in state is that of the epoch before,
  * which may have ended hours ago. In front of it the clock says that nothing was read since then
  * ([[RowKind.Resumed]]), so that no partition counts as idle for that.
  */
final class LiveGroup(machine: Machine, timing: Timing, groupId: Int, state: KeyedState) {
  private val group = GroupState.load(state)
  private var waiting: ArrayBuffer[Envelope] = if (timing.usesClock) new ArrayBuffer[Envelope] else null
  private var resumed: Envelope = _ // until the clock's next mark, which it belongs to

  /** Applies one row or mark.
    *
    * @param out
    *   makes the output of the batch that consists of it
    * @param count
    *   is given the partial rows of each batch whose missing values are not known
    */
  def add(envelope: Envelope, out: GroupBatch => Output, count: Iterable[Unhealed] => Unit): Unit =
    if (envelope.kind == RowKind.Resumed) resumed = envelope
    else if (waiting == null) run(envelope, out, count)
    else if (envelope.kind != RowKind.Clock) waiting += envelope
    else {
      val rows = waiting
      waiting = null
      run(envelope, out, count)
      rows.foreach(run(_, out, count))
    }

  /** Whether rows wait for a mark of the clock that has not come in this epoch. */
  def isWaiting: Boolean = waiting != null && waiting.nonEmpty

  /** What the group knows besides its rows. */
  def known: GroupState = group

  private def run(envelope: Envelope, out: GroupBatch => Output, count: Iterable[Unhealed] => Unit): Unit = {
    val batch = new GroupBatch
    if (resumed != null && envelope.kind == RowKind.Clock) {
      batch.add(resumed)
      resumed = null
    }
    batch.add(envelope)
    group.unhealed.clear()
    Machine.step(machine, timing, groupId, group, batch, state, out(batch))
    count(group.unhealed)
    if (envelope.kind != RowKind.Watermark || group.hasUnwritten) group.save(state)
  }
}

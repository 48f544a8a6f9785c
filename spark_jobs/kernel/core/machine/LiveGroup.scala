package rejoin.core.machine

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Envelope, GroupBatch, Output, RowKind, Unhealed}
import rejoin.core.state.{BatchCells, KeyedState}
import rejoin.core.time.{GroupState, Timing}

/** A key group during one epoch of real-time mode, in which its rows and marks come one by one.
  *
  * Each of them is a batch of its own. State counts only once the epoch is committed, so the group's cell is read once,
  * and what rows change is written when the epoch ends: each cell once, however many rows have changed it. Every task
  * of the ingest ends with an [[RowKind.EpochEnd]] for every group. From the first of them on, each row is written at
  * once, as no mark says which row is the last.
  *
  * Where time is the clock's, rows wait for its first mark in the epoch: the time in state is that of the epoch before,
  * which may have ended hours ago. In front of it the clock says that nothing was read since then
  * ([[RowKind.Resumed]]), so that no partition counts as idle for that.
  *
  * @param hearsEnd
  *   whether all rows come from the ingest; other operators send no [[RowKind.EpochEnd]], and their rows are written at
  *   once
  */
final class LiveGroup(machine: Machine, timing: Timing, groupId: Int, stored: KeyedState, hearsEnd: Boolean) {
  private val group = GroupState.load(stored)
  private var held = if (hearsEnd) new BatchCells(stored, mostBytes = LiveGroup.HeldBytes) else null
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

  /** Whether changes of state wait for an end of the epoch that has not come. */
  def isHolding: Boolean = held != null

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
    val state = if (held == null) stored else held
    Machine.step(machine, timing, groupId, group, batch, state, out(batch))
    count(group.unhealed)
    if (isDue(envelope.kind)) group.save(state)
    if (held != null && envelope.kind == RowKind.EpochEnd) {
      held.store()
      held = null
    }
  }

  /** Whether the group's cell is written after such a row or mark: watermarks come many times a second. */
  private def isDue(kind: Byte): Boolean =
    group.hasUnwritten || kind == RowKind.EpochEnd || (held == null && kind != RowKind.Watermark)
}

private object LiveGroup {

  /** Of the changes of one key group: 32 MB for the 128 groups of an operator. */
  final val HeldBytes = 256L << 10
}

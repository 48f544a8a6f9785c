package rejoin.core.time

import rejoin.core.row.{CellReader, CellWriter}
import rejoin.core.state.KeyedState

/** Flink's idle state retention for the temporal joins' state of one key at a time, in processing time.
  *
  * A key whose rows are used at `now` lives until `now` + 1.5 x the TTL, and is prolonged only once
  * less than one TTL of that is left. Expired state is removed at its key's next visit, at the latest at the
  * one that stands in the due index. Rules: docs/semantics.md, "Idle state retention".
  */
final class IdleRetention(timing: Timing) {
  import IdleRetention._

  private val minMs = math.min(timing.ttlMs.max, LongestMs)
  private val maxMs = minMs + minMs / 2
  private var deadline = Never
  private var slot = Never

  def isEnabled: Boolean = minMs > 0

  /** Forgets the key's deadline: nothing is stored that could expire. */
  def reset(): Unit = {
    deadline = Never
    slot = Never
  }

  /** Keys to visit because their slot is over. */
  def take(group: GroupState, state: KeyedState): Iterator[Array[Byte]] =
    if (isEnabled) group.expiries.take(lastTaken(group), state) else Iterator.empty

  /** Notes that the key's state is used.
    *
    * @param start
    *   when idle time starts to count at the earliest; Long.MaxValue: not yet
    */
  def refresh(group: GroupState, start: Long = Long.MinValue): Unit =
    if (isEnabled && group.now != Long.MinValue && (deadline == Never || group.now + minMs > deadlineFrom(start)))
      deadline = group.now + maxMs

  def isOver(group: GroupState, start: Long = Long.MinValue): Boolean =
    deadline != Never && group.now >= deadlineFrom(start)

  /** Puts the key into the due index for a visit after the deadline, unless it stands there already. */
  def register(key: Array[Byte], group: GroupState, start: Long = Long.MinValue): Unit = {
    if (slot <= lastTaken(group)) slot = Never
    if (deadline != Never && slot == Never) {
      val wanted = deadlineFrom(start)
      slot = DueIndex.slotOf(math.max(if (wanted == Never) group.now + maxMs else wanted, group.now))
      group.expiries.register(slot, key)
    }
  }

  def read(in: CellReader): Unit =
    if (in.byte() == 1) {
      deadline = in.signed()
      slot = in.signed()
    } else reset()

  def write(out: CellWriter): Unit =
    if (deadline == Never) out.byte(0) else out.byte(1).signed(deadline).signed(slot)

  private def deadlineFrom(start: Long): Long =
    if (start == Long.MinValue) deadline else if (start == Long.MaxValue) Never else math.max(deadline, start + maxMs)

  private def lastTaken(group: GroupState): Long = DueIndex.slotOf(group.now) - 1
}

object IdleRetention {
  private final val Never = Long.MaxValue
  private final val LongestMs = Long.MaxValue / 4
}

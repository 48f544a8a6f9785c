package rejoin.core.time

import rejoin.core.row.{CellReader, CellWriter}

/** The slot of [[GroupState.due]] in which the key in hand stands; part of the key's header cell. */
final class DueSlot {
  import DueSlot._

  private var slot = NoSlot

  def reset(): Unit = slot = NoSlot

  def read(in: CellReader): Unit = slot = in.signed()

  def write(out: CellWriter): Unit = out.signed(slot)

  /** Forgets the slot if [[GroupState.takeDue]] has taken it out of the index in this batch. */
  def forgetTaken(group: GroupState): Unit =
    if (group.isAdvanced && slot <= DueIndex.slotOf(group.watermarks.current)) slot = NoSlot

  /** Registers a visit for when the watermark reaches the time, unless one comes earlier. */
  def register(time: Long, key: Array[Byte], group: GroupState): Unit =
    if (DueIndex.slotOf(time) < slot) {
      slot = DueIndex.slotOf(time)
      group.due.register(slot, key)
    }
}

private object DueSlot {
  private final val NoSlot = Long.MaxValue
}

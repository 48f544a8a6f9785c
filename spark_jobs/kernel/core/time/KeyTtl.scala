package rejoin.core.time

import rejoin.core.row.{Bytes, CellReader, CellWriter, Envelope}
import rejoin.core.state.KeyedState

/** State TTL of operators that keep one header cell per key, which holds two numbers for it: when the key was
  * last written, and the clock slot in which it is visited next.
  *
  * A key written at t with TTL d is gone at t + d. A visit in any other slot was registered before the key was
  * removed and written anew; it finds nothing to do.
  */
final class KeyTtl(ttlMs: Long) {
  import KeyTtl._

  private var writtenAt = 0L
  private var slot = NoSlot

  val isOn: Boolean = ttlMs > 0

  def reset(): Unit = {
    writtenAt = 0L
    slot = NoSlot
  }

  /** When the key in hand was last written; NoTime where that is not kept. */
  def writtenMs: Long = if (slot == NoSlot) Envelope.NoTime else writtenAt

  /** The same, for display. */
  def facts: Seq[(String, Any)] = if (slot == NoSlot) Nil else Seq("written" -> writtenAt)

  def read(in: CellReader): Unit =
    if (in.byte() == 1) {
      writtenAt = in.signed()
      slot = in.signed()
    }

  /** A flag first, so that a job may restart with its TTL switched on or off. */
  def write(out: CellWriter): Unit = if (isOn) out.byte(1).signed(writtenAt).signed(slot) else out.byte(0)

  /** Notes that the key is written in this batch; registers a visit if there is none to come. */
  def touch(key: Array[Byte], group: GroupState): Unit =
    if (isOn) {
      writtenAt = group.nowOrZero
      if (slot == NoSlot) register(key, group)
    }

  /** Calls `visit` for each key that may have expired; to be done before the batch's rows. */
  def foreachDue(group: GroupState, state: KeyedState)(visit: Array[Byte] => Unit): Unit =
    if (isOn) {
      val keys = group.expiries.take(DueIndex.slotOf(group.nowOrZero), state).map(Bytes(_)).toSet
      keys.foreach(key => visit(key.bytes))
    }

  /** Whether the time of the key in hand is over. */
  def hasExpired(group: GroupState): Boolean = writtenAt + ttlMs <= group.nowOrZero

  /** At a visit of a key that stays: registers the next visit; false if there is another to come already. */
  def visitAgain(key: Array[Byte], group: GroupState): Boolean = {
    val wasDue = slot <= DueIndex.slotOf(group.nowOrZero)
    if (wasDue) register(key, group)
    wasDue
  }

  private def register(key: Array[Byte], group: GroupState): Unit = {
    slot = DueIndex.slotOf(writtenAt + ttlMs)
    group.expiries.register(slot, key)
  }
}

object KeyTtl {
  private val NoSlot = Long.MaxValue
}

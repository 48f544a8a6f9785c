package rejoin.core.time

import rejoin.core.state.{Cell, KeyedState, StateCell}

/** A [[DueIndex]] for visits that must come at an exact time, while time moves on in small steps.
  *
  * {{{
  * far index  : the group's own, 4096 ms wide; a key stands there until its slot begins
  * near index : cell 'H' lists its slots, 16 ms wide, none beyond the far slot that time is in;
  *              cells 'N' + slot hold their keys
  * }}}
  * With the far index alone every key of the current slot would be visited in each batch. Both lists of slots
  * stay short: the far one because its slots are wide, the near one because it covers one far slot only.
  */
final class VisitIndex(far: DueIndex, state: KeyedState) {
  import VisitIndex._

  private val near = new DueIndex('N', maxListed = 1 << FarBits - NearBits)
  private val nearSlots = new StateCell('H', DueIndex.PagedVersion)
  Option(nearSlots.open(Cell.NoKey, state)).foreach(near.read(_, nearSlots.version))

  /** Takes all keys whose visit is at or before the time; a key may come more than once. */
  def take(time: Long): Iterator[Array[Byte]] =
    far.take(DueIndex.slotOf(time), state) ++ near.take(time >> NearBits, state)

  /** When a key that is registered for the time will be visited: at its slot's beginning. */
  def visitTime(time: Long, now: Long): Long = {
    val bits = if (isFar(time, now)) FarBits else NearBits
    time >> bits << bits
  }

  def register(time: Long, now: Long, key: Array[Byte]): Unit =
    if (isFar(time, now)) far.register(DueIndex.slotOf(time), key) else near.register(time >> NearBits, key)

  private def isFar(time: Long, now: Long): Boolean = DueIndex.slotOf(time) > DueIndex.slotOf(now)

  /** Writes the near index to its cells; the group writes the far one together with its own cell. */
  def flush(): Unit = {
    near.flush(state)
    val version = DueIndex.versionOf(near)
    near.write(nearSlots.write(version), version)
    nearSlots.save(state, isEmpty = near.isEmpty)
  }
}

object VisitIndex {
  private val NearBits = 4
  private val FarBits = 12
}

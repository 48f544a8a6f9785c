package rejoin.core.time

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}
import rejoin.core.state.{Cell, KeyedState}

/** Keys by the time slot in which they need a visit: what other engines have timers for.
  *
  * {{{
  * group cell           : slots in use, each with its number of chunks
  * cell tag slot, chunk : keys registered for the slot in one batch
  * }}}
  * When the watermark or the clock moves, only the slots that are due are read, however far it jumped. A key
  * may still stand in a slot that it no longer needs; such a visit finds nothing to do.
  */
final class DueIndex(tag: Char) {
  private val chunks = mutable.TreeMap.empty[Long, Int]
  private val added = mutable.TreeMap.empty[Long, ArrayBuffer[Array[Byte]]]

  /** Whether no slot is in use. */
  def isEmpty: Boolean = chunks.isEmpty

  def register(slot: Long, key: Array[Byte]): Unit = added.getOrElseUpdate(slot, new ArrayBuffer) += key

  /** Takes all keys registered for slots up to `last`; a key may come more than once. */
  def take(last: Long, state: KeyedState): Iterator[Array[Byte]] = {
    val slots = chunks.rangeTo(last).toArray
    slots.foreach { case (slot, _) => chunks.remove(slot) }
    slots.iterator.flatMap { case (slot, count) =>
      (0 until count).iterator.flatMap { chunk =>
        val cell = Cell.due(tag, slot, chunk)
        val in = new CellReader(state.get(cell)).version()
        state.remove(cell)
        Iterator.fill(in.int())(in.blob())
      }
    }
  }

  /** Writes the keys registered in this batch, one chunk per slot. */
  def flush(state: KeyedState): Unit = {
    added.foreach { case (slot, keys) =>
      val chunk = chunks.getOrElse(slot, 0)
      val out = new CellWriter().byte(Codec.Version).varLong(keys.size.toLong)
      keys.foreach(out.blob)
      state.put(Cell.due(tag, slot, chunk), out.result())
      chunks(slot) = chunk + 1
    }
    added.clear()
  }

  def read(in: CellReader): Unit = (0 until in.int()).foreach(_ => chunks(in.signed()) = in.int())

  def write(out: CellWriter): Unit = {
    out.varLong(chunks.size.toLong)
    chunks.foreach { case (slot, count) => out.signed(slot).varLong(count.toLong) }
  }
}

object DueIndex {
  private val SlotBits = 12

  /** Slots are 4096 ms wide; negative times sort first. */
  def slotOf(timeMs: Long): Long = timeMs >> SlotBits
}

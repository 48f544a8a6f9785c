package rejoin.core.time

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}
import rejoin.core.state.{Cell, KeyedState}

/** Keys by the time slot in which they need a visit: what other engines have timers for.
  *
  * {{{
  * the owner's cell       : lists of the slots in use, each with its number of chunks, and of their pages
  * cell tag, level, page  : further slots in use, see [[SlotTree]]
  * cell tag, slot, chunk  : keys registered for the slot in one batch
  * }}}
  * When the watermark or the clock moves, only the slots that are due are read, however far it jumped, and what a
  * batch reads and writes of the list of slots does not depend on how far ahead keys stand. A key may still stand in
  * a slot that it no longer needs; such a visit finds nothing to do.
  *
  * The owner's cell has the version that [[DueIndex.versionOf]] gives: the first one as long as there are no pages.
  *
  * @param maxListed
  *   a list with more entries moves to pages
  */
final class DueIndex(tag: Char, maxListed: Int = 64) {
  private val slots = new SlotTree(tag, maxListed)
  private val added = mutable.TreeMap.empty[Long, ArrayBuffer[Array[Byte]]]

  /** Whether no slot is in use. */
  def isEmpty: Boolean = slots.isEmpty

  /** Whether keys are registered that [[flush]] has not written: [[take]] does not see them yet. */
  def hasUnwritten: Boolean = added.nonEmpty

  def register(slot: Long, key: Array[Byte]): Unit = added.getOrElseUpdate(slot, new ArrayBuffer) += key

  /** Takes all keys registered for slots up to `last`; a key may come more than once. */
  def take(last: Long, state: KeyedState): Iterator[Array[Byte]] =
    slots.take(last, state).iterator.flatMap { case (slot, count) =>
      (0 until count).iterator.flatMap { chunk =>
        val cell = Cell.due(tag, slot, chunk)
        val in = new CellReader(state.get(cell)).version()
        state.remove(cell)
        Iterator.fill(in.int())(in.blob())
      }
    }

  /** Writes the keys registered in this batch, one chunk per slot. */
  def flush(state: KeyedState): Unit = {
    added.foreach { case (slot, keys) =>
      val chunk = slots.addChunk(slot, state)
      val out = new CellWriter().byte(Codec.Version).varLong(keys.size.toLong)
      keys.foreach(out.blob)
      state.put(Cell.due(tag, slot, chunk), out.result())
    }
    added.clear()
    slots.spill(state)
  }

  def read(in: CellReader, version: Byte): Unit = slots.read(in, version)

  def write(out: CellWriter, version: Byte): Unit = slots.write(out, version)
}

object DueIndex {
  private val SlotBits = 12

  /** The version of a cell with indices of which one has pages. */
  final val PagedVersion: Byte = 2

  /** The version of the cell that these indices are a part of. */
  def versionOf(indices: DueIndex*): Byte = if (indices.exists(_.slots.hasPages)) PagedVersion else Codec.Version

  /** Slots are 4096 ms wide; negative times sort first. */
  def slotOf(timeMs: Long): Long = timeMs >> SlotBits
}

package rejoin.core.state

import java.util

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** The cells of a key group as a batch leaves them, until [[store]] writes them.
  *
  * A cell that a batch changes several times is written once, and one that it adds and removes again is not written at
  * all: in a batch that lasts longer than a row is needed, most rows.
  *
  * @param stored
  *   the cells behind it
  * @param expected
  *   so many cells as a guess: until there are more, nothing grows
  * @param mostBytes
  *   of memory for changes and for cells that were asked for in vain; what takes more is written earlier
  */
final class BatchCells(stored: KeyedState, expected: Int = 0, mostBytes: Long = BatchCells.MostBytes)
    extends KeyedState {
  import BatchCells._

  private var held = new Array[Held](firstSlots(expected))
  private var slots = new Array[Held](held.length)
  private var count = 0
  private var bytes = 0L

  def get(cell: Array[Byte]): Array[Byte] = {
    val hash = hashOf(cell)
    val found = find(hash, cell)
    if (found != null) { if (found.value == null) null else found.value.clone }
    else {
      val value = stored.get(cell)
      if (value == null) {
        add(new Held(hash, cell.clone, mayBeStored = false))
        bound()
      }
      value
    }
  }

  def put(cell: Array[Byte], value: Array[Byte]): Unit = {
    val found = findOrAdd(cell)
    bytes += value.length - found.bytes
    found.value = value
    found.isChanged = true
    bound()
  }

  def remove(cell: Array[Byte]): Unit = {
    val found = findOrAdd(cell)
    bytes -= found.bytes
    found.value = null
    found.isChanged = found.mayBeStored
    bound()
  }

  def names(tag: Char): Seq[Array[Byte]] = {
    store()
    stored.names(tag)
  }

  /** Writes what has changed, in the order of the first changes. */
  def store(): Unit = {
    stored.write(held.iterator.take(count).filter(_.isChanged).map(cell => (cell.name, cell.value)))
    util.Arrays.fill(slots.asInstanceOf[Array[AnyRef]], null)
    util.Arrays.fill(held.asInstanceOf[Array[AnyRef]], 0, count, null)
    count = 0
    bytes = 0L
  }

  private def bound(): Unit = if (bytes > mostBytes) store()

  private def findOrAdd(cell: Array[Byte]): Held = {
    val hash = hashOf(cell)
    val found = find(hash, cell)
    if (found != null) found
    else {
      val added = new Held(hash, cell.clone, mayBeStored = true)
      add(added)
      added
    }
  }

  private def find(hash: Int, name: Array[Byte]): Held = {
    var found = slots(hash & (slots.length - 1))
    while (found != null && !(found.hash == hash && util.Arrays.equals(found.name, name))) found = found.next
    found
  }

  private def add(cell: Held): Unit = {
    if (count == held.length) grow()
    held(count) = cell
    count += 1
    bytes += HeldBytes + cell.name.length
    link(cell)
  }

  private def link(cell: Held): Unit = {
    val at = cell.hash & (slots.length - 1)
    cell.next = slots(at)
    slots(at) = cell
  }

  private def grow(): Unit = {
    held = util.Arrays.copyOf(held, count * 2)
    slots = new Array[Held](count * 2)
    for (i <- 0 until count) link(held(i))
  }
}

private object BatchCells {
  private final val FewestSlots = 64
  private final val MostFirstSlots = 1 << 16
  private final val HeldBytes = 64
  private final val MostBytes = 32L << 20

  /** A cell that was asked for in vain, or was changed.
    *
    * @param mayBeStored
    *   false where it is known that the store has no such cell
    */
  private final class Held(val hash: Int, val name: Array[Byte], val mayBeStored: Boolean) {
    var value: Array[Byte] = _
    var isChanged = false
    var next: Held = _
    def bytes: Int = if (value == null) 0 else value.length
  }

  /** A power of two. */
  private def firstSlots(expected: Int): Int =
    Integer.highestOneBit(math.min(math.max(expected, FewestSlots), MostFirstSlots) * 2 - 1)

  private def hashOf(name: Array[Byte]): Int =
    Murmur3_x86_32.hashUnsafeBytes(name, Platform.BYTE_ARRAY_OFFSET, name.length, 0)
}

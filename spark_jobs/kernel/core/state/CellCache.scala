package rejoin.core.state

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** The newest cells of a store, kept outside the heap in front of it. For one thread at a time.
  *
  * A ring of entries, and an index of them: a hash table with linear probing. An entry whose cell was removed or has
  * become longer is a gap. Where the ring is full, its oldest entries move together as long as there are enough gaps
  * between them, and leave otherwise. A Bloom filter has those that left. The operating system gives the ring its
  * memory as it is filled.
  * {{{
  * entry : its bytes, those of the name, those of the value, group, hash, 1 if it holds (4 each), name, value
  * slot  : hash (4), place of the entry in words + 1 (4); 0 where it is empty
  * }}}
  *
  * @param bytes
  *   what it may take; with 0 it keeps nothing
  * @param isNew
  *   whether the store is empty
  */
final class CellCache(bytes: Long, isNew: Boolean) {
  import CellCache._

  private var capacity = ringBytes(bytes)
  private var mostSlots = slotsIn(bytes)
  private val ring = if (capacity == 0) 0L else Platform.allocateMemory(capacity)
  private var slots = math.min(FirstSlots, mostSlots)
  private var index = if (capacity == 0) 0L else emptyIndex(slots)
  private var entries = 0
  private var held = 0L // bytes of entries that are no gaps
  // at least as many cells of the store are not kept
  private var missing = if (isNew && capacity > 0) 0L else Unknown
  private var left: CellFilter = _ // these cells, if they are known and there are some

  // entries stand from `oldest` to `end`, and if the ring has begun again to `turn` and from its beginning to `end`
  private var oldest = 0L
  private var end = 0L
  private var turn = -1L
  private var moves = false // until it begins again

  /** Whether it has every cell of the store, so that one which it does not have does not exist. */
  def isComplete: Boolean = missing == 0

  /** Whether it keeps cells at all. */
  def mayKeep: Boolean = capacity > 0

  def keeps(group: Int, name: Array[Byte]): Boolean =
    entries > 0 && slotAt(find(hashOf(group, name), group, name)) != 0

  /** Whether the store may have this cell, which is not kept. */
  def mayLack(group: Int, name: Array[Byte]): Boolean =
    missing != 0 && (left == null || left.mayHave(hashOf(group, name)))

  /** The cell's value, or null where it is not kept. */
  def get(group: Int, name: Array[Byte]): Array[Byte] =
    if (entries == 0) null
    else {
      val slot = slotAt(find(hashOf(group, name), group, name))
      if (slot == 0) null else valueOf(placeIn(slot))
    }

  /** Keeps what was found in the store because it was not kept. */
  def putFound(group: Int, name: Array[Byte], value: Array[Byte]): Unit = {
    missing -= 1
    put(group, name, value)
    if (missing == 0) forgetLeft()
  }

  /** Keeps what the store has from now on. */
  def put(group: Int, name: Array[Byte], value: Array[Byte]): Unit = if (capacity > 0) {
    val hash = hashOf(group, name)
    val found = find(hash, group, name)
    val slot = slotAt(found)
    val size = words(NameAt + name.length + value.length)
    if (slot != 0 && sizeAt(placeIn(slot)) >= size) writeValue(placeIn(slot), name, value)
    else {
      if (slot != 0) drop(found)
      if (size > capacity / LargestPart) leaves(hash)
      else {
        makeRoom(size)
        write(end, size, hash, group, name, value)
        link(hash, end)
        held += size
        end += size
      }
    }
  }

  /** The store does not have this cell any more. */
  def remove(group: Int, name: Array[Byte]): Unit = if (entries > 0) {
    val found = find(hashOf(group, name), group, name)
    if (slotAt(found) != 0) drop(found)
  }

  /** Takes no more than `bytes` from now on; false if it would have to forget cells for that. */
  def narrow(bytes: Long): Boolean = {
    val isFree = left == null && turn < 0 && end <= ringBytes(bytes) && slots <= slotsIn(bytes)
    val fits = capacity <= ringBytes(bytes) || isFree
    if (fits) {
      capacity = math.min(capacity, ringBytes(bytes))
      mostSlots = math.min(mostSlots, slotsIn(bytes))
    }
    fits
  }

  /** Gives its memory back. It keeps nothing after that. */
  def free(): Unit = if (capacity > 0) {
    Platform.freeMemory(ring)
    Platform.freeMemory(index)
    forgetLeft()
    capacity = 0
    entries = 0
    missing = Unknown
  }

  /** Lets the oldest entries move or leave until one of this size has a place at `end`, and a slot. */
  private def makeRoom(size: Int): Unit = {
    while (end + size > (if (turn < 0) capacity else oldest)) {
      if (turn >= 0) {
        moves ||= held <= capacity / 4 * 3
        passOldest(mayMove = moves)
      } else {
        turn = end
        end = 0
        moves = false
      }
    }
    while (entries >= most(mostSlots)) passOldest(mayMove = false)
    if (entries >= most(slots)) growIndex()
  }

  private def passOldest(mayMove: Boolean): Unit = if (oldest == turn) {
    oldest = 0
    turn = -1
  } else {
    val place = oldest
    oldest += sizeAt(place)
    if (Platform.getInt(null, ring + place + HoldsAt) == 1) {
      if (mayMove) move(place)
      else {
        leaves(Platform.getInt(null, ring + place + HashAt))
        drop(slotOf(place))
      }
    }
  }

  /** The store has a cell of this hash that is not kept from now on. */
  private def leaves(hash: Int): Unit = {
    if (isNew && left == null) left = new CellFilter(capacity / RingSixteenths * FilterSixteenths)
    if (isNew) left.add(hash)
    missing += 1
  }

  private def forgetLeft(): Unit = if (left != null) {
    left.free()
    left = null
  }

  /** Moves an entry back to `end`; there is room, because it was the oldest. */
  private def move(place: Long): Unit = {
    val size = sizeAt(place)
    putSlot(slotOf(place), slotFor(Platform.getInt(null, ring + place + HashAt), end))
    Platform.copyMemory(null, ring + place, null, ring + end, size)
    end += size
  }

  private def write(place: Long, size: Int, hash: Int, group: Int, name: Array[Byte], value: Array[Byte]): Unit = {
    Platform.putInt(null, ring + place, size)
    Platform.putInt(null, ring + place + NameLengthAt, name.length)
    Platform.putInt(null, ring + place + GroupAt, group)
    Platform.putInt(null, ring + place + HashAt, hash)
    Platform.putInt(null, ring + place + HoldsAt, 1)
    Platform.copyMemory(name, Platform.BYTE_ARRAY_OFFSET, null, ring + place + NameAt, name.length)
    writeValue(place, name, value)
  }

  private def writeValue(place: Long, name: Array[Byte], value: Array[Byte]): Unit = {
    Platform.putInt(null, ring + place + ValueLengthAt, value.length)
    val at = ring + place + NameAt + name.length
    Platform.copyMemory(value, Platform.BYTE_ARRAY_OFFSET, null, at, value.length)
  }

  private def valueOf(place: Long): Array[Byte] = {
    val value = new Array[Byte](Platform.getInt(null, ring + place + ValueLengthAt))
    val at = ring + place + NameAt + Platform.getInt(null, ring + place + NameLengthAt)
    Platform.copyMemory(null, at, value, Platform.BYTE_ARRAY_OFFSET, value.length)
    value
  }

  private def sizeAt(place: Long): Int = Platform.getInt(null, ring + place)

  private def has(place: Long, group: Int, name: Array[Byte]): Boolean =
    Platform.getInt(null, ring + place + GroupAt) == group &&
      Platform.getInt(null, ring + place + NameLengthAt) == name.length &&
      ByteArrayMethods.arrayEquals(name, Platform.BYTE_ARRAY_OFFSET, null, ring + place + NameAt, name.length)

  /** Where the slot of a cell is, or the empty one that it would have. */
  private def find(hash: Int, group: Int, name: Array[Byte]): Int = {
    var at = firstSlot(hash)
    var slot = slotAt(at)
    while (slot != 0 && !(hashIn(slot) == hash && has(placeIn(slot), group, name))) {
      at = after(at)
      slot = slotAt(at)
    }
    at
  }

  private def slotOf(place: Long): Int = {
    val hash = Platform.getInt(null, ring + place + HashAt)
    val slot = slotFor(hash, place)
    var at = firstSlot(hash)
    while (slotAt(at) != slot) at = after(at)
    at
  }

  private def link(hash: Int, place: Long): Unit = {
    var at = firstSlot(hash)
    while (slotAt(at) != 0) at = after(at)
    putSlot(at, slotFor(hash, place))
    entries += 1
  }

  /** Takes the entry of a slot away; slots behind it that were put off by it move up. */
  private def drop(slot: Int): Unit = {
    val place = placeIn(slotAt(slot))
    Platform.putInt(null, ring + place + HoldsAt, 0)
    held -= sizeAt(place)
    var hole = slot
    var at = after(hole)
    while (slotAt(at) != 0) {
      if (steps(firstSlot(hashIn(slotAt(at))), at) >= steps(hole, at)) {
        putSlot(hole, slotAt(at))
        hole = at
      }
      at = after(at)
    }
    putSlot(hole, 0)
    entries -= 1
  }

  private def growIndex(): Unit = {
    val more = math.min(slots * 2, mostSlots)
    val grown = emptyIndex(more) // fails before anything has changed
    val (old, count) = (index, slots)
    index = grown
    slots = more
    entries = 0
    for (at <- 0 until count) {
      val slot = Platform.getLong(null, old + at.toLong * SlotBytes)
      if (slot != 0) link(hashIn(slot), placeIn(slot))
    }
    Platform.freeMemory(old)
  }

  /** The slot where the search for a hash begins. */
  private def firstSlot(hash: Int): Int = ((hash & 0xffffffffL) * slots >>> 32).toInt
  private def after(at: Int): Int = if (at + 1 == slots) 0 else at + 1
  private def steps(from: Int, to: Int): Int = if (to >= from) to - from else to - from + slots

  private def slotAt(at: Int): Long = Platform.getLong(null, index + at.toLong * SlotBytes)
  private def putSlot(at: Int, slot: Long): Unit = Platform.putLong(null, index + at.toLong * SlotBytes, slot)
}

private object CellCache {
  private final val SlotBytes = 8
  private final val FirstSlots = 1 << 10
  private final val MostBytes = 16L << 30
  // a cell that would push out more than such a part of the others is not kept
  private final val LargestPart = 8
  private final val RingSixteenths = 12
  private final val FilterSixteenths = 2
  // of cells that are not kept
  private final val Unknown = Long.MaxValue / 2

  private final val NameLengthAt = 4
  private final val ValueLengthAt = 8
  private final val GroupAt = 12
  private final val HashAt = 16
  private final val HoldsAt = 20
  private final val NameAt = 24

  /** The index and the filter take an eighth each, the ring the rest. */
  private def ringBytes(bytes: Long): Long = math.min(bytes, MostBytes) / 16 * RingSixteenths & ~7L
  private def slotsIn(bytes: Long): Int = math.max(math.min(bytes, MostBytes) / 8 / SlotBytes, 4).toInt

  /** How many of the slots may be taken, so that searches are short. */
  private def most(slots: Int): Int = (slots.toLong * 3 / 4).toInt

  private def emptyIndex(slots: Int): Long = {
    val index = Platform.allocateMemory(slots.toLong * SlotBytes)
    Platform.setMemory(index, 0.toByte, slots.toLong * SlotBytes)
    index
  }

  private def words(bytes: Int): Int = (bytes + 7) & ~7

  private def hashOf(group: Int, name: Array[Byte]): Int =
    Murmur3_x86_32.hashUnsafeBytes(name, Platform.BYTE_ARRAY_OFFSET, name.length, group)

  private def slotFor(hash: Int, place: Long): Long = hash.toLong << 32 | (place >>> 3) + 1
  private def hashIn(slot: Long): Int = (slot >>> 32).toInt
  private def placeIn(slot: Long): Long = (slot & 0xffffffffL) - 1 << 3
}

package rejoin.core.state

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** The newest cells of a store, kept outside the heap in front of it. For one thread at a time.
  *
  * A ring of entries, and an index of them: a hash table with linear probing. An entry whose cell was removed or has
  * become longer is a gap. Where the ring is full, its oldest entries move together as long as there are enough gaps
  * between them, and leave otherwise. A Bloom filter has those that left. The operating system gives the ring its
  * memory as it is filled.
  *
  * What is put here waits, and is written to the store before an entry that waits would move or leave, all of it at
  * once: a cell that changes again before that is written once.
  * {{{
  * slot : hash (4), place of the entry in words + 1 (4); 0 where it is empty
  * }}}
  *
  * @param bytes
  *   what it may take; with 0 it keeps nothing
  * @param isNew
  *   whether the store is empty
  */
final class CellCache(bytes: Long, isNew: Boolean) {
  import CellCache._
  import CellEntries.{Holds, NoPlace, Stored, Waits, sizeOf}

  private var capacity = ringBytes(bytes)
  private var mostSlots = slotsIn(bytes)
  private val ring = new CellEntries(capacity)
  private var slots = math.min(FirstSlots, mostSlots)
  private var index = if (capacity == 0) 0L else emptyIndex(slots)
  private var entries = 0
  private var held = 0L // bytes of entries that are no gaps
  // at least as many cells of the store are not kept
  private var missing = if (isNew && capacity > 0) 0L else Unknown
  private var left: CellFilter = _ // these cells, if they are known and there are some
  private var waiting = NoPlace // the entry that began to wait last; there are gaps among those that wait
  private var store: Store = _

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
  def mayLack(group: Int, name: Array[Byte]): Boolean = mayHave(hashOf(group, name))

  /** The cell's value, or null where it is not kept. */
  def get(group: Int, name: Array[Byte]): Array[Byte] =
    if (entries == 0) null
    else {
      val slot = slotAt(find(hashOf(group, name), group, name))
      if (slot == 0) null else ring.value(placeIn(slot))
    }

  /** Where cells are written from now on. */
  def writesTo(store: Store): Unit = this.store = store

  /** Whether the store lacks what was put here. */
  def isAhead: Boolean = waiting != NoPlace

  /** Keeps what was found in the store because it was not kept. */
  def putFound(group: Int, name: Array[Byte], value: Array[Byte]): Unit = if (capacity > 0) {
    missing -= 1
    append(hashOf(group, name), Stored, group, name, value)
    if (missing == 0) forgetLeft()
  }

  /** Keeps what the store is to have later; false where it cannot, so that the store has to have it now. */
  def put(group: Int, name: Array[Byte], value: Array[Byte]): Boolean = capacity > 0 && {
    val hash = hashOf(group, name)
    val found = find(hash, group, name)
    val slot = slotAt(found)
    if (slot != 0 && ring.size(placeIn(slot)) >= sizeOf(name, value)) {
      ring.writeValue(placeIn(slot), value)
      await(placeIn(slot))
      true
    } else {
      val mayBeStored = if (slot == 0) mayHave(hash) else ring.is(placeIn(slot), Stored)
      if (slot != 0) drop(found)
      val place = append(hash, if (mayBeStored) Stored else 0, group, name, value)
      if (place != NoPlace) await(place)
      place != NoPlace
    }
  }

  /** Forgets a cell that the store is not to have any more; false if it never had it. */
  def remove(group: Int, name: Array[Byte]): Boolean = capacity == 0 || {
    val hash = hashOf(group, name)
    val found = find(hash, group, name)
    val slot = slotAt(found)
    if (slot == 0) mayHave(hash)
    else {
      drop(found)
      ring.is(placeIn(slot), Stored)
    }
  }

  /** Writes all that waits. */
  def writeAll(): Unit = if (isAhead) {
    val places = takeWaiting()
    if (store.begin(places.length)) ring.sort(places)
    places.foreach { place =>
      ring.set(place, Stored)
      store.add(ring.group(place), ring.name(place), ring.value(place))
    }
    store.flush()
  }

  /** The places of the entries that waited. */
  private def takeWaiting(): Array[Long] = {
    val places = Array.newBuilder[Long]
    while (isAhead) {
      val place = waiting
      waiting = ring.link(place)
      ring.clear(place, Waits)
      if (ring.is(place, Holds)) places += place
    }
    places.result()
  }

  /** Moves all entries together where gaps take a third of what the ring is filled to: those that come next then take
    * no new memory. What waits still waits.
    */
  def closeGaps(): Unit = if (turn < 0 && end > capacity / LeastPart && end - held > held / 2) {
    val behindAll = end
    var place = oldest
    oldest = 0
    end = 0
    waiting = NoPlace
    while (place < behindAll) {
      val size = ring.size(place)
      if (ring.is(place, Holds)) {
        val to = end
        move(place)
        if (ring.is(to, Waits)) waitsAt(to)
      }
      place += size
    }
  }

  /** Takes no more than `bytes` from now on; false if it would have to forget cells for that, which then may wait. */
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
    ring.free()
    Platform.freeMemory(index)
    forgetLeft()
    capacity = 0
    entries = 0
    missing = Unknown
    waiting = NoPlace
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
    if (ring.is(place, Waits)) writeAll()
    oldest += ring.size(place)
    if (ring.is(place, Holds)) {
      if (mayMove) move(place)
      else {
        leaves(ring.hash(place))
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

  private def mayHave(hash: Int): Boolean = missing != 0 && (left == null || left.mayHave(hash))

  private def forgetLeft(): Unit = if (left != null) {
    left.free()
    left = null
  }

  /** Moves an entry back to `end`; there is room, because no entry is before it. */
  private def move(place: Long): Unit = {
    putSlot(slotOf(place), slotFor(ring.hash(place), end))
    ring.copy(place, end)
    end += ring.size(end)
  }

  /** Keeps a new entry; gives its place, or none if it is too large. */
  private def append(hash: Int, flags: Int, group: Int, name: Array[Byte], value: Array[Byte]): Long = {
    val size = sizeOf(name, value)
    if (size > capacity / LargestPart) {
      leaves(hash)
      NoPlace
    } else {
      makeRoom(size)
      val place = end
      ring.write(place, hash, group, name, value)
      ring.set(place, flags | Holds)
      link(hash, place)
      held += size
      end += size
      place
    }
  }

  private def await(place: Long): Unit = if (!ring.is(place, Waits)) {
    ring.set(place, Waits)
    waitsAt(place)
  }

  private def waitsAt(place: Long): Unit = {
    ring.setLink(place, waiting)
    waiting = place
  }

  /** Where the slot of a cell is, or the empty one that it would have. */
  private def find(hash: Int, group: Int, name: Array[Byte]): Int = {
    var at = firstSlot(hash)
    var slot = slotAt(at)
    while (slot != 0 && !(hashIn(slot) == hash && ring.isOf(placeIn(slot), group, name))) {
      at = after(at)
      slot = slotAt(at)
    }
    at
  }

  private def slotOf(place: Long): Int = {
    val hash = ring.hash(place)
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
    ring.clear(place, Holds)
    held -= ring.size(place)
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

object CellCache {

  /** What is behind the cells that are kept. */
  trait Store {

    /** So many cells are added next; whether in its order ([[CellEntries.sort]]). */
    def begin(count: Int): Boolean

    def add(group: Int, name: Array[Byte], value: Array[Byte]): Unit

    /** It has what was added, once this returns. */
    def flush(): Unit
  }

  private final val SlotBytes = 8
  private final val FirstSlots = 1 << 10
  private final val MostBytes = 16L << 30
  // a ring that is filled to no more than such a part keeps its gaps
  private final val LeastPart = 256
  // a cell that would push out more than such a part of the others is not kept
  private final val LargestPart = 8
  private final val RingSixteenths = 12
  private final val FilterSixteenths = 2
  // of cells that are not kept
  private final val Unknown = Long.MaxValue / 2

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

  private def hashOf(group: Int, name: Array[Byte]): Int =
    Murmur3_x86_32.hashUnsafeBytes(name, Platform.BYTE_ARRAY_OFFSET, name.length, group)

  private def slotFor(hash: Int, place: Long): Long = hash.toLong << 32 | (place >>> 3) + 1
  private def hashIn(slot: Long): Int = (slot >>> 32).toInt
  private def placeIn(slot: Long): Long = (slot & 0xffffffffL) - 1 << 3
}

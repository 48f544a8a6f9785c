package rejoin.core.state

import java.util

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/** Cells one after the other in memory outside the heap, each by its place there.
  * {{{
  * size in bytes and flags, bytes of the name, of the value, group, hash, a link (4 each), name, value
  * }}}
  * Sizes are whole words, so that their last bits are free for flags.
  */
private final class CellEntries(bytes: Long) {
  import CellEntries._

  private val memory = if (bytes == 0) 0L else Platform.allocateMemory(bytes)

  def free(): Unit = Platform.freeMemory(memory)

  /** A new entry, without flags and link. */
  def write(place: Long, hash: Int, group: Int, name: Array[Byte], value: Array[Byte]): Unit = {
    putInt(place, SizeAt, sizeOf(name, value))
    putInt(place, NameLengthAt, name.length)
    putInt(place, GroupAt, group)
    putInt(place, HashAt, hash)
    Platform.copyMemory(name, Platform.BYTE_ARRAY_OFFSET, null, memory + place + NameAt, name.length)
    writeValue(place, value)
  }

  /** There has to be room for it in the entry. */
  def writeValue(place: Long, value: Array[Byte]): Unit = {
    putInt(place, ValueLengthAt, value.length)
    Platform.copyMemory(value, Platform.BYTE_ARRAY_OFFSET, null, valueAt(place), value.length)
  }

  def copy(from: Long, to: Long): Unit = Platform.copyMemory(null, memory + from, null, memory + to, size(from))

  def size(place: Long): Int = int(place, SizeAt) & ~Flags
  def group(place: Long): Int = int(place, GroupAt)
  def hash(place: Long): Int = int(place, HashAt)
  def name(place: Long): Array[Byte] = bytesAt(memory + place + NameAt, int(place, NameLengthAt))
  def value(place: Long): Array[Byte] = bytesAt(valueAt(place), int(place, ValueLengthAt))

  def is(place: Long, flag: Int): Boolean = (int(place, SizeAt) & flag) != 0
  def set(place: Long, flags: Int): Unit = putInt(place, SizeAt, int(place, SizeAt) | flags)
  def clear(place: Long, flags: Int): Unit = putInt(place, SizeAt, int(place, SizeAt) & ~flags)

  /** The place that the entry is linked to; negative if to none. */
  def link(place: Long): Long = ((int(place, LinkAt) & 0xffffffffL) << 3) - WordBytes
  def setLink(place: Long, to: Long): Unit = putInt(place, LinkAt, (to + WordBytes >>> 3).toInt)

  def isOf(place: Long, group: Int, name: Array[Byte]): Boolean =
    int(place, GroupAt) == group && int(place, NameLengthAt) == name.length &&
      ByteArrayMethods.arrayEquals(name, Platform.BYTE_ARRAY_OFFSET, null, memory + place + NameAt, name.length)

  /** Sorts entries as a store does, whose keys are made of the group, the length of the row with the name, that of the
    * name, and the name; numbers are compared from their lowest byte on.
    *
    * Those of a group are sorted apart from the others, because they fit into the processor's cache.
    */
  def sort(places: Array[Long]): Unit = {
    val grouped = places.map(place => (fromLowest(group(place)) << 32) | (place >>> 3))
    util.Arrays.sort(grouped)
    var from = 0
    while (from < grouped.length) {
      var until = from + 1
      while (until < grouped.length && grouped(until) >> 32 == grouped(from) >> 32) until += 1
      val ofGroup = Array.tabulate(until - from)(at => Long.box((grouped(from + at) & 0xffffffffL) << 3))
      util.Arrays.sort(ofGroup, nameOrder)
      for (at <- ofGroup.indices) places(from + at) = ofGroup(at)
      from = until
    }
  }

  private val nameOrder: util.Comparator[java.lang.Long] = (one, other) => {
    val (length, otherLength) = (int(one, NameLengthAt), int(other, NameLengthAt))
    if (rowLength(length) != rowLength(otherLength))
      java.lang.Long.compare(fromLowest(rowLength(length)), fromLowest(rowLength(otherLength)))
    else if (length != otherLength) java.lang.Long.compare(fromLowest(length), fromLowest(otherLength))
    else compareNames(memory + one + NameAt, memory + other + NameAt, length)
  }

  private def compareNames(one: Long, other: Long, length: Int): Int = {
    var at = 0
    while (at + WordBytes <= length && Platform.getLong(null, one + at) == Platform.getLong(null, other + at))
      at += WordBytes.toInt
    while (at < length && Platform.getByte(null, one + at) == Platform.getByte(null, other + at)) at += 1
    if (at == length) 0
    else java.lang.Byte.compareUnsigned(Platform.getByte(null, one + at), Platform.getByte(null, other + at))
  }

  private def valueAt(place: Long): Long = memory + place + NameAt + int(place, NameLengthAt)
  private def int(place: Long, at: Int): Int = Platform.getInt(null, memory + place + at)
  private def putInt(place: Long, at: Int, value: Int): Unit = Platform.putInt(null, memory + place + at, value)
}

private object CellEntries {

  /** An entry that is no gap. */
  final val Holds = 1

  /** An entry that the store is to have, or a gap that was one. */
  final val Waits = 2

  /** The store may have an older value of the cell. */
  final val Stored = 4

  final val NoPlace = -8L

  private final val Flags = 7
  private final val WordBytes = 8L

  private final val SizeAt = 0
  private final val NameLengthAt = 4
  private final val ValueLengthAt = 8
  private final val GroupAt = 12
  private final val HashAt = 16
  private final val LinkAt = 20
  private final val NameAt = 24

  def sizeOf(name: Array[Byte], value: Array[Byte]): Int = (NameAt + name.length + value.length + 7) & ~7

  /** A number that is ordered as the bytes of `number` are, from the lowest on. */
  private def fromLowest(number: Int): Long = (Integer.reverseBytes(number) ^ Int.MinValue).toLong

  private def rowLength(nameLength: Int): Int = 16 + ((nameLength + 7) & ~7)

  private def bytesAt(at: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(null, at, bytes, Platform.BYTE_ARRAY_OFFSET, length)
    bytes
  }
}

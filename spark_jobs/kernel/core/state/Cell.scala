package rejoin.core.state

import java.util

/** Names of state cells: a tag that says what the cell holds, then what it is about. */
object Cell {
  private[core] final val GroupTag = 'G'

  /** The cell of what a group knows besides its rows. */
  val Group: Array[Byte] = Array(GroupTag.toByte)

  /** In place of a key, for a cell of which a group has one. */
  val NoKey: Array[Byte] = Array.emptyByteArray

  def hasTag(cell: Array[Byte], tag: Char): Boolean = cell(0) == tag.toByte

  /** The join key in the name of its header cell. */
  def keyOf(cell: Array[Byte]): Array[Byte] = util.Arrays.copyOfRange(cell, 1, cell.length)

  /** The header cell of a join key. */
  def key(tag: Char, key: Array[Byte]): Array[Byte] = {
    val cell = new Array[Byte](key.length + 1)
    cell(0) = tag.toByte
    System.arraycopy(key, 0, cell, 1, key.length)
    cell
  }

  /** A page of a join key; the number follows the tag, so that keys of any length fit. */
  def page(tag: Char, page: Int, key: Array[Byte]): Array[Byte] = {
    val cell = new Array[Byte](key.length + 5)
    cell(0) = tag.toByte
    writeInt(cell, 1, page)
    System.arraycopy(key, 0, cell, 5, key.length)
    cell
  }

  /** A chunk of the keys that are due in a time slot. */
  def due(tag: Char, slot: Long, chunk: Int): Array[Byte] = {
    val cell = new Array[Byte](13)
    cell(0) = tag.toByte
    writeInt(cell, 1, (slot >>> 32).toInt)
    writeInt(cell, 5, slot.toInt)
    writeInt(cell, 9, chunk)
    cell
  }

  /** A page of the slots in which keys are due. */
  def duePage(tag: Char, level: Int, page: Long): Array[Byte] = {
    val cell = new Array[Byte](10)
    cell(0) = tag.toByte
    cell(1) = level.toByte
    writeInt(cell, 2, (page >>> 32).toInt)
    writeInt(cell, 6, page.toInt)
    cell
  }

  private def writeInt(bytes: Array[Byte], at: Int, value: Int): Unit = {
    bytes(at) = (value >>> 24).toByte
    bytes(at + 1) = (value >>> 16).toByte
    bytes(at + 2) = (value >>> 8).toByte
    bytes(at + 3) = value.toByte
  }
}

package rejoin.core.state

import java.util

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

/** What a state machine sees of its state: bytes to bytes within one key group.
  *
  * In Spark it is one transformWithState map per operator ([[StatefulAdapter]]); in tests it is
  * [[MemoryState]]. A returned array belongs to the caller; a stored one no longer does.
  */
trait KeyedState {

  /** The cell's value, or null where there is none. */
  def get(cell: Array[Byte]): Array[Byte]
  def put(cell: Array[Byte], value: Array[Byte]): Unit
  def remove(cell: Array[Byte]): Unit

  /** The names of all cells with this tag: a scan of the group, for what concerns every row of it. */
  def names(tag: Char): Seq[Array[Byte]]
}

/** State of one key group in a tree map; `snapshot` copies it as a restart would see it. */
final class MemoryState private (cells: util.TreeMap[Array[Byte], Array[Byte]])
    extends KeyedState {
  def this() = this(new util.TreeMap[Array[Byte], Array[Byte]](util.Arrays.compare(_, _)))

  /** What the machine has read and written since the state was made: cells, and bytes of their values. */
  var cellsRead = 0L
  var cellsWritten = 0L
  var bytesRead = 0L
  var bytesWritten = 0L

  def get(cell: Array[Byte]): Array[Byte] = {
    cellsRead += 1
    val value = cells.get(cell)
    if (value == null) null
    else {
      bytesRead += value.length
      value.clone()
    }
  }
  def put(cell: Array[Byte], value: Array[Byte]): Unit = {
    cellsWritten += 1
    bytesWritten += value.length
    cells.put(cell.clone(), value.clone())
  }
  def remove(cell: Array[Byte]): Unit = {
    cellsWritten += 1
    cells.remove(cell)
  }

  def names(tag: Char): Seq[Array[Byte]] =
    cells.keySet.asScala.iterator.filter(Cell.hasTag(_, tag)).map(_.clone()).toVector

  def size: Int = cells.size

  /** Names and values, in the order of the names. */
  def all: Seq[(Array[Byte], Array[Byte])] = {
    val found = new ArrayBuffer[(Array[Byte], Array[Byte])](size)
    cells.forEach((cell, value) => found += cell -> value)
    found.toSeq
  }

  /** Names and values of all cells. */
  def bytes: Long = {
    var sum = 0L
    cells.forEach((cell, value) => sum += cell.length + value.length)
    sum
  }
  def snapshot(): MemoryState = new MemoryState(new util.TreeMap(cells))
}

/** Names of state cells: a tag that says what the cell holds, then what it is about. */
object Cell {
  val Group: Array[Byte] = Array('G'.toByte)

  def hasTag(cell: Array[Byte], tag: Char): Boolean = cell(0) == tag.toByte

  /** The key that [[key]] was given. */
  def keyOf(cell: Array[Byte]): Array[Byte] = util.Arrays.copyOfRange(cell, 1, cell.length)

  /** The header of one join key. */
  def key(tag: Char, key: Array[Byte]): Array[Byte] = {
    val cell = new Array[Byte](key.length + 1)
    cell(0) = tag.toByte
    System.arraycopy(key, 0, cell, 1, key.length)
    cell
  }

  /** Page `page` of one join key; the number follows the tag, so that keys of any length fit. */
  def page(tag: Char, page: Int, key: Array[Byte]): Array[Byte] = {
    val cell = new Array[Byte](key.length + 5)
    cell(0) = tag.toByte
    writeInt(cell, 1, page)
    System.arraycopy(key, 0, cell, 5, key.length)
    cell
  }

  /** Chunk `chunk` of the keys that are due in time slot `slot`. */
  def due(tag: Char, slot: Long, chunk: Int): Array[Byte] = {
    val cell = new Array[Byte](13)
    cell(0) = tag.toByte
    writeInt(cell, 1, (slot >>> 32).toInt)
    writeInt(cell, 5, slot.toInt)
    writeInt(cell, 9, chunk)
    cell
  }

  private def writeInt(bytes: Array[Byte], at: Int, value: Int): Unit = {
    bytes(at) = (value >>> 24).toByte
    bytes(at + 1) = (value >>> 16).toByte
    bytes(at + 2) = (value >>> 8).toByte
    bytes(at + 3) = value.toByte
  }
}

package rejoin.core.state

import java.util

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

/** State of one key group in a tree map; `snapshot` copies it as a restart would see it. */
final class MemoryState private (cells: util.TreeMap[Array[Byte], Array[Byte]])
    extends KeyedState {
  def this() = this(new util.TreeMap[Array[Byte], Array[Byte]](util.Arrays.compare(_, _)))

  /** Cells, and bytes of their values, that were read and written since the state was made. */
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

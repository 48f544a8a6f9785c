package rejoin.core.state

import rejoin.core.row.{CellReader, CellWriter}

/** The values of one aggregated column in one group, each with its number of rows.
  *
  * {{{
  * pages: value -> count
  * }}}
  * Values are bytes that sort as they do ([[rejoin.core.row.SortableBytes]]). More retractions than additions
  * make a count negative; only values with a positive count are part of the result.
  */
final class ValueCounts(pageTag: Char) {
  private val counts = new SortedPages(pageTag)
  private val cell = new CellWriter

  def reset(key: Array[Byte], state: KeyedState): Unit = counts.reset(key, state)

  /** Adds to the count of a value; gives the new count. */
  def change(value: Array[Byte], by: Int): Long = {
    val stored = counts.get(value)
    val count = (if (stored == null) 0L else new CellReader(stored).signed()) + by
    if (count == 0) counts.remove(value) else counts.put(value, cell.reset().signed(count).result())
    count
  }

  /** The smallest value, or null. */
  def min: Array[Byte] = {
    var value = counts.first
    while (value != null && !isThere(value)) value = counts.ceiling(value :+ 0.toByte)
    value
  }

  /** The largest value, or null. */
  def max: Array[Byte] = {
    var value = counts.last
    while (value != null && !isThere(value)) value = counts.lower(value)
    value
  }

  private def isThere(value: Array[Byte]): Boolean = new CellReader(counts.get(value)).signed() > 0

  def clear(): Unit = counts.clear()

  def read(in: CellReader): Unit = counts.read(in)

  def write(out: CellWriter): Unit = counts.write(out)
}

package rejoin.core.state

import org.apache.spark.sql.types.DataType

import rejoin.core.row.{CellReader, CellWriter, SortableBytes}

/** The values of one aggregated column in one group, each with how often it stands there.
  *
  * {{{
  * pages: value -> count
  * }}}
  * More retractions than additions make a count negative; only positive ones count as there.
  */
final class ValueCounts(pageTag: Char, dataType: DataType) {
  private val bytes = SortableBytes.of(dataType)
  private val counts = new SortedPages(pageTag)
  private val cell = new CellWriter

  def reset(key: Array[Byte], state: KeyedState): Unit = counts.reset(key, state)

  /** Adds to the count of a value; gives the new count. */
  def change(value: Any, by: Int): Long = {
    val entry = bytes.encode(value)
    val stored = counts.get(entry)
    val count = (if (stored == null) 0L else new CellReader(stored).signed()) + by
    if (count == 0) counts.remove(entry) else counts.put(entry, cell.reset().signed(count).result())
    count
  }

  /** The smallest value, or null. */
  def min: Any = {
    var entry = counts.first
    while (entry != null && !isThere(entry)) entry = counts.ceiling(entry :+ 0.toByte)
    if (entry == null) null else bytes.decode(entry)
  }

  /** The largest value, or null. */
  def max: Any = {
    var entry = counts.last
    while (entry != null && !isThere(entry)) entry = counts.lower(entry)
    if (entry == null) null else bytes.decode(entry)
  }

  private def isThere(entry: Array[Byte]): Boolean = new CellReader(counts.get(entry)).signed() > 0

  def clear(): Unit = counts.clear()

  def read(in: CellReader): Unit = counts.read(in)

  def write(out: CellWriter, pageOut: CellWriter): Unit = counts.write(out, pageOut)
}

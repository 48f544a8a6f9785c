package rejoin.core.row

import scala.collection.mutable.ArrayBuffer

/** What an operator emits in one batch of a group, in order: the first rows in memory, the others in a file. */
final class Results(overflow: Overflow) {
  private val first = new ArrayBuffer[Changelog]
  private var bytes = 0L
  private var rest: OverflowFile = _

  def add(row: Changelog): Unit =
    if (bytes < overflow.maxBytes) {
      first += row
      bytes += Results.bytesOf(row)
    } else write(row)

  private def write(row: Changelog): Unit = {
    if (rest == null) rest = overflow.open()
    rest.record.byte(row.kind.toInt).signed(row.hash.toLong).nullable(row.left).nullable(row.right).signed(row.recordMs)
    rest.add()
  }

  /** The rows, once. */
  def iterator: Iterator[Changelog] =
    if (rest == null) first.iterator else first.iterator ++ rest.iterator.map(read) ++ deletion

  private def read(in: CellReader): Changelog =
    Changelog(in.byte().toByte, in.signed().toInt, in.nullable(), in.nullable(), in.signed())

  /** Nothing, once all rows have been read. */
  private def deletion: Iterator[Changelog] = {
    rest.delete()
    Iterator.empty
  }
}

private object Results {

  /** About what a row takes in memory. */
  private def bytesOf(row: Changelog): Long =
    96L + (if (row.left == null) 0 else row.left.length) + (if (row.right == null) 0 else row.right.length)
}

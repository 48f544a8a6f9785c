package rejoin.core.results

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter}

/** Rows that wait in order and are taken out once: the first ones in memory, the others in a file. */
abstract class OverflowQueue[R](overflow: Overflow) {
  private val first = new ArrayBuffer[R]
  private var bytes = 0L
  private var rest: OverflowFile = _

  /** About what a row takes in memory. */
  protected def sizeOf(row: R): Long
  protected def write(row: R, out: CellWriter): Unit

  /** Reads what `write` has written. */
  protected def read(in: CellReader): R

  final def add(row: R): Unit =
    if (bytes < overflow.maxBytes) {
      first += row
      bytes += sizeOf(row)
    } else {
      if (rest == null) rest = overflow.open()
      write(row, rest.record)
      rest.add()
    }

  final def iterator: Iterator[R] =
    if (rest == null) first.iterator else first.iterator ++ rest.iterator.map(read) ++ deletion

  /** Nothing, once all rows have been read. */
  private def deletion: Iterator[R] = {
    rest.delete()
    Iterator.empty
  }
}

package rejoin.core.machine.join

import java.util

import scala.collection.mutable.ArrayBuffer

import rejoin.core.results.{Overflow, OverflowFile}
import rejoin.core.state.TimedRow

/** The probe rows of one key that leave in this batch; they come in any order and leave in that of their arrival.
  *
  * What does not fit into memory waits in sorted files, which are merged.
  */
final class DueProbes(overflow: Overflow) {
  import DueProbes._

  private val rows = new ArrayBuffer[TimedRow]
  private val files = new ArrayBuffer[OverflowFile]
  private var bytes = 0L

  def isEmpty: Boolean = rows.isEmpty && files.isEmpty

  def add(row: TimedRow): Unit = {
    rows += row
    bytes += RowBytes + row.row.length
    if (bytes > overflow.maxBytes) spill()
  }

  private def spill(): Unit = {
    sort()
    val file = overflow.open()
    rows.foreach { row =>
      file.record.varLong(row.order).signed(row.time).byte(row.kind.toInt).blob(row.row)
      file.add()
    }
    file.complete()
    files += file
    clear()
  }

  private def sort(): Unit = if (rows.size > 1) rows.sortInPlaceBy(_.order)

  private def clear(): Unit = {
    rows.clear()
    bytes = 0L
  }

  /** Takes all rows out, in order. */
  def drain(visit: TimedRow => Unit): Unit = {
    sort()
    if (files.isEmpty) rows.foreach(visit) else merge(visit)
    files.foreach(_.delete())
    files.clear()
    clear()
  }

  private def merge(visit: TimedRow => Unit): Unit = {
    val heads = new util.PriorityQueue[Run]((a, b) => java.lang.Long.compare(a.head.order, b.head.order))
    (files.map(read) += rows.iterator).filter(_.hasNext).foreach(rows => heads.add(new Run(rows)))
    while (!heads.isEmpty) {
      val first = heads.poll()
      visit(first.head)
      if (first.moves()) heads.add(first)
    }
  }

  private def read(file: OverflowFile): Iterator[TimedRow] = file.iterator.map { in =>
    val order = in.varLong()
    new TimedRow(in.signed(), order, in.byte().toByte, in.blob())
  }
}

private object DueProbes {

  /** About what a row takes in memory besides its columns. */
  private final val RowBytes = 64L

  private final class Run(rows: Iterator[TimedRow]) {
    var head: TimedRow = rows.next()

    /** Whether there is a next row, which is the head from now on. */
    def moves(): Boolean = {
      val isMore = rows.hasNext
      if (isMore) head = rows.next()
      isMore
    }
  }
}

package rejoin.core.state

import rejoin.core.row.{CellReader, CellWriter}

/** A row with its event time; `order` is its place among rows of its key, `row` is null for a deletion. */
final class TimedRow(val time: Long, val order: Long, val kind: Byte, val row: Array[Byte]) extends Timed

/** Rows of one key sorted by (time, order), in one page or in a list of pages: of a few kB, or of about 30 kB where
  * there are a million rows.
  *
  * {{{
  * header, no page : rows, next page number, 0
  *         one     : rows, next page number, 1, page number, page
  *         n       : rows, next page number, n, and of each page: number, first time, bytes, rows
  * }}}
  */
final class TimePages(pageTag: Char) extends TimeTree[TimedRow](pageTag) {
  import TimePages._

  /** Removes all rows before the time. */
  def dropBefore(time: Long): Unit = if (time > Long.MinValue) dropUpTo(time - 1)

  def clear(): Unit = dropUpTo(Long.MaxValue)

  protected def sizeOf(row: TimedRow): Int = 8 + (if (row.row == null) 0 else row.row.length)

  /** Pages grow with their number, so that the header, which lists them, stays as short as one of them. */
  protected def maxBytes: Int =
    2 * (if (root.level == 0) PageBytes else math.max(PageBytes, root.children.size * EntryBytes))

  protected def maxChildren: Int = Int.MaxValue
  protected def splitsAtEnd: Boolean = false
  protected def numbersRoot: Boolean = true

  def read(in: CellReader): Unit = {
    size = in.varLong()
    pages.nextNumber = in.int()
    val count = in.int()
    if (count == 1) {
      root.number = in.int()
      root.read(in)
    } else if (count > 1) {
      root = new TimePage(1)
      (0 until count).foreach { _ =>
        val number = in.int()
        val firstTime = in.signed()
        val bytes = in.varLong()
        root.children += new Child(number, firstTime, in.varLong(), bytes)
      }
    }
  }

  def write(out: CellWriter): Unit = {
    out.varLong(size).varLong(pages.nextNumber.toLong)
    if (isEmpty) out.varLong(0L)
    else if (root.level == 0) root.write(out.varLong(1L).varLong(root.number.toLong))
    else root.write(out)
    pages.write()
  }

  protected def readPage(page: TimePage, in: CellReader): Unit =
    (0 until in.int()).foreach { i =>
      page.insert(i, new TimedRow(in.signed(), in.varLong(), in.byte().toByte, in.nullable()))
    }

  protected def writePage(page: TimePage, out: CellWriter): Unit =
    if (page.level == 0) {
      out.varLong(page.rows.size.toLong)
      page.rows.foreach(row => out.signed(row.time).varLong(row.order).byte(row.kind.toInt).nullable(row.row))
    } else {
      out.varLong(page.children.size.toLong)
      page.children.foreach { child =>
        out.varLong(child.number.toLong).signed(child.firstTime).varLong(child.bytes).varLong(child.count)
      }
    }
}

object TimePages {
  private final val PageBytes = 4096

  /** About what the header says of a page. */
  private final val EntryBytes = 16
}

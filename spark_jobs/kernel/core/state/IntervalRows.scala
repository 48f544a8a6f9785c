package rejoin.core.state

import rejoin.core.row.{CellReader, CellWriter, KeptRow}

/** A row in the state of an interval join.
  *
  * @param matches
  *   on outer sides: over inputs that change, how many rows it is joined with; otherwise 1 if it ever was, or 0
  */
final class CachedRow(val time: Long, val row: Array[Byte], var matches: Int) extends Timed {
  def isMatched: Boolean = matches > 0
}

/** The rows of one side of an interval join under one join key, by (time, arrival).
  *
  * {{{
  * header : next page number, level of the root page, root page
  * }}}
  */
final class IntervalRows(pageTag: Char) extends TimeTree[CachedRow](pageTag) {

  /** Visits the cached rows as they are displayed. */
  def show(side: Int, isOuter: Boolean)(visit: KeptRow => Unit): Unit =
    foreach { cached =>
      visit(KeptRow(side, cached.row, cached.time, if (isOuter) Seq("matched" -> cached.isMatched) else Nil))
    }

  protected def sizeOf(row: CachedRow): Int = 4 + row.row.length
  protected def maxBytes: Int = 4096
  protected def maxChildren: Int = 256
  protected def splitsAtEnd: Boolean = true
  protected def numbersRoot: Boolean = false

  def read(in: CellReader): Unit = {
    pages.nextNumber = in.int()
    root = new TimePage(in.int())
    root.read(in)
    size = root.count
  }

  def write(out: CellWriter): Unit = {
    root.write(out.varLong(pages.nextNumber.toLong).varLong(root.level.toLong))
    pages.write()
  }

  /** Times as differences, which wrap around and back where they are far apart. */
  protected def readPage(page: TimePage, in: CellReader): Unit = {
    var time = 0L
    (0 until in.int()).foreach { i =>
      time = if (i == 0) in.signed() else time + in.varLong()
      if (page.level > 0) page.children += new Child(in.int(), time, in.varLong())
      else {
        val matches = in.int()
        page.insert(i, new CachedRow(time, in.blob(), matches))
      }
    }
  }

  protected def writePage(page: TimePage, out: CellWriter): Unit = {
    var last = 0L
    def writeTime(time: Long, index: Int): CellWriter = {
      val difference = time - last
      last = time
      if (index == 0) out.signed(time) else out.varLong(difference)
    }
    if (page.level > 0) {
      out.varLong(page.children.size.toLong)
      page.children.iterator.zipWithIndex.foreach { case (child, i) =>
        writeTime(child.firstTime, i).varLong(child.number.toLong).varLong(child.count)
      }
    } else {
      out.varLong(page.rows.size.toLong)
      page.rows.iterator.zipWithIndex.foreach { case (row, i) =>
        writeTime(row.time, i).varLong(row.matches.toLong).blob(row.row)
      }
    }
  }
}

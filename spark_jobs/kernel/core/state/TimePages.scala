package rejoin.core.state

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}

/** A row with its event time; `order` is its place among rows of its key, `row` null a deletion. */
final class TimedRow(val time: Long, val order: Long, val kind: Byte, val row: Array[Byte])

/** Rows of one key sorted by (time, order), in pages of a few kB; of about 30 kB where there are a million rows.
  *
  * {{{
  * one page : inside the key's header cell                       (almost every key)
  * n pages  : cells tag + page number + key; the header lists them with their first times
  * }}}
  * Reading at a time, adding a row and dropping everything before a time each touch the header and
  * the pages concerned only.
  */
final class TimePages(pageTag: Char) {
  import TimePages._

  private var key: Array[Byte] = _
  private var state: KeyedState = _
  private val pages = new ArrayBuffer[Page]
  private val removed = new ArrayBuffer[Int]
  private var nextNumber = 1

  var size = 0L

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    pages.clear()
    removed.clear()
    nextNumber = 1
    size = 0L
  }

  def isEmpty: Boolean = size == 0

  /** Time of the first row; only where not empty. */
  def firstTime: Long = pages(0).firstTime

  /** Time of the second row; only where there are two. */
  def secondTime: Long = {
    val first = rowsOf(pages(0))
    if (first.size > 1) first(1).time else pages(1).firstTime
  }

  /** Adds a row behind those of its time; with `replace`, in place of one of the same time. */
  def add(row: TimedRow, replace: Boolean): Unit = {
    if (pages.isEmpty) pages += newPage(row.time)
    val index = pageIndex(row.time)
    val page = pages(index)
    val rows = rowsOf(page)
    val at = upperBound(rows, row.time)
    if (replace && at > 0 && rows(at - 1).time == row.time) {
      page.bytes += sizeOf(row) - sizeOf(rows(at - 1))
      rows(at - 1) = row
    } else {
      rows.insert(at, row)
      page.bytes += sizeOf(row)
      size += 1
    }
    if (at == 0) page.firstTime = row.time
    page.dirty = true
    if (page.bytes > 2 * pageBytes && rows.size > 1) split(index)
  }

  /** The last row at or before the time, or null. */
  def floor(time: Long): TimedRow = {
    var index = if (pages.isEmpty) -1 else pageIndex(time)
    var found: TimedRow = null
    while (found == null && index >= 0) {
      val rows = rowsOf(pages(index))
      val at = upperBound(rows, time)
      if (at > 0) found = rows(at - 1)
      index -= 1
    }
    found
  }

  /** All rows in (time, order). */
  def foreach(visit: TimedRow => Unit): Unit = pages.foreach(rowsOf(_).foreach(visit))

  /** Removes and gives all rows up to the time, in (time, order). */
  def takeUpTo(time: Long, into: ArrayBuffer[TimedRow]): Unit =
    while (pages.nonEmpty && pages(0).firstTime <= time) {
      val rows = rowsOf(pages(0))
      val at = upperBound(rows, time)
      into ++= rows.view.take(at)
      cut(pages(0), at)
    }

  /** Drops all rows before the time. */
  def dropBefore(time: Long): Unit = {
    while (pages.size > 1 && pages(1).firstTime <= time) {
      size -= pages(0).count
      drop(0)
    }
    if (pages.nonEmpty && pages(0).firstTime < time) {
      val rows = rowsOf(pages(0))
      cut(pages(0), rows.indexWhere(_.time >= time) match {
        case -1 => rows.size
        case at => at
      })
    }
  }

  def clear(): Unit = {
    while (pages.nonEmpty) drop(pages.size - 1)
    size = 0
  }

  /** Pages grow with their number, so that the header, which lists them, stays as short as one of them. */
  private def pageBytes: Long = math.max(PageBytes, pages.size * EntryBytes)

  private def cut(page: Page, at: Int): Unit =
    if (at > 0) {
      page.bytes -= page.rows.view.take(at).map(sizeOf).sum
      page.rows.remove(0, at)
      page.dirty = true
      size -= at
      if (page.rows.isEmpty) drop(0) else page.firstTime = page.rows(0).time
    }

  private def drop(index: Int): Unit = {
    val page = pages.remove(index)
    if (page.isStored) removed += page.number
    page.rows = ArrayBuffer.empty
  }

  private def split(index: Int): Unit = {
    val page = pages(index)
    val upper = newPage(0)
    upper.rows ++= page.rows.view.drop(page.rows.size / 2)
    upper.bytes = upper.rows.view.map(sizeOf).sum
    upper.firstTime = upper.rows(0).time
    page.rows.takeInPlace(page.rows.size / 2)
    page.bytes -= upper.bytes
    pages.insert(index + 1, upper)
  }

  private def newPage(firstTime: Long): Page = {
    val page = new Page(nextNumber, firstTime)
    page.rows = new ArrayBuffer[TimedRow]
    page.dirty = true
    nextNumber += 1
    page
  }

  /** The last page that starts at or before the time, else the first. */
  private def pageIndex(time: Long): Int = {
    var index = pages.size - 1
    while (index > 0 && pages(index).firstTime > time) index -= 1
    index
  }

  private def rowsOf(page: Page): ArrayBuffer[TimedRow] = {
    if (page.rows == null)
      page.rows = readRows(new CellReader(state.get(Cell.page(pageTag, page.number, key))).version())
    page.rows
  }

  /** Reads the header's part. */
  def read(in: CellReader): Unit = {
    size = in.varLong()
    nextNumber = in.int()
    val count = in.int()
    if (count == 1) {
      val page = new Page(in.int(), 0)
      page.rows = readRows(in)
      page.bytes = page.rows.view.map(sizeOf).sum
      page.firstTime = page.rows(0).time
      pages += page
    } else
      (0 until count).foreach { _ =>
        val page = new Page(in.int(), in.signed())
        page.bytes = in.varLong()
        page.storedCount = in.int()
        page.isStored = true
        pages += page
      }
  }

  /** Writes the header's part, and the pages that changed. */
  def write(out: CellWriter, pageOut: CellWriter): Unit = {
    removed.foreach(number => state.remove(Cell.page(pageTag, number, key)))
    out.varLong(size).varLong(nextNumber.toLong).varLong(pages.size.toLong)
    if (pages.size == 1) {
      val page = pages(0)
      out.varLong(page.number.toLong)
      writeRows(out, rowsOf(page))
      if (page.isStored) state.remove(Cell.page(pageTag, page.number, key))
    } else
      pages.foreach { page =>
        out.varLong(page.number.toLong).signed(page.firstTime).varLong(page.bytes).varLong(page.count.toLong)
        if (page.dirty || !page.isStored) {
          writeRows(pageOut.reset().byte(Codec.Version), rowsOf(page))
          state.put(Cell.page(pageTag, page.number, key), pageOut.result())
        }
      }
  }

  private def readRows(in: CellReader): ArrayBuffer[TimedRow] = {
    val count = in.int()
    val rows = new ArrayBuffer[TimedRow](count)
    (0 until count).foreach(_ => rows += new TimedRow(in.signed(), in.varLong(), in.byte().toByte, in.nullable()))
    rows
  }

  private def writeRows(out: CellWriter, rows: ArrayBuffer[TimedRow]): Unit = {
    out.varLong(rows.size.toLong)
    rows.foreach(row => out.signed(row.time).varLong(row.order).byte(row.kind.toInt).nullable(row.row))
  }
}

object TimePages {
  private val PageBytes = 4096L

  /** About what the header says of a page. */
  private val EntryBytes = 16L

  private def sizeOf(row: TimedRow): Long = 8L + (if (row.row == null) 0 else row.row.length)

  /** Number of rows at or before the time. */
  private def upperBound(rows: ArrayBuffer[TimedRow], time: Long): Int = {
    var low = 0
    var high = rows.size
    while (low < high) {
      val middle = (low + high) >>> 1
      if (rows(middle).time <= time) low = middle + 1 else high = middle
    }
    low
  }

  private final class Page(val number: Int, var firstTime: Long) {
    var rows: ArrayBuffer[TimedRow] = _
    var bytes = 0L
    var storedCount = 0
    var isStored = false
    var dirty = false
    def count: Int = if (rows == null) storedCount else rows.size
  }
}

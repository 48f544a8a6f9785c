package rejoin.core.state

import java.util

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

import rejoin.core.row.{CellReader, CellWriter, Envelope, KeptRow}
import rejoin.core.time.DueIndex

/** One stored row of one join side.
  *
  * @param id
  *   distinguishes the rows of one join key: the unique key, the whole row, or nothing
  * @param copies
  *   how often an equal row was added; above 1 only without a unique key
  * @param matches
  *   matching rows of the other side, where the side keeps that number; below zero where the
  *   deletion of an expired row came after all
  */
final class StoredRow(val id: Array[Byte], val row: Array[Byte], var copies: Long, var matches: Long) {

  /** Processing time of the last write of its own; kept where rows expire. */
  var written = 0L
}

/** The rows of one side under one join key, in pages of a few kB.
  *
  * {{{
  * one page  : inside the join key's header cell           (almost every key)
  * n pages   : cells 'L'/'R' + page + key, by linear hashing of the row's id
  * }}}
  * A change costs one page however many rows the key has: the table grows by splitting a single
  * page and shrinks by merging a single one.
  *
  * With a TTL, a row is gone at its last write plus `ttlMs` exactly: expired rows are dropped when their page
  * is read. A page stands in the due index at its first expiry.
  *
  * @param ttlMs
  *   0: rows are kept for ever, and nothing is stored for that
  * @param format
  *   which further facts are stored with each row; 0, for none, is not written
  */
final class SideRows(
    pageTag: Char,
    side: Int,
    keepsMatches: Boolean,
    idIsRow: Boolean,
    ttlMs: Long,
    format: Int = 0) {
  import SideRows._

  private val pages = new PageStore[RowPage](pageTag, _ => new RowPage)
  private val entry = new CellWriter
  private var expiries: DueIndex = _
  private var key: Array[Byte] = _
  private var pageCount = 1
  private var bytes = 0L
  private var now = 0L

  /** The page inside the header cell; null where it has not been needed, or there are several. */
  private var onlyPage: RowPage = _

  /** First and last time of the latest run of refreshes, in which no two are `ttlMs` or more apart. */
  private var refreshedFrom = 0L
  private var refreshedLast = 0L

  /** Rows under the key, copies counted; includes expired rows of pages that have not been read. */
  var rows = 0L

  /** Rows under the key as the header cell says. */
  var storedRows = 0L

  /** Whether expired rows have been dropped since `reset`. */
  var hasExpired = false

  def reset(key: Array[Byte], state: KeyedState, now: Long): Unit = {
    this.key = key
    this.now = now
    pages.reset(key, state)
    refreshedFrom = 0L
    refreshedLast = 0L
    storedRows = 0L
    hasExpired = false
    pageCount = 1
    bytes = 0L
    rows = 0L
    onlyPage = null
  }

  def find(id: Array[Byte]): StoredRow = pageOf(id).find(id)

  def insert(row: StoredRow): Unit = {
    row.written = now
    pageOf(row.id).add(row)
    rows += row.copies
    bytes += sizeOf(row)
    if (pageCount > 1 || bytes > PageBytes) grow()
  }

  /** Adds or removes copies of a stored row; none left removes it. */
  def changeCopies(row: StoredRow, by: Long, matches: Long): Unit = {
    row.copies += by
    row.matches = matches
    row.written = now
    rows += by
    val page = pageOf(row.id)
    page.isDirty = true
    if (row.copies == 0) {
      page.remove(row)
      bytes -= sizeOf(row)
      if (pageCount > 1) shrink()
    }
  }

  def changeMatches(row: StoredRow, by: Long): Unit = {
    row.matches += by
    row.written = now
    if (pageCount > 1) pageOf(row.id).isDirty = true
  }

  /** Counts as a write of every row that has not expired; no row is read for it. */
  def refresh(): Unit = {
    if (now - refreshedLast >= ttlMs) refreshedFrom = now
    refreshedLast = now
  }

  /** A row that was alive at the first refresh of the run expires `ttlMs` after the last one. */
  private def expiryOf(row: StoredRow): Long =
    (if (refreshedFrom < row.written + ttlMs) math.max(row.written, refreshedLast) else row.written) + ttlMs

  /** Merges the pages that expired rows have left sparse; to be called before the rows are counted and written. */
  def compact(): Unit = if (hasExpired) shrink()

  /** Reads a page that the due index has given out; whether it has to be written. */
  def visit(number: Int): Boolean = {
    val isDue = number < pageCount && page(number).dueSlot < DueIndex.slotOf(now)
    if (isDue) {
      page(number).dueSlot = NotDue
      page(number).isDirty = true
    }
    isDue
  }

  /** Removes all rows, without reading their pages. */
  def clear(): Unit = {
    if (pageCount > 1) (0 until pageCount).foreach(pages.remove)
    pageCount = 1
    bytes = 0L
    rows = 0L
    onlyPage = null
  }

  /** Visits every stored row; the visitor may change match counts but not add or remove rows. */
  def foreach(visit: StoredRow => Unit): Unit = {
    var number = 0
    while (number < pageCount) {
      page(number).foreach(visit)
      number += 1
    }
  }

  def exists(test: StoredRow => Boolean): Boolean = {
    var number = 0
    while (number < pageCount && !page(number).exists(test)) number += 1
    number < pageCount
  }

  /** Visits the stored rows as they are displayed. */
  def show(visit: KeptRow => Unit): Unit =
    foreach { row =>
      val written = if (ttlMs > 0) row.written else Envelope.NoTime
      val facts =
        (if (idIsRow) Seq("copies" -> row.copies) else Nil) ++
          (if (keepsMatches) Seq("matches" -> row.matches) else Nil) ++
          (if (ttlMs > 0) Seq("written" -> written) else Nil)
      visit(KeptRow(side, row.row, written, facts))
    }

  private def pageOf(id: Array[Byte]): RowPage = page(if (pageCount == 1) 0 else pageNumber(id, pageCount))

  private def page(number: Int): RowPage =
    if (pageCount > 1) pages.page(number)
    else {
      if (onlyPage == null) onlyPage = new RowPage
      onlyPage
    }

  private def grow(): Unit =
    while (bytes > PageBytes * pageCount) {
      if (pageCount == 1) pages.put(0, page(0))
      val source = pages.page(pageCount - Integer.highestOneBit(pageCount))
      val added = new RowPage
      pages.put(pageCount, added)
      pageCount += 1
      source.moveTo(added)(row => pageNumber(row.id, pageCount) == added.number)
    }

  private def shrink(): Unit =
    while (pageCount > 1 && bytes < PageBytes * pageCount / 4) {
      pageCount -= 1
      val target = pages.page(pageCount - Integer.highestOneBit(pageCount))
      pages.page(pageCount).moveTo(target)(_ => true)
      pages.remove(pageCount)
      if (pageCount == 1) {
        onlyPage = target
        pages.remove(0)
      }
    }

  /** Reads this side's part of the header cell. */
  def read(in: CellReader): Unit = {
    val first = in.int()
    val found = if (first == 0) in.int() else 0
    require(
      found == format,
      "the state was written with TTL where there is none now, or the other way round: start with an empty checkpoint")
    pageCount = if (first == 0) in.int() else first
    rows = in.varLong()
    storedRows = rows
    bytes = in.varLong()
    if (ttlMs > 0) {
      refreshedFrom = in.varLong()
      refreshedLast = in.varLong()
    }
    if (pageCount == 1) page(0).read(in)
  }

  /** Writes this side's part of the header cell, and the pages that changed. */
  def write(out: CellWriter, expiries: DueIndex): Unit = {
    this.expiries = expiries
    if (format != 0) out.varLong(0L).varLong(format.toLong)
    out.varLong(pageCount.toLong).varLong(rows).varLong(bytes)
    if (ttlMs > 0) out.varLong(refreshedFrom).varLong(refreshedLast)
    if (pageCount == 1) page(0).write(out)
    pages.write()
  }

  /** Some of the rows under the key; with a TTL it holds none that has expired. */
  private final class RowPage extends Page {
    private val items = new util.ArrayList[StoredRow](1)

    /** The slot of the due index in which the page stands. */
    var dueSlot: Long = NotDue

    def add(row: StoredRow): Unit = {
      items.add(row)
      isDirty = true
    }

    def find(id: Array[Byte]): StoredRow = {
      var i = 0
      while (i < items.size && !util.Arrays.equals(items.get(i).id, id)) i += 1
      if (i < items.size) items.get(i) else null
    }

    def remove(row: StoredRow): Unit = isDirty |= items.remove(row)

    def foreach(visit: StoredRow => Unit): Unit = {
      var i = 0
      while (i < items.size) {
        visit(items.get(i))
        i += 1
      }
    }

    def exists(test: StoredRow => Boolean): Boolean = {
      var i = 0
      while (i < items.size && !test(items.get(i))) i += 1
      i < items.size
    }

    def moveTo(target: RowPage)(moves: StoredRow => Boolean): Unit = {
      removeWhere(moves)(target.add)
      isDirty = true
      target.isDirty = true
    }

    private def removeWhere(goes: StoredRow => Boolean)(removed: StoredRow => Unit): Unit =
      isDirty |= items.removeIf { row =>
        val isGone = goes(row)
        if (isGone) removed(row)
        isGone
      }

    def read(in: CellReader): Unit = {
      if (ttlMs > 0) dueSlot = in.signed()
      val count = in.int()
      items.ensureCapacity(count)
      while (items.size < count) {
        val row = in.blob()
        val id = if (idIsRow) row else in.blob()
        val copies = if (idIsRow) in.varLong() else 1L
        val stored = new StoredRow(id, row, copies, if (keepsMatches) in.varLong() else 0L)
        if (ttlMs > 0) stored.written = in.varLong()
        items.add(stored)
      }
      if (ttlMs > 0)
        removeWhere(row => expiryOf(row) <= now) { row =>
          rows -= row.copies
          bytes -= sizeOf(row)
          hasExpired = true
        }
    }

    def write(out: CellWriter): Unit = {
      if (ttlMs > 0) {
        register()
        out.signed(dueSlot)
      }
      out.varLong(items.size.toLong)
      foreach { row =>
        out.blob(row.row)
        if (idIsRow) out.varLong(row.copies) else out.blob(row.id)
        if (keepsMatches) out.varLong(row.matches)
        if (ttlMs > 0) out.varLong(row.written)
      }
    }

    /** Puts the page into the due index unless it stands there early enough. */
    private def register(): Unit = {
      var first = Long.MaxValue
      foreach(row => first = math.min(first, expiryOf(row)))
      val slot = DueIndex.slotOf(first)
      if (!items.isEmpty && slot < dueSlot) {
        expiries.register(slot, entry.reset().varLong(side.toLong).varLong(number.toLong).blob(key).result())
        dueSlot = slot
      }
    }
  }
}

object SideRows {

  /** A page splits when the mean page of its key passes this size. */
  val PageBytes = 4096L

  private val NotDue: Long = Long.MaxValue

  private def sizeOf(row: StoredRow): Long =
    row.row.length + 4L + (if (row.id eq row.row) 0L else row.id.length.toLong)

  private def pageNumber(id: Array[Byte], pageCount: Int): Int = {
    val hash = Murmur3_x86_32.hashUnsafeBytes(id, Platform.BYTE_ARRAY_OFFSET.toLong, id.length, 7)
    val level = Integer.highestOneBit(pageCount)
    val wide = hash & (2 * level - 1)
    if (wide < pageCount) wide else hash & (level - 1)
  }
}

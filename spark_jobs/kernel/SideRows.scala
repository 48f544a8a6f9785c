package org.apache.spark.sql.rejoin

import java.util

import scala.collection.mutable

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** One stored row of one join side.
  *
  * @param id
  *   what tells rows of one join key apart: the unique key, the whole row, or nothing
  * @param copies
  *   how often an equal row was added; above 1 only without a unique key
  * @param matches
  *   rows of the other side that pass the residual; kept on outer sides with a residual only
  */
final class StoredRow(val id: Array[Byte], val row: Array[Byte], var copies: Long, var matches: Long)

/** The rows of one side under one join key, in pages of a few kB.
  *
  * {{{
  * one page  : inside the join key's header cell           (almost every key)
  * n pages   : cells 'L'/'R' + page + key, by linear hashing of the row's id
  * }}}
  * A change costs one page however many rows the key has: the table grows by splitting a single
  * page and shrinks by merging a single one.
  */
final class SideRows(pageTag: Char, keepsMatches: Boolean, idIsRow: Boolean) {
  import SideRows._

  private var key: Array[Byte] = _
  private var state: KeyedState = _
  private var pageCount = 1
  private var storedPages = 1
  private var bytes = 0L
  private var firstPage: Page = _
  private val furtherPages = new mutable.LongMap[Page]

  /** Rows under the key, copies counted. */
  var rows = 0L

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    pageCount = 1
    storedPages = 1
    bytes = 0L
    rows = 0L
    firstPage = null
    if (furtherPages.nonEmpty) furtherPages.clear()
  }

  def find(id: Array[Byte]): StoredRow = pageOf(id).find(id)

  def insert(row: StoredRow): Unit = {
    pageOf(row.id).add(row)
    rows += row.copies
    bytes += sizeOf(row)
    if (pageCount > 1 || bytes > PageBytes) grow()
  }

  /** Adds or removes copies of a stored row; none left removes it. */
  def changeCopies(row: StoredRow, by: Long): Unit = {
    row.copies += by
    rows += by
    val page = pageOf(row.id)
    page.dirty = true
    if (row.copies == 0) {
      page.remove(row)
      bytes -= sizeOf(row)
      if (pageCount > 1) shrink()
    }
  }

  def changeMatches(row: StoredRow, by: Long): Unit = {
    row.matches += by
    if (pageCount > 1) pageOf(row.id).dirty = true
  }

  /** Visits every stored row; the visitor may change match counts but not add or remove rows. */
  def foreach(visit: StoredRow => Unit): Unit = {
    var number = 0
    while (number < pageCount) {
      page(number).foreach(visit)
      number += 1
    }
  }

  private def pageOf(id: Array[Byte]): Page =
    if (pageCount == 1) page(0) else page(pageNumber(id, pageCount))

  private def page(number: Int): Page =
    if (number == 0) {
      if (firstPage == null) firstPage = load(0)
      firstPage
    } else furtherPages.getOrElseUpdate(number.toLong, load(number))

  private def load(number: Int): Page = {
    val page = new Page
    if (storedPages > 1 && number < storedPages) {
      val cell = state.get(Cell.page(pageTag, number, key))
      if (cell != null) readRows(new CellReader(cell).version(), page)
    }
    page
  }

  private def grow(): Unit =
    while (bytes > PageBytes * pageCount) {
      val added = pageCount
      val source = page(added - Integer.highestOneBit(added))
      page(added)
      pageCount += 1
      source.moveTo(page(added), row => pageNumber(row.id, pageCount) == added)
    }

  private def shrink(): Unit =
    while (pageCount > 1 && bytes < PageBytes * pageCount / 4) {
      val removed = pageCount - 1
      page(removed).moveTo(page(removed - Integer.highestOneBit(removed)), _ => true)
      pageCount -= 1
    }

  /** Reads this side's part of the header cell. */
  def read(in: CellReader): Unit = {
    pageCount = in.int()
    storedPages = pageCount
    rows = in.varLong()
    bytes = in.varLong()
    if (pageCount == 1) {
      firstPage = new Page
      readRows(in, firstPage)
    }
  }

  /** Writes this side's part of the header cell, and the pages that changed. */
  def write(out: CellWriter, pageOut: CellWriter): Unit = {
    out.varLong(pageCount.toLong).varLong(rows).varLong(bytes)
    if (pageCount == 1) writeRows(out, page(0))
    else {
      if (firstPage != null) writePage(0, firstPage, pageOut)
      furtherPages.foreach { case (number, page) => if (number < pageCount) writePage(number.toInt, page, pageOut) }
    }
    dropPages()
  }

  private def writePage(number: Int, page: Page, out: CellWriter): Unit =
    if (page.dirty || storedPages == 1) {
      writeRows(out.reset().byte(Codec.Version), page)
      state.put(Cell.page(pageTag, number, key), out.result())
    }

  private def dropPages(): Unit = {
    val first = if (pageCount == 1) 0 else pageCount
    if (storedPages > 1)
      (first until storedPages).foreach(number => state.remove(Cell.page(pageTag, number, key)))
    storedPages = pageCount
  }

  private def readRows(in: CellReader, page: Page): Unit = {
    var left = in.int()
    while (left > 0) {
      val row = in.blob()
      val id = if (idIsRow) row else in.blob()
      val copies = if (idIsRow) in.varLong() else 1L
      page.add(new StoredRow(id, row, copies, if (keepsMatches) in.varLong() else 0L))
      left -= 1
    }
    page.dirty = false
  }

  private def writeRows(out: CellWriter, page: Page): Unit = {
    out.varLong(page.size.toLong)
    page.foreach { row =>
      out.blob(row.row)
      if (idIsRow) out.varLong(row.copies) else out.blob(row.id)
      if (keepsMatches) out.varLong(row.matches)
    }
    page.dirty = false
  }
}

object SideRows {

  /** A page splits when the mean page of its key passes this size. */
  val PageBytes = 4096L

  private def sizeOf(row: StoredRow): Long =
    row.row.length + 4L + (if (row.id eq row.row) 0L else row.id.length.toLong)

  private def pageNumber(id: Array[Byte], pageCount: Int): Int = {
    val hash = Murmur3_x86_32.hashUnsafeBytes(id, Platform.BYTE_ARRAY_OFFSET.toLong, id.length, 7)
    val level = Integer.highestOneBit(pageCount)
    val wide = hash & (2 * level - 1)
    if (wide < pageCount) wide else hash & (level - 1)
  }

  private final class Page {
    private var items = new Array[StoredRow](1)
    var size = 0
    var dirty = false

    def add(row: StoredRow): Unit = {
      if (size == items.length) items = util.Arrays.copyOf(items, size * 2)
      items(size) = row
      size += 1
      dirty = true
    }

    def find(id: Array[Byte]): StoredRow = {
      val at = indexOf(id)
      if (at < 0) null else items(at)
    }

    def remove(row: StoredRow): Unit = {
      val at = indexOf(row.id)
      size -= 1
      System.arraycopy(items, at + 1, items, at, size - at)
      items(size) = null
      dirty = true
    }

    def foreach(visit: StoredRow => Unit): Unit = {
      var i = 0
      while (i < size) {
        visit(items(i))
        i += 1
      }
    }

    def moveTo(target: Page, moves: StoredRow => Boolean): Unit = {
      var kept = 0
      var i = 0
      while (i < size) {
        val row = items(i)
        if (moves(row)) target.add(row)
        else {
          items(kept) = row
          kept += 1
        }
        i += 1
      }
      util.Arrays.fill(items.asInstanceOf[Array[AnyRef]], kept, size, null)
      size = kept
      dirty = true
      target.dirty = true
    }

    private def indexOf(id: Array[Byte]): Int = {
      var i = 0
      while (i < size && !util.Arrays.equals(items(i).id, id)) i += 1
      if (i < size) i else -1
    }
  }
}

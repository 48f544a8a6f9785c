package rejoin.core.state

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter}

/** A row that is kept by its time. */
trait Timed {
  def time: Long
}

/** The rows of one key by (time, arrival): a tree of pages of a few kB.
  *
  * {{{
  * root page     : inside the key's header cell                  (almost every key has no other)
  * further pages : cells tag + page number + key; rows, or the list of the pages below
  * }}}
  * Adding a row, looking one up, visiting a range of times and removing the oldest rows each touch the pages
  * concerned only, however many rows the key has. Rows leave at the old end, so pages never merge.
  *
  * [[TimePages]] and [[IntervalRows]] say how their rows are written and when a page splits.
  */
abstract class TimeTree[R >: Null <: Timed](pageTag: Char) {
  protected val pages = new PageStore[TimePage](pageTag, new TimePage(_))
  protected var root = new TimePage(0)

  var size = 0L

  /** The bytes that a row counts for, of those with which a page splits. */
  protected def sizeOf(row: R): Int

  /** A page of rows with more bytes splits. */
  protected def maxBytes: Int

  /** A page with more pages below it splits. */
  protected def maxChildren: Int

  /** Whether a page that grows at the new end splits off its last entry, so that full pages stay full. */
  protected def splitsAtEnd: Boolean

  /** Whether a page keeps its number while it is the root. */
  protected def numbersRoot: Boolean

  protected def readPage(page: TimePage, in: CellReader): Unit
  protected def writePage(page: TimePage, out: CellWriter): Unit

  /** Reads the header's part. */
  def read(in: CellReader): Unit

  /** Writes the header's part, and the pages that changed. */
  def write(out: CellWriter): Unit

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    pages.reset(key, state)
    root = new TimePage(0)
    size = 0L
  }

  def isEmpty: Boolean = size == 0

  /** Time of the first row; only where not empty. */
  def firstTime: Long = root.firstTime

  /** Time of the second row; only where there are two. */
  def secondTime: Long = secondTime(root)

  /** Time of the first row after the time, Long.MaxValue where there is none. */
  def firstAfter(time: Long): Long = if (isEmpty) Long.MaxValue else firstAfter(root, time)

  /** Adds a row behind those of its time; with `replace`, in place of the last of them. */
  def add(row: R, replace: Boolean = false): Unit = {
    if (isEmpty && numbersRoot) root.number = pages.takeNumber()
    val upper = insert(root, row, replace, isLast = true)
    if (upper != null) {
      val lower = root
      root = new TimePage(lower.level + 1)
      root.children += childOf(lower)
      root.children += childOf(upper)
    }
  }

  /** The last row at or before the time, or null. */
  def floor(time: Long): R = {
    var page = root
    while (page.level > 0) page = below(page, page.childAt(time))
    val at = page.countUpTo(time)
    if (at > 0) page.rows(at - 1) else null
  }

  /** Visits all rows in order. */
  def foreach(visit: R => Unit): Unit =
    foreach(Long.MinValue, Long.MaxValue) { row =>
      visit(row)
      false
    }

  /** Visits all rows within the times, both included; `visit` says whether it has changed the row. */
  def foreach(from: Long, to: Long)(visit: R => Boolean): Unit = if (!isEmpty && from <= to) scan(root, from, to, visit)

  /** Removes all rows up to the time and visits them, in order. */
  def takeUpTo(time: Long)(visit: R => Unit): Unit =
    if (!isEmpty && root.firstTime <= time) {
      cut(root, time, visit)
      lower()
    }

  /** Removes the last row of the time that passes the test; whether there was one. */
  def removeLast(time: Long)(test: R => Boolean): Boolean = {
    val isFound = !isEmpty && remove(root, time, test)
    if (isFound) lower()
    isFound
  }

  /** After a removal: the tree is as high as it has to be. */
  private def lower(): Unit = {
    while (root.level > 0 && root.children.size == 1) unwrap()
    size = root.count
    if (isEmpty) root = new TimePage(0)
  }

  /** Removes all rows up to the time; pages that go as a whole are not read. */
  def dropUpTo(time: Long): Unit = takeUpTo(time)(null)

  private def secondTime(page: TimePage): Long =
    if (page.level > 0) {
      val time = secondTime(below(page, 0))
      if (time == Long.MaxValue && page.children.size > 1) page.children(1).firstTime else time
    } else if (page.rows.size > 1) page.rows(1).time
    else Long.MaxValue

  private def firstAfter(page: TimePage, time: Long): Long =
    if (page.level > 0) {
      val index = page.childAt(time)
      val found = firstAfter(below(page, index), time)
      if (found == Long.MaxValue && index + 1 < page.children.size) page.children(index + 1).firstTime else found
    } else {
      val index = page.countUpTo(time)
      if (index < page.rows.size) page.rows(index).time else Long.MaxValue
    }

  /** Gives the new right neighbour of a page that had to split, else null. */
  private def insert(page: TimePage, row: R, replace: Boolean, isLast: Boolean): TimePage = {
    page.isDirty = true
    if (page.level == 0) {
      val before = page.countUpTo(row.time)
      val replaces = replace && before > 0 && page.rows(before - 1).time == row.time
      val at = if (replaces) before - 1 else before
      if (replaces) page.replace(at, row) else page.insert(at, row)
      if (!replaces) size += 1
      if (page.bytes <= maxBytes || page.rows.size == 1) null
      else page.split(if (splitsAtEnd && isLast && at == page.rows.size - 1) at else page.rows.size / 2)
    } else {
      val index = page.childAt(row.time)
      val isLastChild = isLast && index == page.children.size - 1
      val child = below(page, index)
      val upper = insert(child, row, replace, isLastChild)
      page.children(index).refresh(child)
      if (upper != null) page.children.insert(index + 1, childOf(upper))
      if (page.children.size <= maxChildren) null
      else page.split(if (splitsAtEnd && isLastChild) page.children.size - 1 else page.children.size / 2)
    }
  }

  private def scan(page: TimePage, from: Long, to: Long, visit: R => Boolean): Unit =
    if (page.level == 0) {
      var i = page.countBefore(from)
      while (i < page.rows.size && page.rows(i).time <= to) {
        if (visit(page.rows(i))) page.isDirty = true
        i += 1
      }
    } else {
      var i = page.childBefore(from)
      while (i < page.children.size && page.children(i).firstTime <= to) {
        scan(below(page, i), from, to, visit)
        i += 1
      }
    }

  /** Makes the root's only child the root, and so part of the header. */
  private def unwrap(): Unit = {
    root = below(root, 0)
    pages.remove(root.number)
    if (!numbersRoot) root.number = 0
  }

  private def cut(page: TimePage, time: Long, visit: R => Unit): Unit = {
    page.isDirty = true
    if (page.level == 0) page.removeFirst(page.countUpTo(time), visit)
    else {
      val whole = page.children.view.drop(1).takeWhile(_.firstTime <= time).size
      (0 until whole).foreach(drop(page, _, visit))
      page.children.remove(0, whole)
      val child = below(page, 0)
      cut(child, time, visit)
      if (child.isEmpty) {
        pages.remove(child.number)
        page.children.remove(0)
      } else page.children(0).refresh(child)
    }
  }

  private def remove(page: TimePage, time: Long, test: R => Boolean): Boolean = {
    val isFound = if (page.level == 0) removeRow(page, time, test) else removeBelow(page, time, test)
    if (isFound) page.isDirty = true
    isFound
  }

  private def removeRow(page: TimePage, time: Long, test: R => Boolean): Boolean = {
    var i = page.countUpTo(time) - 1
    while (i >= 0 && page.rows(i).time == time && !test(page.rows(i))) i -= 1
    val isFound = i >= 0 && page.rows(i).time == time
    if (isFound) page.removeAt(i)
    isFound
  }

  /** Equal times may stand on several pages. */
  private def removeBelow(page: TimePage, time: Long, test: R => Boolean): Boolean = {
    var i = page.childAt(time)
    var isFound = remove(below(page, i), time, test)
    while (!isFound && i > 0 && page.children(i).firstTime == time) {
      i -= 1
      isFound = remove(below(page, i), time, test)
    }
    if (isFound) {
      val child = below(page, i)
      if (child.isEmpty) {
        pages.remove(child.number)
        page.children.remove(i)
      } else page.children(i).refresh(child)
    }
    isFound
  }

  /** Removes a child and all below it. */
  private def drop(page: TimePage, index: Int, visit: R => Unit): Unit = {
    if (page.level > 1) below(page, index).children.indices.foreach(drop(below(page, index), _, visit))
    else if (visit != null) below(page, index).rows.foreach(visit)
    pages.remove(page.children(index).number)
  }

  private def below(page: TimePage, index: Int): TimePage = pages.page(page.children(index).number, page.level - 1)

  private def childOf(page: TimePage): Child = {
    if (page.number == 0) pages.add(page) else pages.put(page.number, page)
    val child = new Child(page.number)
    child.refresh(page)
    child
  }

  /** What a page of the level above notes of a page below it: where it is, and what is in it. */
  protected final class Child(val number: Int, var firstTime: Long = 0L, var count: Long = 0L, var bytes: Long = 0L) {
    def refresh(page: TimePage): Unit = {
      firstTime = page.firstTime
      count = page.count
      bytes = page.bytes
    }
  }

  /** Level 0 has rows, any other has the pages of the level below. */
  protected final class TimePage(val level: Int) extends Page {
    val rows: ArrayBuffer[R] = if (level == 0) new ArrayBuffer[R](4) else null
    val children: ArrayBuffer[Child] = if (level == 0) null else new ArrayBuffer[Child]
    var bytes = 0L

    def isEmpty: Boolean = if (level == 0) rows.isEmpty else children.isEmpty
    def firstTime: Long = if (level == 0) rows(0).time else children(0).firstTime
    def count: Long = if (level == 0) rows.size.toLong else children.view.map(_.count).sum

    /** Number of rows at or before the time. */
    def countUpTo(time: Long): Int = TimeTree.search(rows.size, rows(_).time <= time)
    def countBefore(time: Long): Int = TimeTree.search(rows.size, rows(_).time < time)

    /** The last child that starts at or before the time, else the first. */
    def childAt(time: Long): Int = math.max(TimeTree.search(children.size, children(_).firstTime <= time) - 1, 0)

    /** The first child that may have rows of the time: equal times may stand on several pages. */
    def childBefore(time: Long): Int = math.max(TimeTree.search(children.size, children(_).firstTime < time) - 1, 0)

    def insert(at: Int, row: R): Unit = {
      rows.insert(at, row)
      bytes += sizeOf(row)
    }

    def replace(at: Int, row: R): Unit = {
      bytes += sizeOf(row) - sizeOf(rows(at))
      rows(at) = row
    }

    def removeAt(at: Int): Unit = bytes -= sizeOf(rows.remove(at))

    def removeFirst(count: Int, visit: R => Unit): Unit = {
      rows.view.take(count).foreach { row =>
        bytes -= sizeOf(row)
        if (visit != null) visit(row)
      }
      rows.remove(0, count)
    }

    /** Moves what stands from there on to a new page. */
    def split(at: Int): TimePage = {
      val upper = new TimePage(level)
      if (level > 0) {
        upper.children ++= children.view.drop(at)
        children.takeInPlace(at)
      } else {
        upper.rows ++= rows.view.drop(at)
        upper.bytes = upper.rows.view.map(sizeOf(_).toLong).sum
        rows.takeInPlace(at)
        bytes -= upper.bytes
      }
      upper
    }

    def read(in: CellReader): Unit = readPage(this, in)
    def write(out: CellWriter): Unit = writePage(this, out)
  }
}

object TimeTree {

  /** Length of the prefix for which the condition holds. */
  private def search(size: Int, holds: Int => Boolean): Int = {
    var low = 0
    var high = size
    while (low < high) {
      val middle = (low + high) >>> 1
      if (holds(middle)) low = middle + 1 else high = middle
    }
    low
  }
}

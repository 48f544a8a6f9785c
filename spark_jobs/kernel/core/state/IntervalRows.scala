package rejoin.core.state

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec, KeptRow}

/** A row in the state of an interval join; on outer sides it knows whether it was ever joined. */
final class CachedRow(val time: Long, val row: Array[Byte], var isMatched: Boolean)

/** The rows of one side under one join key by (time, arrival): a tree of pages of a few kB.
  *
  * {{{
  * root page     : inside the key's header cell                  (almost every key has no other)
  * further pages : cells tag + page number + key; rows, or the list of the pages below
  * }}}
  * Adding a row, reading a range of times and marking a row as matched each touch the pages
  * concerned only, however many rows the key has. Rows leave at the old end, so pages never merge.
  */
final class IntervalRows(pageTag: Char) {
  import IntervalRows._

  private var key: Array[Byte] = _
  private var state: KeyedState = _
  private var root: Page = _
  private var nextNumber = 1
  private val removed = new ArrayBuffer[Int]

  var size = 0L

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    root = new Page(0)
    nextNumber = 1
    removed.clear()
    size = 0L
  }

  def isEmpty: Boolean = size == 0

  /** Time of the first row; only where not empty. */
  def firstTime: Long = root.firstTime

  /** Adds a row behind those of its time. */
  def add(row: CachedRow): Unit = {
    val upper = insert(root, row, isLast = true)
    if (upper != null) {
      val lower = root
      root = new Page(lower.level + 1)
      root.children += childOf(lower)
      root.children += childOf(upper)
    }
    size += 1
  }

  /** Shows all rows within the times, both included; `visit` says whether it has changed the row. */
  def foreach(from: Long, to: Long)(visit: CachedRow => Boolean): Unit =
    if (!isEmpty && from <= to) scan(root, from, to, visit)

  /** The cached rows for people. */
  def show(side: Int, isOuter: Boolean)(visit: KeptRow => Unit): Unit =
    foreach(Long.MinValue, Long.MaxValue) { cached =>
      visit(KeptRow(side, cached.row, cached.time, if (isOuter) Seq("matched" -> cached.isMatched) else Nil))
      false
    }

  /** Removes all rows up to the time and shows them, in order. */
  def takeUpTo(time: Long)(visit: CachedRow => Unit): Unit = removeUpTo(time, visit)

  /** Removes all rows up to the time; pages that go as a whole are not read. */
  def dropUpTo(time: Long): Unit = removeUpTo(time, null)

  private def insert(page: Page, row: CachedRow, isLast: Boolean): Page = {
    page.isDirty = true
    if (page.level == 0) {
      val at = page.countUpTo(row.time)
      page.rows.insert(at, row)
      page.bytes += sizeOf(row)
      if (page.bytes <= PageBytes || page.rows.size == 1) null
      else page.split(if (isLast && at == page.rows.size - 1) at else page.rows.size / 2)
    } else {
      val index = page.childAt(row.time)
      val child = page.children(index)
      val isLastChild = isLast && index == page.children.size - 1
      val upper = insert(load(child, page.level - 1), row, isLastChild)
      child.refresh()
      if (upper != null) page.children.insert(index + 1, childOf(upper))
      if (page.children.size <= MaxChildren) null
      else page.split(if (isLastChild) page.children.size - 1 else page.children.size / 2)
    }
  }

  private def scan(page: Page, from: Long, to: Long, visit: CachedRow => Boolean): Unit =
    if (page.level == 0) {
      var i = page.countBefore(from)
      while (i < page.rows.size && page.rows(i).time <= to) {
        if (visit(page.rows(i))) page.isDirty = true
        i += 1
      }
    } else {
      var i = page.childBefore(from)
      while (i < page.children.size && page.children(i).firstTime <= to) {
        scan(load(page.children(i), page.level - 1), from, to, visit)
        i += 1
      }
    }

  private def removeUpTo(time: Long, visit: CachedRow => Unit): Unit =
    if (!isEmpty && root.firstTime <= time) {
      cut(root, time, visit)
      while (root.level > 0 && root.children.size <= 1)
        root = if (root.children.isEmpty) new Page(0) else unwrap(root.children(0), root.level - 1)
      size = root.count
    }

  /** The page of a root's only child, which becomes the root and so part of the header. */
  private def unwrap(child: Child, level: Int): Page = {
    removed += child.number
    load(child, level)
  }

  private def cut(page: Page, time: Long, visit: CachedRow => Unit): Unit = {
    page.isDirty = true
    if (page.level == 0) {
      val at = page.countUpTo(time)
      if (visit != null) page.rows.view.take(at).foreach(visit)
      page.bytes -= page.rows.view.take(at).map(sizeOf).sum
      page.rows.remove(0, at)
    } else {
      val whole = page.children.view.drop(1).takeWhile(_.firstTime <= time).size
      page.children.view.take(whole).foreach(drop(_, page.level - 1, visit))
      page.children.remove(0, whole)
      val child = page.children(0)
      cut(load(child, page.level - 1), time, visit)
      if (child.page.isEmpty) {
        removed += child.number
        page.children.remove(0)
      } else child.refresh()
    }
  }

  private def drop(child: Child, level: Int, visit: CachedRow => Unit): Unit = {
    removed += child.number
    if (level > 0) load(child, level).children.foreach(drop(_, level - 1, visit))
    else if (visit != null) load(child, 0).rows.foreach(visit)
  }

  private def childOf(page: Page): Child = {
    val child = new Child(nextNumber, page)
    nextNumber += 1
    child
  }

  private def load(child: Child, level: Int): Page = {
    if (child.page == null) {
      child.page = new Page(level)
      readPage(child.page, new CellReader(state.get(Cell.page(pageTag, child.number, key))).version())
      child.page.isDirty = false
    }
    child.page
  }

  /** Reads the header's part. */
  def read(in: CellReader): Unit = {
    nextNumber = in.int()
    root = new Page(in.int())
    readPage(root, in)
    size = root.count
  }

  /** Writes the header's part, and the pages that changed. */
  def write(out: CellWriter, pageOut: CellWriter): Unit = {
    removed.foreach(number => state.remove(Cell.page(pageTag, number, key)))
    out.varLong(nextNumber.toLong).varLong(root.level.toLong)
    writePage(out, root)
    if (root.level > 0) writeChildren(root, pageOut)
  }

  private def writeChildren(page: Page, out: CellWriter): Unit =
    page.children.foreach { child =>
      if (child.page != null) {
        if (child.page.isDirty) {
          writePage(out.reset().byte(Codec.Version), child.page)
          state.put(Cell.page(pageTag, child.number, key), out.result())
        }
        if (child.page.level > 0) writeChildren(child.page, out)
      }
    }
}

object IntervalRows {
  private val PageBytes = 4096
  private val MaxChildren = 256

  private def sizeOf(row: CachedRow): Int = 4 + row.row.length

  /** Level 0 has rows, any other has the pages of the level below. */
  private final class Page(val level: Int) {
    val rows: ArrayBuffer[CachedRow] = if (level == 0) new ArrayBuffer[CachedRow](4) else null
    val children: ArrayBuffer[Child] = if (level == 0) null else new ArrayBuffer[Child]
    var bytes = 0
    var isDirty = true

    def isEmpty: Boolean = if (level == 0) rows.isEmpty else children.isEmpty
    def firstTime: Long = if (level == 0) rows(0).time else children(0).firstTime
    def count: Long = if (level == 0) rows.size.toLong else children.view.map(_.count).sum

    /** Number of rows at or before the time. */
    def countUpTo(time: Long): Int = search(rows.size, rows(_).time <= time)
    def countBefore(time: Long): Int = search(rows.size, rows(_).time < time)

    /** The last child that starts at or before the time, else the first. */
    def childAt(time: Long): Int = math.max(search(children.size, children(_).firstTime <= time) - 1, 0)

    /** The first child that may have rows of the time: equal times may stand on several pages. */
    def childBefore(time: Long): Int = math.max(search(children.size, children(_).firstTime < time) - 1, 0)

    /** Moves what stands from there on to a new page. */
    def split(at: Int): Page = {
      val upper = new Page(level)
      if (level > 0) {
        upper.children ++= children.view.drop(at)
        children.takeInPlace(at)
      } else {
        upper.rows ++= rows.view.drop(at)
        upper.bytes = upper.rows.view.map(sizeOf).sum
        rows.takeInPlace(at)
        bytes -= upper.bytes
      }
      upper
    }
  }

  private final class Child(val number: Int, var firstTime: Long, var count: Long) {
    var page: Page = _

    def this(number: Int, page: Page) = {
      this(number, page.firstTime, page.count)
      this.page = page
      page.isDirty = true
    }

    def refresh(): Unit = {
      firstTime = page.firstTime
      count = page.count
    }
  }

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

  /** Times as differences, which wrap around and back where they are far apart. */
  private def readPage(page: Page, in: CellReader): Unit = {
    val count = in.int()
    var time = 0L
    (0 until count).foreach { i =>
      time = if (i == 0) in.signed() else time + in.varLong()
      if (page.level > 0) page.children += new Child(in.int(), time, in.varLong())
      else {
        val isMatched = in.byte() == 1
        val row = new CachedRow(time, in.blob(), isMatched)
        page.rows += row
        page.bytes += sizeOf(row)
      }
    }
  }

  private def writePage(out: CellWriter, page: Page): Unit = {
    out.varLong((if (page.level == 0) page.rows.size else page.children.size).toLong)
    var last = 0L
    def writeTime(time: Long, isFirst: Boolean): Unit = {
      if (isFirst) out.signed(time) else out.varLong(time - last)
      last = time
    }
    if (page.level > 0)
      page.children.foreach { child =>
        writeTime(child.firstTime, child eq page.children(0))
        out.varLong(child.number.toLong).varLong(child.count)
      }
    else
      page.rows.foreach { row =>
        writeTime(row.time, row eq page.rows(0))
        out.byte(if (row.isMatched) 1 else 0).blob(row.row)
      }
  }
}

package rejoin.core.state

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}

/** A part of the rows of one key, or a list of other pages. */
abstract class Page {

  /** The number in the name of its cell; 0 also for a page inside the header cell. */
  var number = 0

  /** Whether the page differs from its cell. */
  var isDirty = true

  def read(in: CellReader): Unit
  def write(out: CellWriter): Unit
}

/** The pages of one key at a time that have cells of their own: read at their first use, written if they have changed.
  *
  * {{{
  * cell tag + page number + key : version, the page
  * }}}
  * All layouts of many rows under one key keep their pages here. Which row stands on which page, and what the
  * key's header cell says of the pages, is up to the layout.
  *
  * @param newPage
  *   an empty page; its argument is the level in a tree of pages
  */
final class PageStore[P >: Null <: Page](tag: Char, newPage: Int => P) {
  private val loaded = new mutable.LongMap[P]
  private val removed = new ArrayBuffer[Int]
  private val out = new CellWriter
  private var key: Array[Byte] = _
  private var state: KeyedState = _

  /** The number for the next page; part of the header cell of layouts that number pages as they come. */
  var nextNumber = 1

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    if (loaded.nonEmpty) loaded.clear()
    removed.clear()
    nextNumber = 1
  }

  def page(number: Int, level: Int = 0): P = {
    val found = loaded.getOrNull(number.toLong)
    if (found == null) load(number, level) else found
  }

  private def load(number: Int, level: Int): P = {
    val page = newPage(level)
    page.number = number
    page.isDirty = false
    page.read(new CellReader(state.get(cell(number))).version())
    loaded(number.toLong) = page
    page
  }

  /** Takes in a page under the next number. */
  def add(page: P): Unit = put(takeNumber(), page)

  def put(number: Int, page: P): Unit = {
    page.number = number
    page.isDirty = true
    loaded(number.toLong) = page
  }

  def takeNumber(): Int = {
    nextNumber += 1
    nextNumber - 1
  }

  /** Removes a page, which need not have been read. */
  def remove(number: Int): Unit = {
    loaded.remove(number.toLong)
    removed += number
  }

  /** Writes what has changed; a number may have been removed and used again. */
  def write(): Unit = {
    removed.foreach(number => state.remove(cell(number)))
    removed.clear()
    loaded.foreachValue { page =>
      if (page.isDirty) {
        page.write(out.reset().byte(Codec.Version))
        state.put(cell(page.number), out.result())
        page.isDirty = false
      }
    }
  }

  private def cell(number: Int): Array[Byte] = Cell.page(tag, number, key)
}

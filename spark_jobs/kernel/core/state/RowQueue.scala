package rejoin.core.state

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter}

/** Rows of one key that wait in arrival order.
  *
  * {{{
  * header               : the last rows, up to a page of them
  * cells tag + 0 ... n-1 + key : full pages, written once
  * }}}
  * Adding a row costs the header, however many wait.
  */
final class RowQueue(pageTag: Char) {
  import RowQueue._

  private val pages = new PageStore(pageTag, _ => new WaitingRows)
  private var fullPages = 0
  private var last = new WaitingRows

  var size = 0L

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    pages.reset(key, state)
    clear()
  }

  def isEmpty: Boolean = size == 0

  def add(kind: Byte, row: Array[Byte]): Unit = {
    last.add(new WaitingRow(kind, row))
    size += 1
    if (last.bytes >= PageBytes) {
      pages.put(fullPages, last)
      fullPages += 1
      last = new WaitingRows
    }
  }

  /** Takes all rows out, the first one first. */
  def drain(visit: (Byte, Array[Byte]) => Unit): Unit = {
    (0 until fullPages).foreach { number =>
      pages.page(number).foreach(visit)
      pages.remove(number)
    }
    last.foreach(visit)
    clear()
  }

  /** Visits all rows, the first one first; they stay. */
  def foreach(visit: (Byte, Array[Byte]) => Unit): Unit = {
    (0 until fullPages).foreach(pages.page(_).foreach(visit))
    last.foreach(visit)
  }

  private def clear(): Unit = {
    fullPages = 0
    if (!last.rows.isEmpty) last = new WaitingRows
    size = 0L
  }

  def read(in: CellReader): Unit = {
    size = in.varLong()
    fullPages = in.int()
    last.read(in)
  }

  def write(out: CellWriter): Unit = {
    last.write(out.varLong(size).varLong(fullPages.toLong))
    pages.write()
  }
}

object RowQueue {
  private val PageBytes = 4096L

  private final class WaitingRow(val kind: Byte, val row: Array[Byte])

  private final class WaitingRows extends Page {
    val rows = new ArrayBuffer[WaitingRow](4)
    var bytes = 0L

    def add(waiting: WaitingRow): Unit = {
      rows += waiting
      bytes += waiting.row.length + 2
    }

    def foreach(visit: (Byte, Array[Byte]) => Unit): Unit = rows.foreach(waiting => visit(waiting.kind, waiting.row))

    def read(in: CellReader): Unit = (0 until in.int()).foreach(_ => add(new WaitingRow(in.byte().toByte, in.blob())))

    def write(out: CellWriter): Unit = {
      out.varLong(rows.size.toLong)
      rows.foreach(waiting => out.byte(waiting.kind.toInt).blob(waiting.row))
    }
  }
}

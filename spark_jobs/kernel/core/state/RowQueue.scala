package rejoin.core.state

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}

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

  private var key: Array[Byte] = _
  private var state: KeyedState = _
  private var fullPages = 0
  private val last = new ArrayBuffer[WaitingRow]
  private var lastBytes = 0L
  private val pageOut = new CellWriter

  var size = 0L

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    fullPages = 0
    last.clear()
    lastBytes = 0L
    size = 0L
  }

  def isEmpty: Boolean = size == 0

  def add(kind: Byte, row: Array[Byte]): Unit = {
    last += new WaitingRow(kind, row)
    lastBytes += row.length + 2
    size += 1
    if (lastBytes >= PageBytes) {
      writeRows(pageOut.reset().byte(Codec.Version), last)
      state.put(Cell.page(pageTag, fullPages, key), pageOut.result())
      fullPages += 1
      last.clear()
      lastBytes = 0L
    }
  }

  /** Takes all rows out, the first one first. */
  def drain(visit: (Byte, Array[Byte]) => Unit): Unit = {
    (0 until fullPages).foreach { number =>
      val cell = Cell.page(pageTag, number, key)
      readRows(new CellReader(state.get(cell)).version())((kind, row) => visit(kind, row))
      state.remove(cell)
    }
    last.foreach(waiting => visit(waiting.kind, waiting.row))
    reset(key, state)
  }

  /** All rows, the first one first; they stay. */
  def foreach(visit: (Byte, Array[Byte]) => Unit): Unit = {
    (0 until fullPages).foreach { number =>
      readRows(new CellReader(state.get(Cell.page(pageTag, number, key))).version())(visit)
    }
    last.foreach(waiting => visit(waiting.kind, waiting.row))
  }

  def read(in: CellReader): Unit = {
    size = in.varLong()
    fullPages = in.int()
    readRows(in) { (kind, row) =>
      last += new WaitingRow(kind, row)
      lastBytes += row.length + 2
    }
  }

  def write(out: CellWriter): Unit = {
    out.varLong(size).varLong(fullPages.toLong)
    writeRows(out, last)
  }
}

object RowQueue {
  private val PageBytes = 4096L

  private final class WaitingRow(val kind: Byte, val row: Array[Byte])

  private def readRows(in: CellReader)(visit: (Byte, Array[Byte]) => Unit): Unit =
    (0 until in.int()).foreach(_ => visit(in.byte().toByte, in.blob()))

  private def writeRows(out: CellWriter, rows: ArrayBuffer[WaitingRow]): Unit = {
    out.varLong(rows.size.toLong)
    rows.foreach(waiting => out.byte(waiting.kind.toInt).blob(waiting.row))
  }
}

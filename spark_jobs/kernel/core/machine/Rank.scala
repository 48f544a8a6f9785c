package rejoin.core.machine

import java.nio.ByteBuffer
import java.util.Arrays

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, GroupBatch, KeptRow, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.{KeyedState, SortedPages, StateCell}
import rejoin.core.time.{GroupState, KeyTtl}

/** Top-N: shows the rows of each key that stand at the places `first` to `last` of an order.
  *
  * {{{
  * cell 'R' + key : version, TTL, number of rows, number of the next row
  * pages 'S'      : order, number of the row as it came -> row
  * }}}
  * Of insertions alone the first `last` rows are kept, of other changes all. Per key and batch only the net
  * change leaves. docs/semantics.md, "Top-N".
  */
final class Rank(spec: RankSpec, columns: RankColumns, outputs: OutputFunctions) extends Machine {
  import Rank._

  private val ttl = new KeyTtl(spec.timing.ttlMs.head)
  private val result = new RankResult(spec, columns, outputs)
  private val header = new StateCell(keyTag)
  private val rows = new SortedPages('S')
  private var size = 0L
  private var next = 0L

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
  }

  private def visit(changes: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(changes.key, state)
    val sizeBefore = size
    var before: ArrayBuffer[Ranked] = null
    changes.foreach { change =>
      val order = columns.order(change.row)
      val place = if (RowKind.isAdd(change.kind)) behind(order) else find(order, change.row)
      if (place != null) {
        if (before == null) before = taken()
        if (RowKind.isAdd(change.kind)) add(place, change.row) else remove(place)
      } else if (!RowKind.isAdd(change.kind)) group.unknownRetractions += 1
    }
    if (before != null) {
      result.emit(before, taken(), GroupBatch.hash(changes.key), out)
      group.rows(0) += size - sizeBefore
      ttl.touch(changes.key, group)
      save(state)
    }
  }

  /** The place of a new row behind its equals; null where it will never be among the first ones. */
  private def behind(order: Array[Byte]): Array[Byte] = {
    val place = placed(order, next)
    val isFull = spec.appendOnly && size == spec.last
    if (isFull && Arrays.compareUnsigned(place, rows.last) > 0) null else place
  }

  private def add(place: Array[Byte], row: Array[Byte]): Unit = {
    rows.put(place, row)
    size += 1
    next += 1
    if (spec.appendOnly && size > spec.last) remove(rows.last)
  }

  private def remove(place: Array[Byte]): Unit = {
    rows.remove(place)
    size -= 1
    if (size == 0) next = 0L
  }

  /** The place of the oldest row that equals this one, or null. */
  private def find(order: Array[Byte], row: Array[Byte]): Array[Byte] = {
    var place = rows.ceiling(order)
    while (place != null && isAt(place, order) && !Arrays.equals(rows.get(place), row)) place = after(place)
    if (place != null && isAt(place, order)) place else null
  }

  private def after(place: Array[Byte]): Array[Byte] = rows.ceiling(place :+ 0.toByte)

  /** The rows that show, in order. */
  private def taken(): ArrayBuffer[Ranked] = {
    val found = new ArrayBuffer[Ranked]
    var place = if (size < spec.first) null else rows.first
    var number = 1L
    while (place != null && number <= spec.last) {
      if (number >= spec.first) found += new Ranked(place, rows.get(place))
      number += 1
      place = if (number <= spec.last) after(place) else null
    }
    found
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    load(key, state)
    if (header.isStored) {
      val isOver = ttl.hasExpired(group)
      if (isOver) {
        group.rows(0) -= size
        rows.clear()
        size = 0L
      }
      if (isOver || ttl.visitAgain(key, group)) save(state)
    }
  }

  def keyTag: Char = 'R'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(Seq(size), hasTimes = false) {
      def foreach(visit: KeptRow => Unit): Unit = {
        var number = 0L
        rows.foreach { (_, row) =>
          number += 1
          visit(KeptRow(0, row, ttl.writtenMs, Seq("row_number" -> number) ++ ttl.facts))
        }
      }
    }
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    rows.reset(key, state)
    size = 0L
    next = 0L
    val in = header.open(key, state)
    if (in != null) read(in)
  }

  private def read(in: CellReader): Unit = {
    ttl.read(in)
    size = in.varLong()
    next = in.varLong()
    rows.read(in)
  }

  private def save(state: KeyedState): Unit = {
    val out: CellWriter = header.write()
    ttl.write(out)
    rows.write(out.varLong(size).varLong(next))
    header.save(state, isEmpty = size == 0)
  }
}

private object Rank {
  private def placed(order: Array[Byte], number: Long): Array[Byte] =
    ByteBuffer.allocate(order.length + 8).put(order).putLong(number).array

  private def isAt(place: Array[Byte], order: Array[Byte]): Boolean =
    Arrays.equals(place, 0, place.length - 8, order, 0, order.length)
}

/** A row that shows, and where it stands among all rows of its key. */
final class Ranked(val place: Array[Byte], val row: Array[Byte])

/** The columns of a Top-N's input, whose types it does not know. One instance serves one task. */
trait RankColumns {

  /** What a packed row is ordered by, as bytes that sort, unsigned, as the rows do; none begin as others end. */
  def order(row: Array[Byte]): Array[Byte]

  /** The packed row of the one column that says the place of a row. */
  def number(place: Long): Array[Byte]
}

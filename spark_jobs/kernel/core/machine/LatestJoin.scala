package rejoin.core.machine

import java.util.Arrays

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Bytes, CellReader, CellWriter, Codec, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows,
  Output, PartialRow, RowFunctions, RowKind}
import rejoin.core.state.{Cell, KeyedState, RowQueue, SideRows, StoredRow}
import rejoin.core.time.{BootstrapGate, DueIndex, GroupState, IdleRetention}

/** Processing-time temporal join: each left (probe) row meets what the right (build) side holds of its key now.
  *
  * {{{
  * cell 'K' + join key : version, idle retention, build rows, waiting probe rows
  * cells 'V' / 'W'     : further pages of build rows / of waiting probe rows
  * }}}
  * In a batch, build rows come before probe rows. While the gate is closed, probe rows wait in arrival
  * order. What has been emitted never changes. Rules: docs/semantics.md, "Processing-time temporal join".
  */
final class LatestJoin(temporal: TemporalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions)
    extends Machine {
  private val gate = new BootstrapGate(temporal.gate)
  private val retention = new IdleRetention(temporal.timing)
  private val build = new BuildRows(temporal.join.right, functions.right)
  private val waiting = new RowQueue('W')
  private val results = outputs.arrivalOrder()
  private val header = new CellWriter

  override def holdsWatermark(group: GroupState): Boolean = gate.isClosed(group)

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    val keys = mutable.LinkedHashSet.empty[Bytes]
    if (gate.advance(group, state)) keys ++= group.due.take(BootstrapGate.Slot, state).map(Bytes(_))
    keys ++= retention.take(group, state).map(Bytes(_))
    batch.foreachKey { rows =>
      keys.remove(Bytes(rows.key))
      visit(rows.key, rows, group, state, out)
    }
    keys.foreach(key => visit(key.bytes, null, group, state, out))
    group.due.flush(state)
    group.expiries.flush(state)
  }

  private def visit(key: Array[Byte], rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val cell = Cell.key(keyTag, key)
    val stored = load(key, cell, state)
    val buildBefore = build.size
    val waitingBefore = waiting.size
    if (retention.isOver(group, gate.openedAt)) clear()
    val matchable = functions.canMatch(key)
    if (rows != null && matchable) applyBuild(rows, group)
    val hash = GroupBatch.hash(key)
    if (gate.isClosed(group)) keepProbes(key, rows, group) else joinProbes(rows, matchable, hash, group, out)
    results.flush(hash, out)
    retention.register(key, group, gate.openedAt)
    group.rows(0) += waiting.size - waitingBefore
    group.rows(1) += build.size - buildBefore
    save(cell, stored, state)
  }

  private def applyBuild(rows: KeyRows, group: GroupState): Unit =
    foreachOf(1, rows) { row =>
      if (RowKind.isAdd(row.kind)) {
        build.add(row.row)
        retention.refresh(group, gate.openedAt)
      } else if (row.kind == RowKind.Partial) {
        if (build.heal(PartialRow.unpack(row.row), group)) retention.refresh(group, gate.openedAt)
      } else {
        if (!build.remove(row.row)) group.unknownRetractions += 1
        if (build.size == 0) retention.reset()
      }
    }

  private def keepProbes(key: Array[Byte], rows: KeyRows, group: GroupState): Unit =
    if (rows != null) {
      val isFirst = waiting.isEmpty
      foreachOf(0, rows)(row => waiting.add(row.kind, row.row))
      if (isFirst && !waiting.isEmpty) group.due.register(BootstrapGate.Slot, key)
    }

  private def joinProbes(rows: KeyRows, matchable: Boolean, hash: Int, group: GroupState, out: Output): Unit = {
    if (!waiting.isEmpty) waiting.drain((kind, row) => join(kind, row, matchable, hash, group, out))
    if (rows != null) foreachOf(0, rows)(row => join(row.kind, row.row, matchable, hash, group, out))
  }

  private def join(
      kind: Byte,
      row: Array[Byte],
      matchable: Boolean,
      hash: Int,
      group: GroupState,
      out: Output): Unit = {
    var isMatched = false
    if (matchable && build.size > 0) {
      retention.refresh(group, gate.openedAt)
      build.foreach { (candidate, copies) =>
        if (functions.residual(row, candidate)) {
          isMatched = true
          var n = copies
          while (n > 0) {
            results.emit(kind, hash, row, candidate, out)
            n -= 1
          }
        }
      }
    }
    if (!isMatched && temporal.join.leftIsOuter) results.emit(kind, hash, row, null, out)
  }

  private def foreachOf(side: Int, rows: KeyRows)(visit: Envelope => Unit): Unit = {
    var i = 0
    while (i < rows.size) {
      if (rows(i).side == side) visit(rows(i))
      i += 1
    }
  }

  private def clear(): Unit = {
    build.clear()
    retention.reset()
  }

  def keyTag: Char = 'K'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, Cell.key(keyTag, key), state)
    new KeyContents(Seq(waiting.size, build.size), hasTimes = false) {
      def foreach(visit: KeptRow => Unit): Unit = {
        waiting.foreach((kind, row) => visit(KeptRow(0, row, facts = Seq("waiting" -> RowKind.name(kind)))))
        build.stored.show(visit)
      }
    }
  }

  private def load(key: Array[Byte], cell: Array[Byte], state: KeyedState): Array[Byte] = {
    retention.reset()
    build.stored.reset(key, state, 0L)
    waiting.reset(key, state)
    val value = state.get(cell)
    if (value != null) {
      val in = new CellReader(value).version()
      retention.read(in)
      build.stored.read(in)
      waiting.read(in)
    }
    value
  }

  private def save(cell: Array[Byte], before: Array[Byte], state: KeyedState): Unit = {
    header.reset().byte(Codec.Version)
    retention.write(header)
    build.write(header)
    waiting.write(header)
    if (build.size == 0 && waiting.isEmpty) {
      if (before != null) state.remove(cell)
    } else {
      val value = header.result()
      if (!Arrays.equals(value, before)) state.put(cell, value)
    }
  }
}

/** The build rows of one key: the newest one, the newest by unique key, or all with their counts. */
private final class BuildRows(spec: SideSpec, functions: RowFunctions) {
  private val hasUniqueKey = spec.layout != SideSpec.NoUniqueKey
  private val pages = new CellWriter
  private val neverExpires = new DueIndex('E')
  val stored = new SideRows('V', 1, keepsMatches = false, idIsRow = !hasUniqueKey, ttlMs = 0L)

  private val idOf: Array[Byte] => Array[Byte] = spec.layout match {
    case SideSpec.JoinKeyContainsUniqueKey => _ => BuildRows.OnlyRow
    case SideSpec.HasUniqueKey => functions.uniqueKey(_)
    case SideSpec.NoUniqueKey => identity
    case other => throw new IllegalArgumentException(s"unknown state layout '$other'")
  }

  def size: Long = stored.rows

  def add(row: Array[Byte]): Unit = {
    val id = idOf(row)
    val found = stored.find(id)
    if (found != null && !hasUniqueKey) stored.changeCopies(found, 1, 0)
    else if (found == null || !Arrays.equals(found.row, row)) {
      if (found != null) stored.changeCopies(found, -1, 0)
      stored.insert(new StoredRow(id, row, 1, 0))
    }
  }

  /** Replaces the row of the same unique key, from which it has what it lacks; false where there is none. */
  def heal(partial: PartialRow, group: GroupState): Boolean = {
    val found = stored.find(idOf(partial.row))
    if (found == null) group.unhealed += partial.unhealed
    else add(functions.heal(partial, found.row))
    found != null
  }

  /** False where the row is unknown, though it came as more than a key. */
  def remove(row: Array[Byte]): Boolean = {
    val found = stored.find(idOf(row))
    if (found != null) stored.changeCopies(found, -1, 0)
    found != null || spec.upsert
  }

  def foreach(visit: (Array[Byte], Long) => Unit): Unit = stored.foreach(row => visit(row.row, row.copies))

  def clear(): Unit = {
    val all = new ArrayBuffer[StoredRow]
    stored.foreach(all += _)
    all.foreach(row => stored.changeCopies(row, -row.copies, 0))
  }

  def write(out: CellWriter): Unit = stored.write(out, pages, neverExpires)
}

private object BuildRows {
  private val OnlyRow = new Array[Byte](0)
}

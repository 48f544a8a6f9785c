package org.apache.spark.sql.rejoin

import java.util.Arrays

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

/** Event-time temporal join: each left (probe) row meets the right (build) version valid at its time.
  *
  * {{{
  * cell 'T' + join key : version, next arrival, due slot, time of the last build row, versions, waiting rows
  * cells 'V' / 'W'     : further pages of versions / of waiting probe rows
  * }}}
  * A probe row leaves once the watermark has reached its time, in arrival order within its key; rows
  * that are due in the batch in which they arrive are never stored. Of the versions, the newest at or
  * below the watermark and all later ones stay. Rules: docs/semantics.md, "Event-time temporal join".
  */
final class TemporalJoin(spec: JoinSpec, rule: WatermarkRule, functions: JoinFunctions) extends Machine {
  import TemporalJoin._

  private val versions = new TimePages('V')
  private val waiting = new TimePages('W')
  private val due = new ArrayBuffer[TimedRow]
  private val header = new CellWriter
  private val pages = new CellWriter
  private val results = new ArrivalOrder(functions.accepts, functions.pairBy)
  private var nextOrder = 0L
  private var dueSlot = NoSlot
  private var lastBuildTime = Long.MinValue

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    val before = group.watermarks.current
    group.watermarks.applyAll(batch.marks)
    group.watermarks.advance(rule)
    val dueKeys = dueFromEarlier(group, state, before)
    batch.foreachKey { rows =>
      dueKeys.remove(Bytes(rows.key))
      visit(rows.key, rows, before, group, state, out)
    }
    dueKeys.foreach(key => visit(key.bytes, null, before, group, state, out))
    group.due.flush(state)
  }

  private def dueFromEarlier(group: GroupState, state: KeyedState, before: Long): mutable.LinkedHashSet[Bytes] = {
    val keys = mutable.LinkedHashSet.empty[Bytes]
    val now = group.watermarks.current
    if (now > before) keys ++= group.due.take(DueIndex.slotOf(now), state).map(Bytes(_))
    keys
  }

  private def visit(
      key: Array[Byte],
      rows: KeyRows,
      before: Long,
      group: GroupState,
      state: KeyedState,
      out: Output): Unit = {
    val cell = Cell.key('T', key)
    val stored = load(key, cell, state)
    val versionsBefore = versions.size
    val waitingBefore = waiting.size
    val watermark = group.watermarks.current
    due.clear()
    if (rows != null) addRows(rows, before, watermark, group)
    if (!waiting.isEmpty) waiting.takeUpTo(watermark, due)
    if (due.size > 1) due.sortInPlaceBy(_.order)
    val hash = GroupBatch.hash(key)
    due.foreach(join(_, functions.canMatch(key), hash, out))
    results.flush(hash, out)
    forgetOldVersions(watermark)
    register(key, watermark, group)
    group.rows(0) += waiting.size - waitingBefore
    group.rows(1) += versions.size - versionsBefore
    save(cell, stored, state)
  }

  private def addRows(rows: KeyRows, before: Long, watermark: Long, group: GroupState): Unit = {
    var i = 0
    while (i < rows.size) {
      val row = rows(i)
      if (row.side == 1) addVersion(row)
      else if (row.time <= before) group.lateRows += 1
      else {
        val probe = new TimedRow(row.time, nextOrder, row.kind, row.row)
        nextOrder += 1
        if (row.time <= watermark) due += probe else waiting.add(probe, replace = false)
      }
      i += 1
    }
  }

  /** -U is dropped: the +U that follows says all. A deletion ends the version at its own time; a
    * tombstone has no time and takes that of the key's last row, which it thereby erases.
    */
  private def addVersion(row: Envelope): Unit =
    if (row.kind == RowKind.Insert || row.kind == RowKind.UpdateAfter) {
      versions.add(new TimedRow(row.time, 0, RowKind.Insert, row.row), replace = true)
      lastBuildTime = row.time
    } else if (row.kind == RowKind.Delete) {
      val time = if (row.time == Long.MinValue) lastBuildTime else row.time
      if (time != Long.MinValue) {
        versions.add(new TimedRow(time, 0, RowKind.Delete, null), replace = true)
        lastBuildTime = time
      }
    }

  private def join(probe: TimedRow, matchable: Boolean, hash: Int, out: Output): Unit = {
    val version = if (matchable) versions.floor(probe.time) else null
    if (version != null && version.row != null && functions.residual(probe.row, version.row))
      results.emit(probe.kind, hash, probe.row, version.row, out)
    else if (spec.leftIsOuter) results.emit(probe.kind, hash, probe.row, null, out)
  }

  /** A deletion stays like any version: an older build row may yet come late. */
  private def forgetOldVersions(watermark: Long): Unit =
    if (!versions.isEmpty) {
      val newest = versions.floor(watermark)
      if (newest != null) versions.dropBefore(newest.time)
    }

  /** Asks for a visit when the first waiting row, or a version that replaces another, is reached. */
  private def register(key: Array[Byte], watermark: Long, group: GroupState): Unit = {
    if (dueSlot != NoSlot && dueSlot <= DueIndex.slotOf(watermark)) dueSlot = NoSlot
    val waits = if (waiting.isEmpty) Long.MaxValue else waiting.firstTime
    val replaces = if (versions.size < 2) Long.MaxValue else versions.secondTime
    val wanted = math.min(waits, replaces)
    if (wanted != Long.MaxValue && DueIndex.slotOf(wanted) < dueSlot) {
      dueSlot = DueIndex.slotOf(wanted)
      group.due.register(dueSlot, key)
    }
  }

  private def load(key: Array[Byte], cell: Array[Byte], state: KeyedState): Array[Byte] = {
    versions.reset(key, state)
    waiting.reset(key, state)
    nextOrder = 0L
    dueSlot = NoSlot
    lastBuildTime = Long.MinValue
    val value = state.get(cell)
    if (value != null) {
      val in = new CellReader(value).version()
      nextOrder = in.varLong()
      dueSlot = in.signed()
      lastBuildTime = in.signed()
      versions.read(in)
      waiting.read(in)
    }
    value
  }

  private def save(cell: Array[Byte], stored: Array[Byte], state: KeyedState): Unit = {
    if (waiting.isEmpty) nextOrder = 0L
    header.reset().byte(Codec.Version).varLong(nextOrder).signed(dueSlot).signed(lastBuildTime)
    versions.write(header, pages)
    waiting.write(header, pages)
    val value = if (versions.isEmpty && waiting.isEmpty) null else header.result()
    if (value == null) {
      if (stored != null) state.remove(cell)
    } else if (!Arrays.equals(value, stored)) state.put(cell, value)
  }
}

object TemporalJoin {
  private val NoSlot = Long.MaxValue
}

/** A byte array that compares by content. */
final class Bytes private (val bytes: Array[Byte]) {
  override val hashCode: Int = Arrays.hashCode(bytes)
  override def equals(other: Any): Boolean = other match {
    case that: Bytes => Arrays.equals(bytes, that.bytes)
    case _ => false
  }
}

object Bytes {
  def apply(bytes: Array[Byte]): Bytes = new Bytes(bytes)
}

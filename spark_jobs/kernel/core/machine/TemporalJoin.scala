package rejoin.core.machine

import java.util.Arrays

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Bytes, CellReader, CellWriter, Codec, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows,
  Output, PartialRow, RowKind}
import rejoin.core.state.{Cell, KeyedState, TimePages, TimedRow}
import rejoin.core.time.{DueIndex, GroupState, IdleRetention}

/** Event-time temporal join: each left (probe) row meets the right (build) version valid at its time.
  *
  * {{{
  * cell 'T' + join key : version, next arrival, due slot, time of the last build row, idle retention,
  *                       versions, waiting rows
  * cells 'V' / 'W'     : further pages of versions / of waiting probe rows
  * }}}
  * A probe row leaves once the watermark has reached its time, in arrival order within its key; rows
  * that are due in the batch in which they arrive are never stored. Of the versions, the newest at or
  * below the watermark and all later ones stay. Rules: docs/semantics.md, "Event-time temporal join".
  */
final class TemporalJoin(temporal: TemporalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions)
    extends Machine {
  import TemporalJoin._

  private val versions = new TimePages('V')
  private val waiting = new TimePages('W')
  private val due = new ArrayBuffer[TimedRow]
  private val header = new CellWriter
  private val pages = new CellWriter
  private val retention = new IdleRetention(temporal.timing)
  private val results = outputs.arrivalOrder()
  private val lateRows = outputs.lateRows
  private var nextOrder = 0L
  private var dueSlot = NoSlot
  private var lastBuildTime = Long.MinValue

  /** With retention: the first time, of the rows since the last visit by the watermark, that it will reach. */
  private var nextUse = NoTime

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    val keys = mutable.LinkedHashSet.empty[Bytes]
    if (isAdvanced(group)) keys ++= group.due.take(DueIndex.slotOf(group.watermarks.current), state).map(Bytes(_))
    keys ++= retention.take(group, state).map(Bytes(_))
    batch.foreachKey { rows =>
      keys.remove(Bytes(rows.key))
      visit(rows.key, rows, group, state, out)
    }
    keys.foreach(key => visit(key.bytes, null, group, state, out))
    group.due.flush(state)
    group.expiries.flush(state)
  }

  private def isAdvanced(group: GroupState): Boolean = group.watermarks.current > group.watermarkBefore

  private def visit(key: Array[Byte], rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val cell = Cell.key(keyTag, key)
    val stored = load(key, cell, state)
    val versionsBefore = versions.size
    val waitingBefore = waiting.size
    if (retention.isOver(group)) clear()
    due.clear()
    if (rows != null) addRows(rows, group, out)
    if (isAdvanced(group)) {
      joinDue(key, group, out)
      useByWatermark(group)
    }
    forgetOldVersions(group.watermarks.current)
    register(key, group)
    group.rows(0) += waiting.size - waitingBefore
    group.rows(1) += versions.size - versionsBefore
    save(cell, stored, state)
  }

  private def addRows(rows: KeyRows, group: GroupState, out: Output): Unit = {
    var i = 0
    while (i < rows.size) {
      val row = rows(i)
      if (row.side == 1) addVersion(row, group)
      else if (row.time > group.watermarkBefore || temporal.joinsLate) addProbe(row, group)
      else drop(row, group, out)
      i += 1
    }
  }

  private def drop(row: Envelope, group: GroupState, out: Output): Unit = {
    group.lateRows += 1
    lateRows.foreach(_.emit(row, group.watermarkBefore, GroupBatch.hash(row.key), out))
  }

  private def addProbe(row: Envelope, group: GroupState): Unit = {
    val probe = new TimedRow(row.time, nextOrder, row.kind, row.row)
    nextOrder += 1
    if (isAdvanced(group) && row.time <= group.watermarks.current) due += probe
    else waiting.add(probe, replace = false)
    use(row.time, group)
  }

  /** -U is dropped: the +U that follows says all. A deletion ends the version at its own time; a
    * tombstone has no time and takes that of the key's last row, which it thereby erases.
    */
  private def addVersion(row: Envelope, group: GroupState): Unit =
    if (RowKind.isAdd(row.kind)) addVersion(row.time, row.row, group)
    else if (row.kind == RowKind.Partial) addPartial(row, PartialRow.unpack(row.row), group)
    else if (row.kind == RowKind.Delete) {
      val time = if (row.time == Envelope.NoTime) lastBuildTime else row.time
      if (time != Envelope.NoTime) addVersion(time, null, group)
    }

  /** What the row lacks is that of the last build row to arrive, whatever the times of the two: a
    * database logs its changes in order. Where that one is gone, nobody knows.
    */
  private def addPartial(row: Envelope, partial: PartialRow, group: GroupState): Unit = {
    val last = if (lastBuildTime == Envelope.NoTime) null else versions.floor(lastBuildTime)
    if (last == null || last.time != lastBuildTime || last.row == null) group.unhealed += partial.unhealed
    else addVersion(row.time, functions.right.heal(partial, last.row), group)
  }

  private def addVersion(time: Long, row: Array[Byte], group: GroupState): Unit = {
    val kind = if (row == null) RowKind.Delete else RowKind.Insert
    versions.add(new TimedRow(time, 0, kind, row), replace = true)
    lastBuildTime = time
    use(time, group)
  }

  private def joinDue(key: Array[Byte], group: GroupState, out: Output): Unit = {
    if (!waiting.isEmpty) waiting.takeUpTo(group.watermarks.current, due)
    if (due.size > 1) due.sortInPlaceBy(_.order)
    val hash = GroupBatch.hash(key)
    val matchable = functions.canMatch(key)
    due.foreach(join(_, matchable, group.watermarkBefore, hash, out))
    results.flush(hash, out)
  }

  /** A late row is not shown versions that a watermark had already made obsolete. */
  private def join(probe: TimedRow, matchable: Boolean, before: Long, hash: Int, out: Output): Unit = {
    val found = if (matchable) versions.floor(math.max(probe.time, before)) else null
    val version = if (found != null && found.time <= probe.time) found else null
    if (version != null && version.row != null && functions.residual(probe.row, version.row))
      results.emit(probe.kind, hash, probe.row, version.row, out)
    else if (temporal.join.leftIsOuter) results.emit(probe.kind, hash, probe.row, null, out)
  }

  /** A deletion stays like any version: an older build row may yet come late. */
  private def forgetOldVersions(watermark: Long): Unit =
    if (!versions.isEmpty) {
      val newest = versions.floor(watermark)
      if (newest != null) versions.dropBefore(newest.time)
    }

  private def use(time: Long, group: GroupState): Unit =
    if (retention.isEnabled) {
      nextUse = math.min(nextUse, time)
      retention.refresh(group)
    }

  /** The watermark's visit to a row counts as use, as it does in Flink. */
  private def useByWatermark(group: GroupState): Unit =
    if (nextUse <= group.watermarks.current) {
      retention.refresh(group)
      nextUse = if (waiting.isEmpty) NoTime else waiting.firstTime
    }

  private def clear(): Unit = {
    versions.clear()
    waiting.clear()
    retention.reset()
    lastBuildTime = Long.MinValue
    nextUse = NoTime
  }

  /** Asks for a visit when the first waiting row, or a version that replaces another, is reached. */
  private def register(key: Array[Byte], group: GroupState): Unit = {
    if (isAdvanced(group) && dueSlot <= DueIndex.slotOf(group.watermarks.current)) dueSlot = NoSlot
    if (!waiting.isEmpty) register(key, waiting.firstTime, group)
    if (versions.size > 1) register(key, versions.secondTime, group)
    if (nextUse != NoTime) register(key, nextUse, group)
    retention.register(key, group)
  }

  private def register(key: Array[Byte], time: Long, group: GroupState): Unit =
    if (DueIndex.slotOf(time) < dueSlot) {
      dueSlot = DueIndex.slotOf(time)
      group.due.register(dueSlot, key)
    }

  def keyTag: Char = 'T'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, Cell.key(keyTag, key), state)
    new KeyContents(Seq(waiting.size, versions.size), hasTimes = true) {
      def foreach(visit: KeptRow => Unit): Unit = {
        waiting.foreach(r => visit(KeptRow(0, r.row, r.time, Seq("waiting" -> RowKind.name(r.kind)))))
        versions.foreach { r =>
          visit(KeptRow(1, r.row, r.time, if (r.row == null) Seq("deleted" -> true) else Nil))
        }
      }
    }
  }

  private def load(key: Array[Byte], cell: Array[Byte], state: KeyedState): Array[Byte] = {
    versions.reset(key, state)
    waiting.reset(key, state)
    nextOrder = 0L
    dueSlot = NoSlot
    lastBuildTime = Long.MinValue
    nextUse = NoTime
    retention.reset()
    val value = state.get(cell)
    if (value != null) {
      val in = new CellReader(value).version()
      nextOrder = in.varLong()
      dueSlot = in.signed()
      lastBuildTime = in.signed()
      retention.read(in)
      if (retention.isEnabled) nextUse = in.signed()
      versions.read(in)
      waiting.read(in)
    }
    value
  }

  private def save(cell: Array[Byte], stored: Array[Byte], state: KeyedState): Unit = {
    if (waiting.isEmpty) nextOrder = 0L
    header.reset().byte(Codec.Version).varLong(nextOrder).signed(dueSlot).signed(lastBuildTime)
    retention.write(header)
    if (retention.isEnabled) header.signed(nextUse)
    versions.write(header, pages)
    waiting.write(header, pages)
    val value = if (versions.isEmpty && waiting.isEmpty) null else header.result()
    if (value == null) {
      if (stored != null) state.remove(cell)
    } else if (!Arrays.equals(value, stored)) state.put(cell, value)
  }
}

object TemporalJoin {
  private final val NoSlot = Long.MaxValue
  private final val NoTime = Long.MaxValue
}

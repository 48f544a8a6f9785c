package rejoin.core.machine.join

import java.util.Arrays

import rejoin.core.machine.{Machine, OutputFunctions, TemporalJoinSpec}
import rejoin.core.row.{Bytes, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output, PartialRow, RowKind}
import rejoin.core.state.{KeyedState, StateCell, TimePages, TimedRow}
import rejoin.core.time.{DueSlot, GroupState, IdleRetention, KeyVisits}

/** Event-time temporal join: each left (probe) row meets the right (build) version valid at its time.
  *
  * {{{
  * cell 'T' + join key : version, next arrival, due slot, time of the last build row, idle retention,
  *                       versions, waiting rows
  * cells 'V' / 'W'     : further pages of versions / of waiting probe rows
  * }}}
  * A probe row leaves once the watermark has reached its time, in arrival order within its key; rows
  * that are due in the batch in which they arrive are never stored. Of the versions, the newest at or
  * below the watermark and all later ones stay. Where probe rows change, [[ProbeMemory]] says which version each
  * has met. Rules: docs/semantics.md, "Event-time temporal join".
  */
final class TemporalJoin(temporal: TemporalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions)
    extends Machine {
  import TemporalJoin._

  private val versions = new TimePages('V')
  private val waiting = new TimePages('W')
  private val due = new DueProbes(outputs.overflow)
  private val memory = Option.when(temporal.probeChanges) {
    new ProbeMemory(temporal.join.left, temporal.isEventTime, temporal.timing, functions.left)
  }
  private val updates = new ProbeUpdates
  private val header = new StateCell(keyTag)
  private val dueSlot = new DueSlot
  private val retention = new IdleRetention(temporal.timing)
  private val results = outputs.arrivalOrder()
  private val lateRows = outputs.lateRows
  private var nextOrder = 0L
  private var lastBuildTime = Long.MinValue

  /** With retention: the earliest time of the rows that came since the watermark's last visit. */
  private var nextUse = NoTime

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    val visits = new KeyVisits
    visits.add(group.takeDue(state))
    visits.add(retention.take(group, state))
    memory.foreach(known => visits.add(known.begin(group, state)))
    visits.foreach(batch)(visit(_, group, state, out))
    memory.foreach(_.end(state))
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(rows.key, state)
    val versionsBefore = versions.size
    val waitingBefore = waiting.size
    if (retention.isOver(group)) clear()
    updates.clear()
    rows.foreach(add(_, group, out))
    if (group.isAdvanced || !due.isEmpty) joinDue(rows.key, group, out)
    if (group.isAdvanced) useByWatermark(group)
    forgetOldVersions(group.watermarks.current)
    register(rows.key, group)
    group.rows(0) += waiting.size - waitingBefore
    group.rows(1) += versions.size - versionsBefore
    memory.foreach(_.save(group))
    save(state)
  }

  private def add(row: Envelope, group: GroupState, out: Output): Unit =
    if (row.side == 1) addVersion(row, group)
    else if (memory.isDefined) change(memory.get, row, group, out)
    else if (isInTime(row, group)) addProbe(row, group)
    else drop(row, group, out)

  private def isInTime(row: Envelope, group: GroupState): Boolean =
    row.time > group.watermarkBefore || temporal.joinsLate

  /** A change of a row that is known is never late. */
  private def change(known: ProbeMemory, row: Envelope, group: GroupState, out: Output): Unit =
    if (!RowKind.isAdd(row.kind)) retract(known, row, group, out)
    else if (row.kind == RowKind.UpdateAfter && row.time <= group.watermarkBefore) update(known, row, group, out)
    else if (isInTime(row, group)) addProbe(row, group)
    else drop(row, group, out)

  private def retract(known: ProbeMemory, row: Envelope, group: GroupState, out: Output): Unit = {
    val id = known.idOf(row.row, row.time)
    def isIt(kept: TimedRow) = RowKind.isAdd(kept.kind) && Arrays.equals(known.idOf(kept.row, kept.time), id)
    val leaving = updates.cancel(Bytes(id))
    if (leaving != ProbeUpdates.None) noteUpdate(known, row, updates.fixed(leaving))
    else if (!waiting.removeLast(row.time)(isIt)) {
      val met = known.take(id)
      if (met != null) {
        noteUpdate(known, row, met)
        addAtOnce(known, row, met, group)
      } else if (isInTime(row, group)) addProbe(row, group)
      else {
        if (row.kind == RowKind.UpdateBefore) updates.add(known.updateOf(row.row, row.time), ProbeUpdates.Dropped)
        group.unknownRetractions += 1
        drop(row, group, out)
      }
    }
  }

  private def noteUpdate(known: ProbeMemory, row: Envelope, met: Array[Byte]): Unit =
    if (met != null && row.kind == RowKind.UpdateBefore)
      updates.add(known.updateOf(row.row, MetVersion.timeOf(met)), met)

  /** The new half of an update, behind the watermark: with its time unchanged it meets the version of its old half. */
  private def update(known: ProbeMemory, row: Envelope, group: GroupState, out: Output): Unit = {
    val met = updates.take(known.updateOf(row.row, row.time))
    if (met eq ProbeUpdates.Dropped) drop(row, group, out)
    else if (met == null && temporal.joinsLate) addProbe(row, group)
    else addAtOnce(known, row, met, group)
  }

  /** A row that leaves in this batch wherever the watermark is; with `met`, it does not look for a version. */
  private def addAtOnce(known: ProbeMemory, row: Envelope, met: Array[Byte], group: GroupState): Unit = {
    if (met != null) updates.fix(nextOrder, met)
    if (RowKind.isAdd(row.kind)) updates.leaves(Bytes(known.idOf(row.row, row.time)), nextOrder)
    due.add(new TimedRow(row.time, nextOrder, row.kind, row.row))
    nextOrder += 1
    if (retention.isEnabled) retention.refresh(group)
  }

  private def drop(row: Envelope, group: GroupState, out: Output): Unit = {
    group.lateRows += 1
    lateRows.foreach(_.emit(row, group.watermarkBefore, GroupBatch.hash(row.key), out))
  }

  private def addProbe(row: Envelope, group: GroupState): Unit = {
    val probe = new TimedRow(row.time, nextOrder, row.kind, row.row)
    nextOrder += 1
    // where rows change, one that is due may yet be taken back in this batch
    if (memory.isEmpty && group.isAdvanced && row.time <= group.watermarks.current) due.add(probe)
    else waiting.add(probe)
    use(row.time, group)
  }

  /** -U is dropped: the +U that follows says all. A deletion ends the version at its own time. A
    * tombstone has no time; it takes that of the key's last row, and so replaces it.
    */
  private def addVersion(row: Envelope, group: GroupState): Unit =
    if (RowKind.isAdd(row.kind)) addVersion(row.time, row.row, group)
    else if (row.kind == RowKind.Partial) addPartial(row, PartialRow.unpack(row.row), group)
    else if (row.kind == RowKind.Delete) {
      val time = if (row.time == Envelope.NoTime) lastBuildTime else row.time
      if (time != Envelope.NoTime) addVersion(time, null, group)
    }

  /** What the row lacks is taken from the last build row to arrive, whatever the times of the two: a
    * database logs its changes in order. Where that row is gone, the event is rejected.
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
    if (!waiting.isEmpty && group.isAdvanced) waiting.takeUpTo(group.watermarks.current)(due.add)
    val hash = GroupBatch.hash(key)
    val matchable = functions.canMatch(key)
    due.drain(row => if (!updates.isCancelled(row.order)) join(row, matchable, group, hash, out))
    results.flush(hash, out)
  }

  private def join(probe: TimedRow, matchable: Boolean, group: GroupState, hash: Int, out: Output): Unit = {
    val version = memory match {
      case None => versionAt(probe, matchable, group.watermarkBefore)
      case Some(known) => rememberedVersion(known, probe, matchable, group)
    }
    if (version != null && functions.residual(probe.row, version))
      results.emit(probe.kind, hash, probe.row, version, out)
    else if (temporal.join.leftIsOuter) results.emit(probe.kind, hash, probe.row, null, out)
  }

  /** A late row does not meet versions that a watermark had already made obsolete. */
  private def versionAt(probe: TimedRow, matchable: Boolean, before: Long): Array[Byte] = {
    val found = if (matchable) versions.floor(math.max(probe.time, before)) else null
    if (found != null && found.time <= probe.time) found.row else null
  }

  /** The version that the row has met before, if it is a change; what an added row meets is remembered. */
  private def rememberedVersion(
      known: ProbeMemory,
      probe: TimedRow,
      matchable: Boolean,
      group: GroupState): Array[Byte] = {
    val id = known.idOf(probe.row, probe.time)
    val isAdd = RowKind.isAdd(probe.kind)
    val fixed = updates.fixed(probe.order)
    val met = if (fixed != null || isAdd) fixed else known.take(id)
    if (met == null && !isAdd) group.unknownRetractions += 1
    val version = if (met == null) versionAt(probe, matchable, group.watermarkBefore) else MetVersion.rowOf(met)
    if (isAdd) known.add(id, MetVersion.pack(probe.time, version))
    version
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

  /** That the watermark has reached a row of the key counts as use of the key, as it does in Flink. */
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

  /** Registers a visit for when the first waiting row, or a version that replaces another, is reached. */
  private def register(key: Array[Byte], group: GroupState): Unit = {
    dueSlot.forgetTaken(group)
    if (!waiting.isEmpty) dueSlot.register(waiting.firstTime, key, group)
    if (versions.size > 1) dueSlot.register(versions.secondTime, key, group)
    if (nextUse != NoTime) dueSlot.register(nextUse, key, group)
    retention.register(key, group)
  }

  def keyTag: Char = 'T'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(Seq(waiting.size + memory.fold(0L)(_.size), versions.size), hasTimes = true) {
      def foreach(visit: KeptRow => Unit): Unit = {
        memory.foreach(_.show(met => (MetVersion.timeOf(met), Option(MetVersion.rowOf(met)).toSeq))(visit))
        waiting.foreach(r => visit(KeptRow(0, r.row, r.time, Seq("waiting" -> RowKind.name(r.kind)))))
        versions.foreach { r =>
          visit(KeptRow(1, r.row, r.time, if (r.row == null) Seq("deleted" -> true) else Nil))
        }
      }
    }
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    versions.reset(key, state)
    waiting.reset(key, state)
    memory.foreach(_.turnTo(key, state))
    nextOrder = 0L
    dueSlot.reset()
    lastBuildTime = Long.MinValue
    nextUse = NoTime
    retention.reset()
    val in = header.open(key, state)
    if (in != null) {
      nextOrder = in.varLong()
      dueSlot.read(in)
      lastBuildTime = in.signed()
      retention.read(in)
      if (retention.isEnabled) nextUse = in.signed()
      versions.read(in)
      waiting.read(in)
    }
  }

  private def save(state: KeyedState): Unit = {
    if (waiting.isEmpty) nextOrder = 0L
    val out = header.write().varLong(nextOrder)
    dueSlot.write(out)
    retention.write(out.signed(lastBuildTime))
    if (retention.isEnabled) out.signed(nextUse)
    versions.write(out)
    waiting.write(out)
    header.save(state, isEmpty = versions.isEmpty && waiting.isEmpty && memory.forall(_.isEmpty))
  }
}

object TemporalJoin {
  private final val NoTime = Long.MaxValue
}

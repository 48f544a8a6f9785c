package rejoin.core.machine.join

import java.util.Arrays

import rejoin.core.machine.{Machine, OutputFunctions, TemporalJoinSpec}
import rejoin.core.row.{CellReader, CellWriter, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output,
  PartialRow, RowKind}
import rejoin.core.state.{KeyedState, RowQueue, StateCell}
import rejoin.core.time.{BootstrapGate, GroupState, IdleRetention, KeyVisits}

/** Processing-time temporal join: each left (probe) row meets what the right (build) side holds of its key now.
  *
  * {{{
  * cell 'K' + join key : version, idle retention, build rows, waiting probe rows
  * cells 'V' / 'W'     : further pages of build rows / of waiting probe rows
  * }}}
  * In a batch, build rows come before probe rows. While the gate is closed, probe rows wait in arrival
  * order. What has been emitted never changes with the build side. Where probe rows change, [[ProbeMemory]] says
  * what each was joined with. Rules: docs/semantics.md, "Processing-time temporal join".
  */
final class LatestJoin(temporal: TemporalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions)
    extends Machine {
  private val gate = new BootstrapGate(temporal.gate)
  private val retention = new IdleRetention(temporal.timing)
  private val build = JoinSide.withoutMatches(temporal.join.right, 1, ttlMs = 0L, functions.right, 'V')
  private val waiting = new RowQueue('W')
  private val memory = Option.when(temporal.probeChanges) {
    new ProbeMemory(temporal.join.left, temporal.isEventTime, temporal.timing, functions.left)
  }
  private val partners = new CellWriter
  private val results = outputs.arrivalOrder()
  private val header = new StateCell(keyTag)

  override def holdsWatermark(group: GroupState): Boolean = gate.isClosed(group)

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    val visits = new KeyVisits
    if (gate.advance(group, state)) visits.add(group.due.take(BootstrapGate.Slot, state))
    visits.add(retention.take(group, state))
    memory.foreach(known => visits.add(known.begin(group, state)))
    visits.foreach(batch)(visit(_, group, state, out))
    memory.foreach(_.end(state))
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val key = rows.key
    load(key, state)
    val buildBefore = build.stored.rows
    val waitingBefore = waiting.size
    if (retention.isOver(group, gate.openedAt)) clear()
    val matchable = functions.canMatch(key)
    if (matchable) foreachOf(1, rows)(applyBuild(_, group))
    val hash = GroupBatch.hash(key)
    if (gate.isClosed(group)) keepProbes(rows, group) else joinProbes(rows, matchable, hash, group, out)
    results.flush(hash, out)
    retention.register(key, group, gate.openedAt)
    group.rows(0) += waiting.size - waitingBefore
    group.rows(1) += build.stored.rows - buildBefore
    save(group, state)
  }

  private def applyBuild(change: Envelope, group: GroupState): Unit =
    if (RowKind.isAdd(change.kind)) addBuild(change.row, group)
    else if (change.kind == RowKind.Partial) healBuild(PartialRow.unpack(change.row), group)
    else {
      val found = build.stored.find(build.idOf(change.row))
      build.forget(found)
      if (found == null && !build.isUpsert) group.unknownRetractions += 1
      if (build.stored.rows == 0) retention.reset()
    }

  private def addBuild(row: Array[Byte], group: GroupState): Unit = {
    val id = build.idOf(row)
    val found = build.stored.find(id)
    val isSame = found != null && build.hasUniqueKey && Arrays.equals(found.row, row)
    if (!isSame) build.store(id, row, found, matches = 0L)
    retention.refresh(group, gate.openedAt)
  }

  /** Takes what the row lacks from the row of the same unique key. */
  private def healBuild(partial: PartialRow, group: GroupState): Unit = {
    val found = build.stored.find(build.idOf(partial.row))
    if (found == null) group.unhealed += partial.unhealed
    else addBuild(functions.right.heal(partial, found.row), group)
  }

  private def keepProbes(rows: KeyRows, group: GroupState): Unit = {
    val isFirst = waiting.isEmpty
    foreachOf(0, rows)(row => waiting.add(row.kind, row.row))
    if (isFirst && !waiting.isEmpty) group.due.register(BootstrapGate.Slot, rows.key)
  }

  private def joinProbes(rows: KeyRows, matchable: Boolean, hash: Int, group: GroupState, out: Output): Unit = {
    def join(kind: Byte, row: Array[Byte]): Unit =
      // without a key that can match, every row of the key has the same result for ever
      if (memory.isEmpty || !matchable) joinNow(kind, row, matchable, hash, group, out)
      else joinAndRemember(memory.get, kind, row, hash, group, out)
    if (!waiting.isEmpty) drainWaiting(join)
    foreachOf(0, rows)(row => join(row.kind, row.row))
  }

  /** A row that was taken back while it waited has never been there. */
  private def drainWaiting(join: (Byte, Array[Byte]) => Unit): Unit = memory match {
    case None => waiting.drain(join)
    case Some(known) =>
      val left = new WaitingChanges(known.idOf(_, Envelope.NoTime))
      waiting.drain(left.add)
      left.foreach(join)
  }

  private def joinAndRemember(
      known: ProbeMemory,
      kind: Byte,
      row: Array[Byte],
      hash: Int,
      group: GroupState,
      out: Output): Unit = {
    val id = known.idOf(row, Envelope.NoTime)
    if (RowKind.isAdd(kind)) {
      partners.reset()
      joinNow(kind, row, matchable = true, hash, group, out)
      known.add(id, partners.result())
    } else {
      val joined = known.take(id)
      if (joined != null) {
        takeBack(kind, row, joined, hash, out)
        if (build.stored.rows > 0) retention.refresh(group, gate.openedAt)
      } else {
        group.unknownRetractions += 1
        joinNow(kind, row, matchable = true, hash, group, out)
      }
    }
  }

  private def takeBack(kind: Byte, row: Array[Byte], joined: Array[Byte], hash: Int, out: Output): Unit = {
    val found = LatestJoin.partnersIn(joined)
    if (found.isEmpty && temporal.join.leftIsOuter) results.emit(kind, hash, row, null, out)
    found.foreach(results.emit(kind, hash, row, _, out))
  }

  private def joinNow(
      kind: Byte,
      row: Array[Byte],
      matchable: Boolean,
      hash: Int,
      group: GroupState,
      out: Output): Unit = {
    var isMatched = false
    if (matchable && build.stored.rows > 0) {
      retention.refresh(group, gate.openedAt)
      build.stored.foreach { candidate =>
        if (functions.residual(row, candidate.row)) {
          isMatched = true
          var n = candidate.copies
          while (n > 0) {
            results.emit(kind, hash, row, candidate.row, out)
            if (memory.isDefined) partners.blob(candidate.row)
            n -= 1
          }
        }
      }
    }
    if (!isMatched && temporal.join.leftIsOuter) results.emit(kind, hash, row, null, out)
  }

  private def foreachOf(side: Int, rows: KeyRows)(visit: Envelope => Unit): Unit =
    rows.foreach(row => if (row.side == side) visit(row))

  private def clear(): Unit = {
    build.stored.clear()
    retention.reset()
  }

  def keyTag: Char = 'K'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(Seq(waiting.size + memory.fold(0L)(_.size), build.stored.rows), hasTimes = false) {
      def foreach(visit: KeptRow => Unit): Unit = {
        memory.foreach(_.show(joined => (Envelope.NoTime, LatestJoin.partnersIn(joined)))(visit))
        waiting.foreach((kind, row) => visit(KeptRow(0, row, facts = Seq("waiting" -> RowKind.name(kind)))))
        build.stored.show(visit)
      }
    }
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    retention.reset()
    build.stored.reset(key, state, 0L)
    waiting.reset(key, state)
    memory.foreach(_.turnTo(key, state))
    val in = header.open(key, state)
    if (in != null) {
      retention.read(in)
      build.stored.read(in)
      waiting.read(in)
    }
  }

  private def save(group: GroupState, state: KeyedState): Unit = {
    memory.foreach(_.save(group))
    val out = header.write()
    retention.write(out)
    build.stored.write(out, group.expiries)
    waiting.write(out)
    header.save(state, isEmpty = build.stored.rows == 0 && waiting.isEmpty && memory.forall(_.isEmpty))
  }
}

object LatestJoin {

  /** The build rows that a probe row was joined with, as the memory has them. */
  private def partnersIn(joined: Array[Byte]): Seq[Array[Byte]] = {
    val in = new CellReader(joined)
    Iterator.continually(in).takeWhile(_.hasMore).map(_.blob()).toVector
  }
}

package rejoin.core.machine.join

import java.util.Arrays

import rejoin.core.machine.{IntervalJoinSpec, Machine, OutputFunctions}
import rejoin.core.row.{Envelope, GroupBatch, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.{CachedRow, KeyedState}
import rejoin.core.time.{EarlyFire, GroupState, IntervalBounds, KeyVisits, VisitIndex}

/** Interval join by event time of inputs whose rows are updated and deleted.
  *
  * A row is open until its window has closed. A change of an open row is joined with all rows in state that it
  * matches, and takes back or gives back their paddings. A row that has closed changes no more: it is padded if it
  * is outer and joined with nothing, and stays in state as long as it may be joined with an open row, whose changes
  * have to find it. With early padding an outer row without a partner is padded before it has closed. Rows are known
  * by time and content; equal ones are kept one by one. The results of a batch are netted.
  * Cells: [[IntervalCells]]. Rules: docs/semantics.md, "Interval join of rows that change".
  */
final class IntervalChanges(spec: IntervalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions)
    extends Machine {
  require(spec.isEventTime, "rows that change have no processing time: their retraction would come at another one")

  private val bounds = new IntervalBounds(spec.lowerMs, spec.upperMs, spec.minCleanupMs + spec.allowedLatenessMs)
  private val early = new EarlyFire(spec.earlyFireMs)
  private val isOuter = Array(spec.join.leftIsOuter, spec.join.rightIsOuter)
  private val cells = new IntervalCells(isOuter)
  private val caches = cells.sides
  private val changes = outputs.changes()
  private val lateRows = outputs.lateRows

  /** Per side, the time up to which rows are closed: before the batch, and after it. */
  private val closedBefore = new Array[Long](2)
  private val closedAfter = new Array[Long](2)

  /** Per side, the time up to which outer rows are padded while they have no partner. */
  private val paddedBefore = new Array[Long](2)
  private val paddedAfter = new Array[Long](2)
  private var index: VisitIndex = _
  private var group: GroupState = _
  private var out: Output = _
  private var hash = 0

  override def holdBackMs: Long = bounds.changeDelayMs

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    this.group = group
    this.out = out
    if (bounds.isEmpty) batch.foreachKey(applyAlone)
    else {
      caches.indices.foreach { side =>
        closedBefore(side) = bounds.closedUpTo(side, group.watermarkBefore)
        closedAfter(side) = bounds.closedUpTo(side, group.watermarks.current)
        paddedBefore(side) = math.max(closedBefore(side), early.firedUpTo(group.watermarkBefore))
        paddedAfter(side) = math.max(closedAfter(side), early.firedUpTo(group.watermarks.current))
      }
      index = new VisitIndex(group.due, state)
      val visits = new KeyVisits
      if (group.isAdvanced) visits.add(index.take(group.watermarks.current))
      visits.foreach(batch)(visit(_, state))
      index.flush()
    }
  }

  private def applyAlone(rows: KeyRows): Unit = {
    hash = GroupBatch.hash(rows.key)
    rows.foreach(row => if (isOuter(row.side.toInt)) padOwn(row))
    changes.flush(hash, out)
  }

  private def visit(rows: KeyRows, state: KeyedState): Unit = {
    cells.load(rows.key, state)
    hash = GroupBatch.hash(rows.key)
    val leftBefore = caches(0).size
    val rightBefore = caches(1).size
    if (!rows.isEmpty) {
      val matchable = functions.canMatch(rows.key)
      rows.foreach(apply(_, matchable))
    }
    if (group.isAdvanced) caches.indices.foreach(close)
    changes.flush(hash, out)
    register(rows.key)
    group.rows(0) += caches(0).size - leftBefore
    group.rows(1) += caches(1).size - rightBefore
    cells.save(state)
  }

  private def apply(row: Envelope, matchable: Boolean): Unit = {
    require(RowKind.isChange(row.kind), s"an interval join takes whole rows only, found kind ${row.kind}")
    val side = row.side.toInt
    if (row.time == Envelope.NoTime) applyTimeless(row)
    else if (!isClosed(side, row.time)) applyOpen(row, matchable)
    else if (row.kind == RowKind.Insert) addLate(row, matchable)
    else drop(row)
  }

  private def isClosed(side: Int, time: Long): Boolean = time <= closedBefore(side)

  private def isPadded(side: Int, time: Long): Boolean = isOuter(side) && time <= paddedBefore(side)

  /** A row without a time has no partners, and so no need of state. */
  private def applyTimeless(row: Envelope): Unit = if (isOuter(row.side.toInt)) padOwn(row) else drop(row)

  private def applyOpen(row: Envelope, matchable: Boolean): Unit =
    if (matchable || isOuter(row.side.toInt)) {
      val isAdd = RowKind.isAdd(row.kind)
      if (!isAdd && !takeOut(row)) group.unknownRetractions += 1
      else {
        val matches = if (matchable) join(row, Long.MinValue) else 0
        if (isAdd) keep(row, matches)
        if (matches == 0 && isPadded(row.side.toInt, row.time)) padOwn(row)
      }
    }

  /** A late row is joined with open rows only: those that have closed are as they were left. */
  private def addLate(row: Envelope, matchable: Boolean): Unit = {
    val side = row.side.toInt
    val closed = closedBefore(1 - side)
    val matches = if (matchable && closed < Long.MaxValue) join(row, closed + 1) else 0
    if (matches > 0) keep(row, matches) else if (isOuter(side)) padOwn(row) else drop(row)
  }

  private def drop(row: Envelope): Unit = {
    group.lateRows += 1
    lateRows.foreach(_.emit(row, group.watermarkBefore, hash, out))
  }

  private def keep(row: Envelope, matches: Int): Unit = {
    val side = row.side.toInt
    caches(side).add(new CachedRow(row.time, row.row, if (isOuter(side)) matches else 0))
  }

  private def takeOut(row: Envelope): Boolean =
    caches(row.side.toInt).removeLast(row.time)(cached => Arrays.equals(cached.row, row.row))

  /** Emits the pairs of a row with the row's own kind, and corrects the paddings of its partners.
    *
    * @param from
    *   the earliest time of partners
    * @return
    *   the number of pairs
    */
  private def join(row: Envelope, from: Long): Int = {
    val side = row.side.toInt
    val other = 1 - side
    val first = math.max(from, bounds.qualifiedLowerBound(side, row.time))
    var matches = 0
    caches(other).foreach(first, bounds.qualifiedUpperBound(side, row.time)) { partner =>
      val joins = if (side == 0) pairs(row.time, row.row, partner.time, partner.row)
      else pairs(partner.time, partner.row, row.time, row.row)
      if (joins) {
        matches += 1
        emit(row.kind, side, row.row, partner.row)
        if (isOuter(other)) count(other, partner, RowKind.isAdd(row.kind))
      }
      joins && isOuter(other)
    }
    matches
  }

  private def pairs(leftTime: Long, left: Array[Byte], rightTime: Long, right: Array[Byte]): Boolean =
    bounds.matches(leftTime, rightTime) && functions.residual(left, right)

  /** Counts a match of an outer row that has come or gone. */
  private def count(side: Int, partner: CachedRow, isAdd: Boolean): Unit = {
    val padded = isPadded(side, partner.time)
    if (isAdd && padded && !partner.isMatched) emit(RowKind.Delete, side, partner.row, null)
    partner.matches += (if (isAdd) 1 else -1)
    if (!isAdd && padded && !partner.isMatched) emit(RowKind.Insert, side, partner.row, null)
  }

  private def padOwn(row: Envelope): Unit =
    emit(if (RowKind.isAdd(row.kind)) RowKind.Insert else RowKind.Delete, row.side.toInt, row.row, null)

  private def emit(kind: Byte, side: Int, row: Array[Byte], partner: Array[Byte]): Unit =
    if (side == 0) changes.add(kind, row, partner) else changes.add(kind, partner, row)

  /** Pads the outer rows whose padding is due in this batch, and forgets rows that no open row is joined with. */
  private def close(side: Int): Unit = {
    if (isOuter(side) && paddedBefore(side) < paddedAfter(side))
      caches(side).foreach(paddedBefore(side) + 1, paddedAfter(side)) { row =>
        if (!row.isMatched) emit(RowKind.Insert, side, row.row, null)
        false
      }
    caches(side).dropUpTo(bounds.forgottenUpTo(side, group.watermarks.current))
  }

  /** Registers a visit for when the next row may have to be padded, or leaves the state. */
  private def register(key: Array[Byte]): Unit = {
    val now = group.watermarks.current
    if (group.isAdvanced) cells.forgetVisit(now)
    if (!cells.isEmpty) cells.register(math.min(nextTime(0), nextTime(1)), now, key, index)
  }

  private def nextTime(side: Int): Long =
    if (caches(side).isEmpty) Long.MaxValue
    else {
      val forgetting = bounds.forgettingTime(side, caches(side).firstTime)
      val next = if (isOuter(side)) caches(side).firstAfter(paddedAfter(side)) else Long.MaxValue
      if (next == Long.MaxValue) forgetting
      else math.min(forgetting, math.min(bounds.closingTime(side, next), early.fireTime(next)))
    }

  def keyTag: Char = IntervalCells.Tag

  def look(key: Array[Byte], state: KeyedState): KeyContents = cells.look(key, state)
}

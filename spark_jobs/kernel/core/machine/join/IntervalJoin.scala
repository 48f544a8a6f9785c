package rejoin.core.machine.join

import rejoin.core.machine.{IntervalJoinSpec, Machine, OutputFunctions}
import rejoin.core.row.{Envelope, GroupBatch, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.{CachedRow, KeyedState}
import rejoin.core.time.{GroupState, IntervalBounds, KeyVisits, VisitIndex}

/** Interval join of two append-only inputs: rows whose times are close enough, in event or processing time.
  *
  * A row is joined with the cached rows of the other side, and cached itself ([[IntervalCells]]) while partners
  * may still come. It leaves at its cleanup time; an outer row that was never joined is then padded. Operator
  * time is the watermark before the batch while rows are applied and the one after it for the
  * cleanup, or the clock's. Inputs that change have [[IntervalChanges]]. Rules: docs/semantics.md, "Interval join".
  */
final class IntervalJoin(spec: IntervalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions) extends Machine {
  private val bounds = new IntervalBounds(spec.lowerMs, spec.upperMs, spec.minCleanupMs + spec.allowedLatenessMs)
  private val isOuter = Array(spec.join.leftIsOuter, spec.join.rightIsOuter)
  private val cells = new IntervalCells(isOuter)
  private val caches = cells.sides
  private val results = outputs.arrivalOrder()
  private var index: VisitIndex = _
  private var group: GroupState = _
  private var out: Output = _
  private var hash = 0

  /** In processing time the rows' event times say nothing about when they leave. */
  override def holdBackMs: Long = if (spec.isEventTime) bounds.outputDelayMs + spec.allowedLatenessMs else 0L

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    this.group = group
    this.out = out
    if (bounds.isEmpty) batch.foreachKey(padAll)
    else {
      index = new VisitIndex(if (spec.isEventTime) group.due else group.expiries, state)
      val visits = new KeyVisits
      if (takesDue) visits.add(index.take(timeAfter))
      visits.foreach(batch)(visit(_, state))
      index.flush()
    }
  }

  private def timeBefore: Long = if (spec.isEventTime) group.watermarkBefore else group.now

  private def timeAfter: Long =
    if (spec.isEventTime) group.watermarks.current
    else if (group.watermarks.isEnd) Long.MaxValue
    else group.now

  /** Whether this batch visits the keys that are due: a watermark that stands still makes none due. */
  private def takesDue: Boolean = !spec.isEventTime || timeAfter > timeBefore

  private def padAll(rows: KeyRows): Unit = {
    hash = GroupBatch.hash(rows.key)
    rows.foreach(row => if (isOuter(row.side.toInt)) pad(row.side.toInt, row.row))
    results.flush(hash, out)
  }

  private def visit(rows: KeyRows, state: KeyedState): Unit = {
    cells.load(rows.key, state)
    val leftBefore = caches(0).size
    val rightBefore = caches(1).size
    hash = GroupBatch.hash(rows.key)
    if (!rows.isEmpty) {
      cleanUp(timeBefore)
      val matchable = functions.canMatch(rows.key)
      rows.foreach(apply(_, matchable))
    }
    cleanUp(timeAfter)
    results.flush(hash, out)
    register(rows.key)
    group.rows(0) += caches(0).size - leftBefore
    group.rows(1) += caches(1).size - rightBefore
    cells.save(state)
  }

  private def apply(row: Envelope, matchable: Boolean): Unit = {
    require(row.kind == RowKind.Insert, s"an interval join takes +I only, found ${RowKind.name(row.kind)}")
    val side = row.side.toInt
    val time = if (spec.isEventTime) row.time else group.now
    if (spec.isEventTime && time == Envelope.NoTime) forget(side, row.row, isLate = true)
    else {
      val isMatched = matchable && probe(side, time, row.row)
      if (isOpen(side, time)) {
        if (matchable || isOuter(side)) caches(side).add(new CachedRow(time, row.row, if (isMatched) 1 else 0))
      } else if (!isMatched) forget(side, row.row, isLate = matchable && spec.isEventTime && time <= timeBefore)
    }
  }

  /** Whether partners of the row may still come: not at or before the watermark, but at the clock's time. */
  private def isOpen(side: Int, time: Long): Boolean =
    if (spec.isEventTime) timeBefore < bounds.qualifiedUpperBound(side, time)
    else bounds.qualifiedUpperBound(side, 0L) >= 0

  /** Pads or drops a row that was not joined and will not be cached. */
  private def forget(side: Int, row: Array[Byte], isLate: Boolean): Unit =
    if (isOuter(side)) pad(side, row) else if (isLate) group.lateRows += 1

  private def probe(side: Int, time: Long, row: Array[Byte]): Boolean = {
    val other = 1 - side
    var isMatched = false
    caches(other).foreach(bounds.qualifiedLowerBound(side, time), bounds.qualifiedUpperBound(side, time)) { cached =>
      val joins =
        if (side == 0) join(time, row, cached.time, cached.row) else join(cached.time, cached.row, time, row)
      val isFirst = joins && isOuter(other) && !cached.isMatched
      if (joins) isMatched = true
      if (isFirst) cached.matches = 1
      isFirst
    }
    isMatched
  }

  private def join(leftTime: Long, left: Array[Byte], rightTime: Long, right: Array[Byte]): Boolean = {
    val joins = bounds.matches(leftTime, rightTime) && functions.residual(left, right)
    if (joins) results.emit(RowKind.Insert, hash, left, right, out)
    joins
  }

  private def pad(side: Int, row: Array[Byte]): Unit =
    if (side == 0) results.emit(RowKind.Insert, hash, row, null, out)
    else results.emit(RowKind.Insert, hash, null, row, out)

  /** Removes what is past its cleanup time, beginning with the side that was due first. */
  private def cleanUp(time: Long): Unit = {
    val first = if (nextCleanup(0) <= nextCleanup(1)) 0 else 1
    cleanUp(first, time)
    cleanUp(1 - first, time)
  }

  /** Long.MinValue, where the clock has not ticked yet, is before every cleanup time. */
  private def cleanUp(side: Int, time: Long): Unit = {
    val upTo = bounds.cleanedUpTo(side, time)
    if (upTo == Long.MinValue) ()
    else if (isOuter(side)) caches(side).takeUpTo(upTo)(row => if (!row.isMatched) pad(side, row.row))
    else caches(side).dropUpTo(upTo)
  }

  private def nextCleanup(side: Int): Long =
    if (caches(side).isEmpty) Long.MaxValue else bounds.cleanupTime(side, caches(side).firstTime)

  /** Registers a visit for when the first row of either side is due. */
  private def register(key: Array[Byte]): Unit = {
    if (takesDue) cells.forgetVisit(timeAfter)
    if (!cells.isEmpty) cells.register(math.min(nextCleanup(0), nextCleanup(1)), timeAfter, key, index)
  }

  def keyTag: Char = IntervalCells.Tag

  def look(key: Array[Byte], state: KeyedState): KeyContents = cells.look(key, state)
}

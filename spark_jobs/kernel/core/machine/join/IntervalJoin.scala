package rejoin.core.machine.join

import rejoin.core.machine.{IntervalJoinSpec, Machine, OutputFunctions}
import rejoin.core.row.{Envelope, GroupBatch, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.{CachedRow, KeyedState}
import rejoin.core.time.{EarlyFire, GroupState, IntervalBounds, KeyVisits, VisitIndex}

/** Interval join of two append-only inputs: rows whose times are close enough, in event or processing time.
  *
  * A row is joined with the cached rows of the other side, and cached itself ([[IntervalCells]]) while partners
  * may still come. It leaves at its cleanup time; an outer row that was never joined is then padded. Operator
  * time is the watermark before the batch while rows are applied and the one after it for the
  * cleanup, or the clock's. With early padding an outer row without a partner is padded before, and its first pair
  * takes the padding back. Inputs that change have [[IntervalChanges]]. Rules: docs/semantics.md, "Interval join".
  */
final class IntervalJoin(spec: IntervalJoinSpec, functions: JoinFunctions, outputs: OutputFunctions) extends Machine {
  private val bounds = new IntervalBounds(spec.lowerMs, spec.upperMs, spec.minCleanupMs + spec.allowedLatenessMs)
  private val isOuter = Array(spec.join.leftIsOuter, spec.join.rightIsOuter)
  private val cells = new IntervalCells(isOuter)
  private val caches = cells.sides
  private val early = new EarlyFire(spec.earlyFireMs)

  /** Where results go: in the order of arrival, or netted if some of them are taken back. */
  private val results = outputs.arrivalOrder()
  private val changes = if (spec.earlyFireMs.isDefined) outputs.changes() else null
  private var index: VisitIndex = _
  private var group: GroupState = _
  private var out: Output = _
  private var hash = 0

  /** Cached rows of outer sides up to this time that were never joined have been padded; Long.MinValue: none. */
  private var firedUpTo = Long.MinValue

  /** In processing time the rows' event times say nothing about when they leave. */
  override def holdBackMs: Long =
    if (!spec.isEventTime) 0L
    else if (changes != null) bounds.earlyDelayMs
    else bounds.outputDelayMs + spec.allowedLatenessMs

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
    flush()
  }

  private def visit(rows: KeyRows, state: KeyedState): Unit = {
    cells.load(rows.key, state)
    val leftBefore = caches(0).size
    val rightBefore = caches(1).size
    hash = GroupBatch.hash(rows.key)
    firedUpTo = early.firedUpTo(if (spec.isEventTime) group.watermarkBefore else group.nowBefore)
    if (!rows.isEmpty) {
      fire(timeBefore)
      cleanUp(timeBefore)
      val matchable = functions.canMatch(rows.key)
      rows.foreach(apply(_, matchable))
    }
    fire(timeAfter)
    cleanUp(timeAfter)
    flush()
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
        if (isFired(time) && !isMatched && isOuter(side)) pad(side, row.row)
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
        if (side == 0) pairs(time, row, cached.time, cached.row) else pairs(cached.time, cached.row, time, row)
      val isFirst = joins && isOuter(other) && !cached.isMatched
      if (joins) {
        isMatched = true
        emitPair(side, row, cached, isCorrection = isFirst && isFired(cached.time))
      }
      if (isFirst) cached.matches = 1
      isFirst
    }
    isMatched
  }

  private def pairs(leftTime: Long, left: Array[Byte], rightTime: Long, right: Array[Byte]): Boolean =
    bounds.matches(leftTime, rightTime) && functions.residual(left, right)

  /** @param isCorrection whether the pair replaces the padding of the cached row */
  private def emitPair(side: Int, row: Array[Byte], cached: CachedRow, isCorrection: Boolean): Unit =
    if (isCorrection) {
      emit(RowKind.UpdateBefore, 1 - side, cached.row, null)
      emit(RowKind.UpdateAfter, side, row, cached.row)
    } else emit(RowKind.Insert, side, row, cached.row)

  private def pad(side: Int, row: Array[Byte]): Unit = emit(RowKind.Insert, side, row, null)

  private def emit(kind: Byte, side: Int, row: Array[Byte], partner: Array[Byte]): Unit = {
    val left = if (side == 0) row else partner
    val right = if (side == 0) partner else row
    if (changes == null) results.emit(kind, hash, left, right, out) else changes.add(kind, left, right)
  }

  private def flush(): Unit = if (changes == null) results.flush(hash, out) else changes.flush(hash, out)

  /** Pads the outer rows without a partner whose delay is over; they stay, as a partner may still come. */
  private def fire(time: Long): Unit = {
    val upTo = early.firedUpTo(time)
    if (firedUpTo < upTo) {
      caches.indices.foreach(side => if (isOuter(side)) fire(side, upTo))
      firedUpTo = upTo
    }
  }

  private def fire(side: Int, upTo: Long): Unit = {
    val from = if (firedUpTo == Long.MinValue) firedUpTo else firedUpTo + 1
    caches(side).foreach(from, upTo) { row =>
      if (!row.isMatched) pad(side, row.row)
      false
    }
  }

  private def isFired(time: Long): Boolean = firedUpTo != Long.MinValue && time <= firedUpTo

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
    else if (isOuter(side))
      caches(side).takeUpTo(upTo)(row => if (!row.isMatched && !isFired(row.time)) pad(side, row.row))
    else caches(side).dropUpTo(upTo)
  }

  private def nextCleanup(side: Int): Long =
    if (caches(side).isEmpty) Long.MaxValue else bounds.cleanupTime(side, caches(side).firstTime)

  /** When the next row is due to be padded although a partner may still come. */
  private def nextFire(side: Int): Long =
    if (changes == null || !isOuter(side) || caches(side).isEmpty) Long.MaxValue
    else {
      val next = if (firedUpTo == Long.MinValue) caches(side).firstTime else caches(side).firstAfter(firedUpTo)
      if (next == Long.MaxValue) next else early.fireTime(next)
    }

  private def nextVisit(side: Int): Long = math.min(nextCleanup(side), nextFire(side))

  /** Registers a visit for when the first row of either side is due. */
  private def register(key: Array[Byte]): Unit = {
    if (takesDue) cells.forgetVisit(timeAfter)
    if (!cells.isEmpty) cells.register(math.min(nextVisit(0), nextVisit(1)), timeAfter, key, index)
  }

  def keyTag: Char = IntervalCells.Tag

  def look(key: Array[Byte], state: KeyedState): KeyContents = cells.look(key, state)
}

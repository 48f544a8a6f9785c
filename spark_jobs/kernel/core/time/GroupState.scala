package rejoin.core.time

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, Envelope, Unhealed}
import rejoin.core.state.{Cell, KeyedState, StateCell}

/** What one key group knows besides its rows: row counts per side, watermarks, what is due.
  *
  * {{{
  * cell 'G' : version, rows left, rows right, late rows, unknown retractions, gate, gate timeouts,
  *            watermarks, event-time slots in use, clock slots in use ([[DueIndex]])
  * }}}
  */
final class GroupState private (state: KeyedState) {
  private val cell = new StateCell(Cell.GroupTag, DueIndex.PagedVersion)

  /** Stored rows of each side, copies counted. */
  val rows = new Array[Long](2)

  /** Rows that came behind the watermark and were dropped. */
  var lateRows = 0L

  /** Retractions of rows that were never added, ignored. */
  var unknownRetractions = 0L
  val watermarks = new Watermarks

  /** Keys to visit when the watermark reaches a slot. */
  val due = new DueIndex('D')

  /** Keys to visit when the clock reaches a slot: rows expire, or wait for a processing time. */
  val expiries = new DueIndex('E')

  /** Whether the gate of a processing-time temporal join has opened. */
  var isOpen = false

  /** How often a gate opened because the wait for the build side was over. */
  var gateTimeouts = 0L

  /** Partial rows of this batch whose missing values are not known, in the order in which they came. */
  val unhealed = new ArrayBuffer[Unhealed]

  /** The operator's watermark before this batch: rows at or below it are late. */
  var watermarkBefore: Long = Long.MinValue

  /** Processing time of the batch before. */
  var nowBefore: Long = Long.MinValue

  /** Processing time of this batch, in milliseconds; Long.MinValue before the clock's first row. */
  def now: Long = watermarks.clock

  /** The same; before the clock's first row it is 1970, as in Flink's harness. */
  def nowOrZero: Long = math.max(now, 0L)

  /** Whether the operator's watermark moves in this batch. */
  def isAdvanced: Boolean = watermarks.current > watermarkBefore

  /** Takes the keys that stand in [[due]] up to the watermark; a key may come more than once. */
  def takeDue(state: KeyedState): Iterator[Array[Byte]] =
    if (isAdvanced) due.take(DueIndex.slotOf(watermarks.current), state) else Iterator.empty

  /** Applies the marks of a batch. */
  def applyMarks(marks: Iterable[Envelope], timing: Timing): Unit = {
    watermarkBefore = watermarks.current
    nowBefore = now
    watermarks.applyAll(marks)
    watermarks.advance(timing)
  }

  read(cell.open(Cell.NoKey, state))

  private def read(in: CellReader): Unit = if (in != null) {
    rows(0) = in.varLong()
    rows(1) = in.varLong()
    lateRows = in.varLong()
    unknownRetractions = in.varLong()
    isOpen = in.byte() == 1
    gateTimeouts = in.varLong()
    watermarks.read(in)
    due.read(in, cell.version)
    expiries.read(in, cell.version)
  }

  /** Whether keys are registered for a visit that [[save]] has not written yet. */
  def hasUnwritten: Boolean = due.hasUnwritten || expiries.hasUnwritten

  def save(state: KeyedState): Unit = {
    due.flush(state)
    expiries.flush(state)
    val version = DueIndex.versionOf(due, expiries)
    val out = cell.write(version).varLong(rows(0)).varLong(rows(1)).varLong(lateRows).varLong(unknownRetractions)
    out.byte(if (isOpen) 1 else 0).varLong(gateTimeouts)
    watermarks.write(out)
    due.write(out, version)
    expiries.write(out, version)
    cell.save(state)
  }
}

object GroupState {
  def load(state: KeyedState): GroupState = new GroupState(state)
}

package rejoin.core.machine.normalize

import rejoin.core.machine.{KeyedResult, NormalizeSpec, OutputFunctions}
import rejoin.core.row.{Envelope, GroupBatch, Output, PartialRow, RowFunctions, RowKind, SourcePosition}
import rejoin.core.state.KeyedState
import rejoin.core.time.GroupState

/** The row of one key at a time as [[Normalize]] changes it: opened, changed, closed. */
private trait NormalizedRow {
  def open(key: Array[Byte], state: KeyedState): Unit

  /** Applies a change; false if it only repeats what is known. */
  def apply(change: Envelope, group: GroupState): Boolean

  /** Removes the row, unless it is younger than the truncation. */
  def truncate(truncation: SourcePosition): Unit

  /** Emits the net change and stores the row. */
  def close(group: GroupState, state: KeyedState, out: Output): Unit

  /** Removes the row of a key if its time is over; false if there was none. */
  def expire(key: Array[Byte], group: GroupState, state: KeyedState, out: Output): Boolean
}

/** A row whose values have all come under its own key. */
private final class CompleteRow(
    spec: NormalizeSpec,
    cell: NormalizedCell,
    functions: RowFunctions,
    outputs: OutputFunctions)
    extends NormalizedRow {
  private val result = new KeyedResult(outputs)

  /** The record whose change was applied last: both halves of an update are one change. */
  private var source = 0
  private var seq = 0L
  private var isAdded = false

  /** Where in the database's log the change in hand stands; set by [[isNew]]. */
  val at = new SourcePosition

  /** The row as it is stored, or null. */
  var before: Array[Byte] = _

  /** Whether a change of the key has been applied. */
  var isChanged = false

  def open(key: Array[Byte], state: KeyedState): Unit = {
    cell.load(key, state)
    before = cell.row
    isChanged = false
    isAdded = false
    seq = -1L
  }

  def apply(change: Envelope, group: GroupState): Boolean =
    if (change.kind == RowKind.Partial) applyPartial(change, PartialRow.unpack(change.row), group)
    else {
      val isApplied = !spec.positions || isNew(change, change.row)
      if (isApplied) {
        val row = if (spec.positions) SourcePosition.rowOf(change.row) else change.row
        set(if (RowKind.isAdd(change.kind)) row else null)
        remember(change)
      }
      isApplied
    }

  private def applyPartial(change: Envelope, partial: PartialRow, group: GroupState): Boolean = {
    val isApplied = !spec.positions || isNew(change, partial.row)
    if (isApplied && cell.row == null) group.unhealed += partial.unhealed
    else if (isApplied) {
      heal(partial)
      remember(change)
    }
    isApplied
  }

  /** Takes what the partial row lacks from the key's row. */
  def heal(partial: PartialRow): Unit = set(functions.heal(partial, cell.row))

  def set(row: Array[Byte]): Unit = {
    cell.row = row
    isChanged = true
    isAdded ||= row != null
  }

  /** @param bytes
    *   a row with its position
    */
  def isNew(change: Envelope, bytes: Array[Byte]): Boolean = {
    at.readTail(bytes)
    !cell.position.covers(at) || (change.source == source && change.seq == seq)
  }

  /** Notes the position of a change that has been applied. */
  def remember(change: Envelope): Unit =
    if (spec.positions) {
      source = change.source
      seq = change.seq
      if (at.log != Envelope.NoTime) cell.position.set(at)
    }

  def truncate(truncation: SourcePosition): Unit =
    if (cell.row != null && !(spec.positions && cell.position.covers(truncation))) {
      set(null)
      if (truncation.log != Envelope.NoTime) cell.position.set(truncation)
    }

  def close(group: GroupState, state: KeyedState, out: Output): Unit =
    if (isChanged) {
      emit(out)
      save(group, state)
    }

  def emit(out: Output): Unit = result.emit(before, cell.row, cell.repeats, GroupBatch.hash(cell.key), out)

  def save(group: GroupState, state: KeyedState): Unit = {
    cell.save(before, wasThere = before != null || isAdded, group, state)
    group.rows(0) += (if (cell.row == null) 0 else 1) - (if (before == null) 0 else 1)
  }

  def expire(key: Array[Byte], group: GroupState, state: KeyedState, out: Output): Boolean = {
    cell.load(key, state)
    cell.expire(group, state) && cell.row != null
  }
}

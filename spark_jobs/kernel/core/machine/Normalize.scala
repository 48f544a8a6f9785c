package rejoin.core.machine

import scala.collection.mutable

import rejoin.core.row.{Bytes, Envelope, GroupBatch, KeyChange, KeyContents, KeyRows, Lack, Mark, Output,
  PartialRow, RowFunctions, RowKind, SourcePosition}
import rejoin.core.state.{Cell, KeyedState}
import rejoin.core.time.GroupState

/** Turns an upsert stream into a complete changelog: +I, -U/+U, -D with full rows.
  *
  * Flink's ChangelogNormalize (docs/semantics.md, "Normalisation"): unknown deletes are ignored,
  * identical rows swallowed unless there is a TTL. What a partial row lacks is taken from the row
  * before it. Rows that fail the WHERE clause stay, for the sake of partial rows to come. With source
  * positions, repeated changes are ignored. A row whose key has changed may stay without values that are
  * stored under its old key; [[KeyChanges]] then shows it. Of several changes of a key in one batch only
  * the net one leaves. Every group hears every mark; one of them passes it on.
  */
final class Normalize(spec: NormalizeSpec, functions: RowFunctions, outputs: OutputFunctions) extends Machine {
  private val cell = new NormalizedCell(spec)
  private val result = new KeyedResult(outputs)
  private val at = new SourcePosition
  private val moving = if (spec.keyChanges) new MovingRow(cell) else null
  private var truncations: Truncations = _

  /** The record whose change was applied last: both halves of an update are one change. */
  private var source = 0
  private var seq = 0L

  /** Whether a change of the key in hand has been applied, and whether one was a row. */
  private var isChanged, isAdded = false

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    cell.ttl.foreachDue(group, state)(expire(_, group, state, out))
    truncations = if (batch.truncations.isEmpty) null else new Truncations(batch.truncations, spec.positions)
    batch.foreachKey(visit(_, group, state, out))
    if (truncations != null) truncateOthers(group, state, out)
    batch.marks.foreach { mark =>
      if (mark.group == 0 && mark.kind == RowKind.Watermark)
        Mark.emit(mark.kind, mark.source, mark.time, out)
    }
  }

  def keyTag: Char = NormalizedCell.Tag

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    cell.load(key, state)
    cell.look
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    start(rows.key, state)
    val before = cell.row
    if (truncations == null) applyAll(rows, -1, group)
    else
      (0 to truncations.size).foreach { phase =>
        if (phase > 0) truncate(phase - 1)
        applyAll(rows, phase, group)
      }
    if (truncations != null) truncations.visited += Bytes(rows.key)
    finish(before, group, state, out)
  }

  /** The rows that stay are those of the keys that no row of the batch has touched. */
  private def truncateOthers(group: GroupState, state: KeyedState, out: Output): Unit =
    state.names(NormalizedCell.Tag).map(Cell.keyOf).filterNot(key => truncations.visited(Bytes(key))).foreach { key =>
      start(key, state)
      val before = cell.row
      (0 until truncations.size).foreach(truncate)
      finish(before, group, state, out)
    }

  private def start(key: Array[Byte], state: KeyedState): Unit = {
    cell.load(key, state)
    isChanged = false
    isAdded = false
    seq = -1L
    if (moving != null) moving.start()
  }

  private def finish(before: Array[Byte], group: GroupState, state: KeyedState, out: Output): Unit =
    if (isChanged) {
      if (moving != null && moving.isElsewhere) moving.tell(before)
      else result.emit(before, cell.row, cell.repeats, GroupBatch.hash(cell.key), out)
      cell.save(before, wasThere = before != null || isAdded, group, state)
      group.rows(0) += (if (cell.row == null) 0 else 1) - (if (before == null) 0 else 1)
      if (moving != null) moving.flush(out)
    }

  /** Applies the rows of one phase, -1 being all. */
  private def applyAll(rows: KeyRows, phase: Int, group: GroupState): Unit =
    rows.foreach(row => if (phase < 0 || truncations.phaseOf(row) == phase) apply(row, group))

  private def apply(change: Envelope, group: GroupState): Unit =
    if (change.kind == RowKind.Partial) applyPartial(change, PartialRow.unpack(change.row), group)
    else if (change.kind > RowKind.Partial) applyMoved(change)
    else if (!spec.positions) set(if (RowKind.isAdd(change.kind)) change.row else null)
    else if (isNews(change, change.row)) {
      set(if (RowKind.isAdd(change.kind)) SourcePosition.rowOf(change.row) else null)
      remember(change)
    } else if (cell.lack != null && RowKind.isAdd(change.kind)) complete(change)

  private def applyPartial(change: Envelope, partial: PartialRow, group: GroupState): Unit =
    if (!spec.positions || isNews(change, partial.row)) {
      if (cell.row == null) group.unhealed += partial.unhealed
      else {
        heal(partial)
        if (spec.positions) remember(change)
      }
    }

  /** Takes from the key's row what the partial one lacks, as far as the former has it. */
  private def heal(partial: PartialRow): Unit = {
    val row = functions.heal(partial, cell.row)
    val lack = if (cell.lack == null) null else cell.lack.within(partial.missing)
    if (lack == null) set(row)
    else {
      store(row)
      moving.await(lack, partial.unhealed)
    }
  }

  /** One of the two events that tell of the change of a primary key. */
  private def applyMoved(change: Envelope): Unit = {
    val partial = if (change.kind == RowKind.MovedPartial) PartialRow.unpack(change.row) else null
    if (isNews(change, if (partial == null) change.row else partial.row)) {
      val keyChange = KeyChange(at)
      if (change.kind == RowKind.MovedAway) {
        moving.leave(keyChange)
        set(null)
      } else if (partial != null && cell.row == null) {
        store(SourcePosition.rowOf(partial.row))
        moving.await(new Lack(partial.missing, keyChange), partial.unhealed)
      } else {
        moving.needless(keyChange)
        if (partial == null) set(SourcePosition.rowOf(change.row)) else heal(partial)
      }
      remember(change)
    } else if (cell.lack != null && change.kind == RowKind.MovedHere) complete(change)
  }

  /** Takes what the row lacks from an event that lacked it when it came first: a repaired dead letter. */
  private def complete(change: Envelope): Unit =
    if (at.log >= cell.lack.change.log)
      set(functions.heal(cell.row, cell.lack.missing, SourcePosition.rowOf(change.row)))

  /** Replaces the row by a complete one, or by none. */
  private def set(row: Array[Byte]): Unit = {
    if (cell.lack != null) moving.settle()
    store(row)
  }

  private def store(row: Array[Byte]): Unit = {
    cell.row = row
    isChanged = true
    isAdded ||= row != null
  }

  private def isNews(change: Envelope, bytes: Array[Byte]): Boolean = {
    at.readTail(bytes)
    !cell.position.covers(at) || (change.source == source && change.seq == seq)
  }

  private def remember(change: Envelope): Unit = {
    source = change.source
    seq = change.seq
    if (at.log != Envelope.NoTime) cell.position.set(at)
  }

  private def truncate(number: Int): Unit = {
    val when = truncations.position(number)
    if (cell.row != null && !(spec.positions && cell.position.covers(when))) {
      set(null)
      if (when.log != Envelope.NoTime) cell.position.set(when)
    }
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState, out: Output): Unit = {
    cell.load(key, state)
    if (cell.expire(group, state) && cell.row != null) {
      group.rows(0) -= 1
      if (moving != null) {
        moving.expire()
        moving.flush(out)
      }
    }
  }
}

/** The truncations of one batch, by place in Kafka.
  *
  * A truncation follows the rows of its partition that stand before it, and all rows of the others:
  * how those were ordered in the database nobody can tell.
  */
private final class Truncations(found: Iterable[Envelope], carryPosition: Boolean) {
  private val ordered = found.toVector.sortBy(t => (t.source, t.seq)).distinctBy(t => (t.source, t.seq))
  private val positions = ordered.map { truncation =>
    val position = new SourcePosition
    if (carryPosition) position.readTail(truncation.row)
    position
  }

  /** Keys that have been seen to. */
  val visited = mutable.HashSet.empty[Bytes]

  def size: Int = ordered.size
  def position(number: Int): SourcePosition = positions(number)

  /** After how many of the truncations the row is to be applied. */
  def phaseOf(row: Envelope): Int = ordered.lastIndexWhere(t => t.source == row.source && t.seq < row.seq) + 1
}

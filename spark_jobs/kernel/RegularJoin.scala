package org.apache.spark.sql.rejoin

/** One side of a regular join: its facts and its stored rows under the current join key. */
final class JoinSide(
    spec: SideSpec,
    val isOuter: Boolean,
    uniqueKey: Array[Byte] => Array[Byte],
    pageTag: Char,
    hasResidual: Boolean) {
  private val countsMatches = isOuter && hasResidual
  val hasUniqueKey: Boolean = spec.layout != SideSpec.NoUniqueKey
  val isUpsert: Boolean = spec.upsert
  val stored = new SideRows(pageTag, keepsMatches = countsMatches, idIsRow = !hasUniqueKey)

  /** What tells the row apart from others under the same join key. */
  val idOf: Array[Byte] => Array[Byte] = spec.layout match {
    case SideSpec.JoinKeyContainsUniqueKey => _ => JoinSide.OnlyRow
    case SideSpec.HasUniqueKey => uniqueKey
    case SideSpec.NoUniqueKey => identity
    case other => throw new IllegalArgumentException(s"unknown state layout '$other'")
  }

  def matchesOf(row: StoredRow, other: JoinSide): Long = if (countsMatches) row.matches else other.stored.rows

  def addMatches(row: StoredRow, by: Long): Unit = if (countsMatches) stored.changeMatches(row, by)

  def store(id: Array[Byte], row: Array[Byte], equalRow: StoredRow, matches: Long): Unit =
    if (equalRow == null) stored.insert(new StoredRow(id, row, 1, if (countsMatches) matches else 0))
    else stored.changeCopies(equalRow, 1)
}

object JoinSide {
  private val OnlyRow = new Array[Byte](0)
}

/** Regular join over two changelogs: every change of a side meets all rows of the other side.
  *
  * {{{
  * cell 'K' + join key : version, left side, right side      (SideRows)
  * cells 'L' / 'R'     : further pages of a side
  * }}}
  * The rules are Flink's StreamingJoinOperator (docs/semantics.md, "Regular join"), for both sides
  * in one method. Where no residual predicate exists, every row of a key has the same match count,
  * the row count of the other side, so none is stored per row.
  */
final class RegularJoin(spec: JoinSpec, functions: JoinFunctions) extends Machine {
  private val left = new JoinSide(spec.left, spec.leftIsOuter, functions.leftUniqueKey, 'L', spec.hasResidual)
  private val right = new JoinSide(spec.right, spec.rightIsOuter, functions.rightUniqueKey, 'R', spec.hasResidual)
  private val changes = new Changes(functions.accepts, functions.pairBy)
  private val header = new CellWriter
  private val pages = new CellWriter
  private var changed = false

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit =
    batch.foreachKey { rows =>
      val cell = Cell.key('K', rows.key)
      load(rows.key, cell, state)
      val leftBefore = left.stored.rows
      val rightBefore = right.stored.rows
      val matchable = functions.canMatch(rows.key)
      var i = 0
      while (i < rows.size) {
        apply(rows(i), matchable, group)
        i += 1
      }
      changes.flush(GroupBatch.hash(rows.key), out)
      group.rows(0) += left.stored.rows - leftBefore
      group.rows(1) += right.stored.rows - rightBefore
      if (changed) save(cell, state)
    }

  private def load(key: Array[Byte], cell: Array[Byte], state: KeyedState): Unit = {
    changed = false
    left.stored.reset(key, state)
    right.stored.reset(key, state)
    val value = state.get(cell)
    if (value != null) {
      val in = new CellReader(value).version()
      left.stored.read(in)
      right.stored.read(in)
    }
  }

  private def save(cell: Array[Byte], state: KeyedState): Unit = {
    header.reset().byte(Codec.Version)
    left.stored.write(header, pages)
    right.stored.write(header, pages)
    if (left.stored.rows == 0 && right.stored.rows == 0) state.remove(cell)
    else state.put(cell, header.result())
  }

  private def apply(change: Envelope, matchable: Boolean, group: GroupState): Unit = {
    val fromLeft = change.side == 0
    val input = if (fromLeft) left else right
    val other = if (fromLeft) right else left
    val id = input.idOf(change.row)
    val stored = input.stored.find(id)
    if (RowKind.isAdd(change.kind)) {
      if (stored == null || !input.hasUniqueKey) {
        // an upsert does not say whether it is the first of its key
        val kind = if (input.isUpsert) RowKind.Insert else change.kind
        accumulate(input, other, kind, id, change.row, stored, matchable)
      } else if (!java.util.Arrays.equals(stored.row, change.row)) {
        retract(input, other, RowKind.UpdateBefore, stored, matchable)
        accumulate(input, other, RowKind.UpdateAfter, id, change.row, null, matchable)
      }
    } else if (stored != null) retract(input, other, change.kind, stored, matchable)
    else if (!input.isUpsert) group.unknownRetractions += 1
  }

  /** A row appears: it meets the other side's rows, whose padding goes with their first match. */
  private def accumulate(
      input: JoinSide,
      other: JoinSide,
      kind: Byte,
      id: Array[Byte],
      row: Array[Byte],
      equalRow: StoredRow,
      matchable: Boolean): Unit = {
    val joinedKind = if (input.isOuter || other.isOuter) RowKind.Insert else kind
    var matches = 0L
    if (matchable && other.stored.rows > 0)
      other.stored.foreach { candidate =>
        if (passesResidual(input, row, candidate.row)) {
          if (other.isOuter && other.matchesOf(candidate, input) == 0)
            emit(other, RowKind.Delete, candidate.row, null, candidate.copies)
          other.addMatches(candidate, 1)
          emit(input, joinedKind, row, candidate.row, candidate.copies)
          matches += candidate.copies
        }
      }
    if (input.isOuter && matches == 0) emit(input, RowKind.Insert, row, null, 1)
    input.store(id, row, equalRow, matches)
    changed = true
  }

  /** A row disappears: its results go, and rows of the other side that lose their last match are padded. */
  private def retract(input: JoinSide, other: JoinSide, kind: Byte, stored: StoredRow, matchable: Boolean): Unit = {
    val joinedKind = if (input.isOuter) RowKind.Delete else kind
    val row = stored.row
    var matches = 0L
    if (matchable && other.stored.rows > 0)
      other.stored.foreach { candidate =>
        if (passesResidual(input, row, candidate.row)) {
          emit(input, joinedKind, row, candidate.row, candidate.copies)
          if (other.isOuter && other.matchesOf(candidate, input) == 1)
            emit(other, RowKind.Insert, candidate.row, null, candidate.copies)
          other.addMatches(candidate, -1)
          matches += candidate.copies
        }
      }
    if (input.isOuter && matches == 0) emit(input, RowKind.Delete, row, null, 1)
    input.stored.changeCopies(stored, -1)
    changed = true
  }

  private def passesResidual(input: JoinSide, row: Array[Byte], candidate: Array[Byte]): Boolean =
    !spec.hasResidual ||
      (if (input eq left) functions.residual(row, candidate) else functions.residual(candidate, row))

  private def emit(side: JoinSide, kind: Byte, row: Array[Byte], otherRow: Array[Byte], times: Long): Unit = {
    var n = times
    while (n > 0) {
      if (side eq left) changes.add(kind, row, otherRow) else changes.add(kind, otherRow, row)
      n -= 1
    }
  }
}

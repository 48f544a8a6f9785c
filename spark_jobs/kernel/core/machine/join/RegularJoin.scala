package rejoin.core.machine.join

import rejoin.core.machine.{Machine, OutputFunctions, RegularJoinSpec, SideSpec}
import rejoin.core.results.Changes
import rejoin.core.row.{GroupBatch, KeyContents, Output, RowFunctions, RowKind}
import rejoin.core.state.{KeyedState, StoredRow}
import rejoin.core.time.GroupState

/** Regular join over two changelogs: every change of a side meets all rows of the other side.
  *
  * The rules are those of Flink's StreamingJoinOperator and StreamingSemiAntiJoinOperator
  * (docs/semantics.md, "Regular join", "Semi and anti join", "State TTL"). Where no residual
  * predicate exists and rows of the other side come and go only by its changelog, every row of a
  * key has the same match count, the other side's row count, so none is stored per row.
  */
final class RegularJoin(regular: RegularJoinSpec, functions: JoinFunctions, outputs: OutputFunctions)
    extends Machine {
  private val spec = regular.join
  private val left = side(0, spec.left, spec.leftIsOuter, functions.left, 'L')
  private val right = side(1, spec.right, spec.rightIsOuter, functions.right, 'R')
  private val changes = outputs.changes()
  private val rules: JoinRules = {
    val residual = if (spec.hasResidual) functions.residual else null
    if (spec.isSemi || spec.isAnti) new SemiRules(spec.isAnti, left, right, residual, changes)
    else new PairRules(left, right, residual, changes)
  }
  private val state = new JoinState(Array(left, right), rules, changes, functions.canMatch)

  private def side(
      number: Int,
      facts: SideSpec,
      isOuter: Boolean,
      rows: RowFunctions,
      pageTag: Char): JoinSide = {
    val decides = isOuter || (number == 0 && (spec.isSemi || spec.isAnti))
    val other = if (number == 0) spec.right else spec.left
    val countsDiffer = other.trusted || regular.timing.ttlMs(1 - number) > 0
    val ttlMs = regular.timing.ttlMs(number)
    new JoinSide(facts, number, isOuter, decides, spec.hasResidual, countsDiffer, ttlMs, rows, pageTag)
  }

  def process(batch: GroupBatch, group: GroupState, keyed: KeyedState, out: Output): Unit =
    state.process(batch, group, keyed, out)

  def keyTag: Char = JoinState.Tag

  def look(key: Array[Byte], keyed: KeyedState): KeyContents = state.look(key, keyed)
}

/** Inner, left, right and full joins, for both sides in one method.
  *
  * @param residual
  *   null where every pair of rows under a key matches
  */
final class PairRules(
    left: JoinSide,
    right: JoinSide,
    residual: (Array[Byte], Array[Byte]) => Boolean,
    changes: Changes)
    extends JoinRules {

  def accumulate(
      input: JoinSide,
      kind: Byte,
      id: Array[Byte],
      row: Array[Byte],
      known: StoredRow,
      matchable: Boolean): Unit = {
    val joinedKind = if (input.isOuter || otherOf(input).isOuter) RowKind.Insert else kind
    input.store(id, row, known, meet(input, row, by = 1, joinedKind, matchable))
  }

  def retract(input: JoinSide, kind: Byte, row: Array[Byte], stored: StoredRow, matchable: Boolean): Unit = {
    meet(input, row, by = -1, if (input.isOuter) RowKind.Delete else kind, matchable)
    input.forget(stored)
  }

  /** A row that appears (`by` 1) or disappears (-1) meets the rows of the other side; gives the number of matches.
    *
    * The other side's rows lose their padding with their first match, and are padded again after the last one.
    */
  private def meet(input: JoinSide, row: Array[Byte], by: Int, joinedKind: Byte, matchable: Boolean): Long = {
    val other = otherOf(input)
    var matches = 0L
    if (matchable && other.stored.rows > 0) {
      val matchesAtPadding = if (by > 0) 0L else 1L
      val paddingKind = if (by > 0) RowKind.Delete else RowKind.Insert
      other.stored.foreach { candidate =>
        if (passesResidual(input, row, candidate.row)) {
          if (other.isOuter && other.matchesOf(candidate, input) == matchesAtPadding)
            emit(other, paddingKind, candidate.row, null, candidate.copies)
          other.addMatches(candidate, by.toLong)
          emit(input, joinedKind, row, candidate.row, candidate.copies)
          matches += candidate.copies
        }
      }
      other.refresh()
    }
    if (input.isOuter && matches == 0) emit(input, if (by > 0) RowKind.Insert else RowKind.Delete, row, null, 1)
    matches
  }

  private def otherOf(input: JoinSide): JoinSide = if (input eq left) right else left

  private def passesResidual(input: JoinSide, row: Array[Byte], candidate: Array[Byte]): Boolean =
    residual == null || (if (input eq left) residual(row, candidate) else residual(candidate, row))

  private def emit(side: JoinSide, kind: Byte, row: Array[Byte], otherRow: Array[Byte], times: Long): Unit =
    if (side eq left) changes.add(kind, row, otherRow, times) else changes.add(kind, otherRow, row, times)
}

/** Semi and anti joins: left rows with a match, or those without one.
  *
  * Without stored match counts a change of the right side concerns the left one only where it adds
  * the first row of a key or takes the last.
  */
final class SemiRules(
    isAnti: Boolean,
    left: JoinSide,
    right: JoinSide,
    residual: (Array[Byte], Array[Byte]) => Boolean,
    changes: Changes)
    extends JoinRules {

  def accumulate(
      input: JoinSide,
      kind: Byte,
      id: Array[Byte],
      row: Array[Byte],
      known: StoredRow,
      matchable: Boolean): Unit =
    if (input eq left) left.store(id, row, known, show(kind, row, matchable))
    else {
      if (matchable) changeMatches(row, before = 0, by = 1, if (isAnti) RowKind.Delete else kind)
      right.store(id, row, known, 0)
    }

  def retract(input: JoinSide, kind: Byte, row: Array[Byte], stored: StoredRow, matchable: Boolean): Unit =
    if (input eq left) {
      show(kind, row, matchable)
      left.forget(stored)
    } else {
      if (matchable) changeMatches(row, before = 1, by = -1, if (isAnti) RowKind.Insert else kind)
      right.forget(stored)
    }

  /** Emits a left row if it is part of the result; gives the number of its matches. */
  private def show(kind: Byte, row: Array[Byte], matchable: Boolean): Long = {
    val matches = if (matchable) matchesOf(row) else 0L
    if ((matches == 0) == isAnti) changes.add(kind, row, null)
    matches
  }

  private def matchesOf(row: Array[Byte]): Long =
    if (!left.countsMatches || right.stored.rows == 0) right.stored.rows
    else {
      var matches = 0L
      right.stored.foreach(other => if (passesResidual(row, other.row)) matches += other.copies)
      matches
    }

  /** Left rows that had `before` matches change sides; `kind` is what becomes of them. */
  private def changeMatches(row: Array[Byte], before: Long, by: Long, kind: Byte): Unit =
    if (left.stored.rows > 0) {
      if (left.countsMatches)
        left.stored.foreach { other =>
          if (passesResidual(other.row, row)) {
            if (other.matches == before) emit(kind, other)
            left.addMatches(other, by)
          }
        }
      else if (right.stored.rows == before) left.stored.foreach(emit(kind, _))
      left.refresh()
    }

  private def passesResidual(leftRow: Array[Byte], rightRow: Array[Byte]): Boolean =
    residual == null || residual(leftRow, rightRow)

  private def emit(kind: Byte, row: StoredRow): Unit = changes.add(kind, row.row, null, row.copies)
}

package rejoin.core.machine.join

import rejoin.core.machine.{Machine, MultiJoinSpec, OutputFunctions}
import rejoin.core.results.Changes
import rejoin.core.row.{GroupBatch, KeyContents, Output, RowFunctions, RowKind}
import rejoin.core.state.{KeyedState, StoredRow}
import rejoin.core.time.GroupState

/** Changelogs that share one join key, joined one after the other without storing what lies between.
  *
  * Step i joins side i to the combinations of the sides before it: inner, or left with padding. A
  * change meets only combinations of its own row: first those of the sides before it, then for each
  * of them those of the sides after it. Its results are those of a chain of [[RegularJoin]]s
  * (docs/semantics.md, "Multi-way join").
  *
  * {{{
  * cell 'K' + join key : version, all sides        (SideRows)
  * cells 'a', 'b', ... : further pages of a side
  * }}}
  */
final class MultiJoin(spec: MultiJoinSpec, functions: MultiJoinFunctions, outputs: OutputFunctions) extends Machine {
  private val changes = outputs.changes()
  private val sides = spec.sides.indices.map { i =>
    val ttlMs = spec.timing.ttlMs.lift(i).getOrElse(0L)
    JoinSide.withoutMatches(spec.sides(i), number = i, ttlMs, functions.sides(i), pageTag(i))
  }.toArray
  private val rules = new MultiRules(spec, sides, functions.combination, changes)
  private val state = new JoinState(sides, rules, changes, functions.canMatch)

  private def pageTag(side: Int): Char = ('a' + side).toChar

  def process(batch: GroupBatch, group: GroupState, keyed: KeyedState, out: Output): Unit =
    state.process(batch, group, keyed, out)

  def keyTag: Char = JoinState.Tag

  def look(key: Array[Byte], keyed: KeyedState): KeyContents = state.look(key, keyed)
}

/** What a multi-way join asks about packed rows. One instance serves one task. */
final class MultiJoinFunctions(
    val sides: Seq[RowFunctions],
    val canMatch: Array[Byte] => Boolean,
    val combination: Combination)

/** The row of each side that a multi-way join has in hand. */
trait Combination {

  /** Takes the packed row of a side; null where the side is padded. */
  def put(side: Int, row: Array[Byte]): Unit

  /** Whether the rows up to this side pass its residual predicate; true where there is none. */
  def passes(side: Int): Boolean

  /** All sides as one packed row. */
  def packed(): Array[Byte]
}

/** Enumerates the combinations of a changed row. */
final class MultiRules(
    spec: MultiJoinSpec,
    sides: Array[JoinSide],
    combination: Combination,
    changes: Changes)
    extends JoinRules {
  private val isLeft = Array(false) ++ spec.joinTypes.map(_ == "left")

  private var changed = 0
  private var row: Array[Byte] = _
  private var kind: Byte = RowKind.Insert
  private var paddingKind: Byte = RowKind.Delete
  private var matchable = true

  def accumulate(
      input: JoinSide,
      kind: Byte,
      id: Array[Byte],
      row: Array[Byte],
      known: StoredRow,
      matchable: Boolean): Unit = {
    start(input, kind, row, RowKind.Delete, matchable)
    input.store(id, row, known, 0)
  }

  def retract(input: JoinSide, kind: Byte, row: Array[Byte], stored: StoredRow, matchable: Boolean): Unit = {
    input.forget(stored)
    start(input, kind, row, RowKind.Insert, matchable)
  }

  /** To be called while the changed row is not among the stored ones. */
  private def start(
      input: JoinSide,
      kind: Byte,
      row: Array[Byte],
      paddingKind: Byte,
      matchable: Boolean): Unit = {
    changed = input.number
    this.kind = kind
    this.row = row
    this.paddingKind = paddingKind
    this.matchable = matchable
    if ((matchable || changed == 0) && !isWithoutResult) before(0, 1L)
  }

  /** An inner step without rows leaves no result, whatever the others hold. */
  private def isWithoutResult: Boolean = {
    var i = 0
    while (i < sides.length && (i == changed || isLeft(i) || (matchable && sides(i).stored.rows > 0))) i += 1
    i < sides.length
  }

  /** Chooses rows of the sides from `step` up to the changed one, whose row then takes its place. */
  private def before(step: Int, times: Long): Unit =
    if (step < changed) extend(step, times)(n => before(step + 1, n))
    else {
      combination.put(step, row)
      if (combination.passes(step)) {
        if (isLeft(step) && !hasMatch(step)) {
          combination.put(step, null)
          after(step + 1, times, paddingKind)
        }
        combination.put(step, row)
        after(step + 1, times, kind)
      }
    }

  /** Emits each combination of the sides from `step` on with those that are chosen before it. */
  private def after(step: Int, times: Long, kind: Byte): Unit =
    if (step == sides.length) emit(kind, times)
    else extend(step, times)(n => after(step + 1, n, kind))

  private def extend(step: Int, times: Long)(next: Long => Unit): Unit = {
    var isMatched = false
    if ((matchable || step == 0) && sides(step).stored.rows > 0)
      sides(step).stored.foreach { candidate =>
        combination.put(step, candidate.row)
        if (combination.passes(step)) {
          isMatched = true
          next(times * candidate.copies)
        }
      }
    if (!isMatched && isLeft(step)) {
      combination.put(step, null)
      next(times)
    }
  }

  /** Whether a stored row of the changed side matches the combination before it. */
  private def hasMatch(step: Int): Boolean =
    sides(step).stored.rows > 0 && sides(step).stored.exists { candidate =>
      combination.put(step, candidate.row)
      combination.passes(step)
    }

  private def emit(kind: Byte, times: Long): Unit = changes.add(kind, combination.packed(), null, times)
}

package rejoin.core.machine

import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.expressions.{GetStructField, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.run.{Expressions, Packed}
import rejoin.core.row.{Changes, GroupBatch, KeyContents, Output, RowKind}
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
final class MultiJoin(spec: MultiJoinSpec, residuals: Seq[Option[Expression]], outputs: OutputFunctions)
    extends Machine {
  private val changes = outputs.changes()
  private val sides = spec.sides.indices.map { i =>
    val facts = spec.sides(i)
    val ttlMs = spec.timing.ttlMs.lift(i).getOrElse(0L)
    val uniqueKey = JoinFunctions.columns(facts.schema, facts.uniqueKey)
    new JoinSide(
      facts,
      number = i,
      isOuter = false,
      needsMatches = false,
      hasResidual = false,
      countsDiffer = false,
      ttlMs,
      uniqueKey,
      pageTag(i))
  }.toArray
  private val state = new JoinState(sides, changes, JoinFunctions.canMatch(spec.filterNulls))
  private val rules = new MultiRules(spec, sides, residuals, changes)

  private def pageTag(side: Int): Char = ('a' + side).toChar

  def process(batch: GroupBatch, group: GroupState, keyed: KeyedState, out: Output): Unit =
    state.process(batch, group, keyed, rules, out)

  def keyTag: Char = JoinState.Tag

  def look(key: Array[Byte], keyed: KeyedState): KeyContents = state.look(key, keyed)
}

object MultiJoin {

  /** The residual of each side from the second on, over one struct per side. */
  def bind(spec: MultiJoinSpec): Seq[Option[Expression]] =
    spec.residuals.zipWithIndex.map { case (residual, step) =>
      val width = spec.sides.take(step + 2).map(_.schema.size).sum
      val columns = StructType(spec.schema.take(width).map(_.copy(nullable = true)))
      residual.map { text =>
        Expressions.bind(Seq(text), columns, spec.output.timeZone).head.transformUp { case column: BoundReference =>
          places(spec)(column.ordinal)
        }
      }
    }

  /** Each column of all sides as a field of its side's struct. */
  def places(spec: MultiJoinSpec): Seq[Expression] =
    spec.sides.zipWithIndex.flatMap { case (side, i) =>
      val struct = BoundReference(i, StructType(side.schema.map(_.copy(nullable = true))), nullable = true)
      side.schema.indices.map(GetStructField(struct, _))
    }
}

/** Enumerates the combinations of a changed row.
  *
  * `combination` holds the row of each side that is in hand; NULL where a side is padded.
  */
final class MultiRules(
    spec: MultiJoinSpec,
    sides: Array[JoinSide],
    residualExpressions: Seq[Option[Expression]],
    changes: Changes)
    extends JoinRules {
  private val isLeft = Array(false) ++ spec.joinTypes.map(_ == "left")
  private val combination = new GenericInternalRow(sides.length)
  private val views = spec.sides.map(side => new UnsafeRow(side.schema.size)).toArray
  private val residuals: Array[BasePredicate] =
    (None +: residualExpressions).map(_.map(Expressions.compiledPredicate(_, spec.output.timeZone)).orNull).toArray
  private val pack: UnsafeProjection =
    Expressions.compiledProjection(MultiJoin.places(spec), spec.output.timeZone)

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

  /** Combinations of the sides before the changed one, from `step` on. */
  private def before(step: Int, times: Long): Unit =
    if (step < changed) extend(step, times)(n => before(step + 1, n))
    else {
      point(step, row)
      if (passes(step)) {
        if (isLeft(step) && !hasMatch(step)) {
          combination.update(step, null)
          after(step + 1, times, paddingKind)
        }
        point(step, row)
        after(step + 1, times, kind)
      }
    }

  /** What follows from a combination up to the changed side. */
  private def after(step: Int, times: Long, kind: Byte): Unit =
    if (step == sides.length) emit(kind, times)
    else extend(step, times)(n => after(step + 1, n, kind))

  private def extend(step: Int, times: Long)(next: Long => Unit): Unit = {
    var isMatched = false
    if ((matchable || step == 0) && sides(step).stored.rows > 0)
      sides(step).stored.foreach { candidate =>
        point(step, candidate.row)
        if (passes(step)) {
          isMatched = true
          next(times * candidate.copies)
        }
      }
    if (!isMatched && isLeft(step)) {
      combination.update(step, null)
      next(times)
    }
  }

  /** Whether a stored row of the changed side matches the combination before it. */
  private def hasMatch(step: Int): Boolean =
    sides(step).stored.rows > 0 && sides(step).stored.exists { candidate =>
      point(step, candidate.row)
      passes(step)
    }

  private def point(step: Int, row: Array[Byte]): Unit = {
    views(step).pointTo(row, row.length)
    combination.update(step, views(step))
  }

  private def passes(step: Int): Boolean = residuals(step) == null || residuals(step).eval(combination)

  private def emit(kind: Byte, times: Long): Unit = {
    val packed = Packed(pack(combination))
    var n = times
    while (n > 0) {
      changes.add(kind, packed, null)
      n -= 1
    }
  }
}

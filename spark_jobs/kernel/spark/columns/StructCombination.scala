package org.apache.spark.sql.rejoin.columns

import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.expressions.{GetStructField, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

import rejoin.core.machine.join.Combination

/** The rows that a multi-way join has in hand, as one struct per side.
  *
  * @param residualExpressions
  *   of the sides from the second on, over those structs
  */
final class StructCombination(
    sides: Seq[StructType],
    residualExpressions: Seq[Option[Expression]],
    timeZone: String)
    extends Combination {
  private val structs = new GenericInternalRow(sides.size)
  private val views = sides.map(side => new UnsafeRow(side.size)).toArray
  private val residuals: Array[BasePredicate] =
    (None +: residualExpressions).map(_.map(Expressions.compiledPredicate(_, timeZone)).orNull).toArray
  private val pack: UnsafeProjection = Expressions.compiledProjection(StructCombination.places(sides), timeZone)

  def put(side: Int, row: Array[Byte]): Unit =
    if (row == null) structs.update(side, null)
    else {
      views(side).pointTo(row, row.length)
      structs.update(side, views(side))
    }

  def passes(side: Int): Boolean = residuals(side) == null || residuals(side).eval(structs)

  def packed(): Array[Byte] = Packed(pack(structs))
}

object StructCombination {

  /** Each column of all sides as a field of its side's struct. */
  def places(sides: Seq[StructType]): Seq[Expression] =
    sides.zipWithIndex.flatMap { case (side, i) =>
      val struct = BoundReference(i, side.asNullable, nullable = true)
      side.indices.map(GetStructField(struct, _))
    }
}

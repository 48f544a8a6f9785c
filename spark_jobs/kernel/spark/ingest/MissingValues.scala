package org.apache.spark.sql.rejoin.ingest

import java.util

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}

/** Which columns of a table may lack their value in an event, and their ordinals in the packed row.
  *
  * A column that an expression uses before the row is packed must have its value: it cannot be added later.
  */
private[rejoin] final class MissingValues(plan: IngestPlan) {
  private val spec = plan.spec
  private val watermark = read(Seq(plan.facts(2)))
  private val needed = read(plan.facts.take(2) ++ plan.key ++ plan.row.filterNot(isPlain))
  spec.primaryKey.map(spec.ordinal).filter(_ >= 0).foreach(needed.set)

  private def isPlain(expression: Expression): Boolean = expression.isInstanceOf[BoundReference]

  private def read(expressions: Seq[Expression]): util.BitSet = {
    val ordinals = new util.BitSet
    expressions.foreach(_.foreach {
      case column: BoundReference => ordinals.set(column.ordinal)
      case _ => ()
    })
    ordinals
  }

  def hidesWatermark(missing: util.BitSet): Boolean = watermark.intersects(missing)

  /** The ordinals in the packed row of these columns of the table; throws if one of them is needed now. */
  def inRow(missing: util.BitSet): util.BitSet = {
    if (needed.intersects(missing)) throw MissingValues.unavailable
    val places = new util.BitSet
    plan.row.zipWithIndex.foreach {
      case (column: BoundReference, place) if missing.get(column.ordinal) => places.set(place)
      case _ => ()
    }
    places
  }
}

object MissingValues {
  def unavailable: BadRecord =
    new BadRecord(
      Reason.Unavailable,
      "the database did not log an unchanged large value, and no row of its key is known to take it from:" +
        " set REPLICA IDENTITY FULL or, where a primary key has changed," +
        " 'rejoin.debezium.key-changes' = 'heal'")
}

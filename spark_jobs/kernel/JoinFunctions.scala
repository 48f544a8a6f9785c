package org.apache.spark.sql.rejoin

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

/** A join's Spark expressions, bound on the driver; [[JoinFunctions]] compiles them in the task. */
final case class JoinExpressions(
    residual: Option[Expression],
    where: Option[Expression],
    pairBy: Option[Seq[Expression]])

object JoinExpressions {
  def bind(spec: JoinSpec): JoinExpressions = {
    def bindAll(texts: Seq[String]): Seq[Expression] = Expressions.bind(texts, spec.joined, spec.timeZone)
    JoinExpressions(
      spec.residual.map(text => bindAll(Seq(text)).head),
      spec.where.map(text => bindAll(Seq(text)).head),
      spec.pairBy.map(bindAll))
  }
}

/** What a join asks about packed rows. One instance serves one task: it reuses its row views. */
final class JoinFunctions(spec: JoinSpec, expressions: JoinExpressions) {
  private val joined = new JoinedBytes(spec.left.schema.size, spec.right.schema.size)
  private val keyRow = new UnsafeRow(spec.keySize)
  private val nullFilters = spec.filterNulls.indices.filter(spec.filterNulls).toArray

  /** Whether the pair passes the residual predicate; true where there is none. */
  val residual: (Array[Byte], Array[Byte]) => Boolean = test(expressions.residual)

  /** Whether the joined row passes the WHERE clause; true where there is none. */
  val accepts: (Array[Byte], Array[Byte]) => Boolean = test(expressions.where)

  /** The sink's key of a joined row; null where retractions are always emitted. */
  val pairBy: (Array[Byte], Array[Byte]) => Array[Byte] =
    expressions.pairBy.map { key =>
      val projection = Expressions.compiledProjection(key, spec.timeZone)
      (left: Array[Byte], right: Array[Byte]) => Packed(projection(joined(left, right)))
    }.orNull

  val leftUniqueKey: Array[Byte] => Array[Byte] = JoinFunctions.columns(spec.left.schema, spec.left.uniqueKey)
  val rightUniqueKey: Array[Byte] => Array[Byte] = JoinFunctions.columns(spec.right.schema, spec.right.uniqueKey)

  /** False where a key column is NULL and compared by `=`. */
  def canMatch(key: Array[Byte]): Boolean = nullFilters.isEmpty || {
    keyRow.pointTo(key, key.length)
    nullFilters.forall(!keyRow.isNullAt(_))
  }

  private def test(condition: Option[Expression]): (Array[Byte], Array[Byte]) => Boolean =
    condition match {
      case None => (_, _) => true
      case Some(expression) =>
        val predicate = Expressions.compiledPredicate(expression, spec.timeZone)
        (left, right) => predicate.eval(joined(left, right))
    }
}

object JoinFunctions {

  /** Packs some columns of a packed row. */
  def columns(schema: StructType, ordinals: Seq[Int]): Array[Byte] => Array[Byte] = {
    val row = new UnsafeRow(schema.size)
    val references = ordinals.map(i => BoundReference(i, schema(i).dataType, schema(i).nullable))
    val projection = UnsafeProjection.create(references)
    bytes => {
      row.pointTo(bytes, bytes.length)
      Packed(projection(row))
    }
  }
}

package rejoin.core.machine

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.run.{Expressions, JoinedBytes, Packed}

/** What a join asks about packed rows. One instance serves one task: it reuses its row views. */
final class JoinFunctions(spec: JoinSpec, residualExpression: Option[Expression]) {
  private val joined = new JoinedBytes(spec.left.schema.size, spec.right.schema.size)

  /** Whether the pair passes the residual predicate; true where there is none. */
  val residual: (Array[Byte], Array[Byte]) => Boolean = residualExpression match {
    case None => (_, _) => true
    case Some(condition) =>
      val predicate = Expressions.compiledPredicate(condition, spec.output.timeZone)
      (left, right) => predicate.eval(joined(left, right))
  }

  val leftUniqueKey: Array[Byte] => Array[Byte] = JoinFunctions.columns(spec.left.schema, spec.left.uniqueKey)
  val rightUniqueKey: Array[Byte] => Array[Byte] = JoinFunctions.columns(spec.right.schema, spec.right.uniqueKey)

  val canMatch: Array[Byte] => Boolean = JoinFunctions.canMatch(spec.filterNulls)
}

object JoinFunctions {

  /** The residual predicate, bound on the driver. */
  def bind(spec: JoinSpec): Option[Expression] =
    spec.residual.map(text => Expressions.bind(Seq(text), spec.joined, spec.output.timeZone).head)

  /** False where a column of the packed key is NULL and compared by `=`. */
  def canMatch(filterNulls: Seq[Boolean]): Array[Byte] => Boolean = {
    val compared = filterNulls.indices.filter(filterNulls).toArray
    val view = new UnsafeRow(filterNulls.size)
    key =>
      compared.isEmpty || {
        view.pointTo(key, key.length)
        compared.forall(!view.isNullAt(_))
      }
  }

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

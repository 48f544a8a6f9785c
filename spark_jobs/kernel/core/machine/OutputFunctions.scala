package rejoin.core.machine

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.run.{Expressions, JoinedBytes, Packed}
import org.apache.spark.sql.rejoin.sink.LateRows
import rejoin.core.row.{ArrivalOrder, Changes}

/** The expressions over an operator's result rows, bound on the driver. */
final case class OutputExpressions(where: Option[Expression], pairBy: Option[Seq[Expression]])

object OutputExpressions {
  def bind(spec: OperatorSpec): OutputExpressions = {
    val (left, right) = spec.emitted
    val joined = StructType((left ++ right).map(_.copy(nullable = true)))
    def bindAll(texts: Seq[String]): Seq[Expression] = Expressions.bind(texts, joined, spec.output.timeZone)
    OutputExpressions(spec.output.where.map(text => bindAll(Seq(text)).head), spec.output.pairBy.map(bindAll))
  }
}

/** What decides about the rows that an operator emits. One instance serves one task. */
final class OutputFunctions(spec: OperatorSpec, expressions: OutputExpressions) {
  private val timeZone = spec.output.timeZone
  private val joined = new JoinedBytes(spec.emitted._1.size, spec.emitted._2.size)

  /** Whether the row passes the WHERE clause; true where there is none. */
  val accepts: (Array[Byte], Array[Byte]) => Boolean = expressions.where match {
    case None => (_, _) => true
    case Some(condition) =>
      val predicate = Expressions.compiledPredicate(condition, timeZone)
      (left, right) => predicate.eval(joined(left, right))
  }

  /** The sink's key of a row; null where retractions are always emitted. */
  val pairBy: (Array[Byte], Array[Byte]) => Array[Byte] =
    expressions.pairBy.map { key =>
      val projection = Expressions.compiledProjection(key, timeZone)
      (left: Array[Byte], right: Array[Byte]) => Packed(projection(joined(left, right)))
    }.orNull

  /** What takes the late rows of a side; none where nobody asked for them. */
  def lateRows(side: Int): Option[LateRows] = {
    val (left, right) = spec.emitted
    spec.output.late.map(new LateRows(_, if (side == 0) left else right))
  }

  def changes(): Changes = new Changes(accepts, pairBy)

  def arrivalOrder(): ArrivalOrder = new ArrivalOrder(accepts, pairBy)
}

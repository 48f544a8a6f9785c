package org.apache.spark.sql.rejoin

import org.apache.spark.sql.catalyst.expressions.{Expression, Predicate, UnsafeRow}

/** An operator bound on the driver and sent to tasks, each of which makes its own machine. */
final class Operator private (spec: OperatorSpec, join: Option[JoinExpressions], filter: Option[Expression])
    extends Serializable {

  def machine(): Machine = spec match {
    case NormalizeSpec(schema, _, _, updateBefore) =>
      new Normalize(updateBefore, filter.fold((_: Array[Byte]) => true)(Operator.test(_, schema.size)))
    case RegularJoinSpec(spec) => new RegularJoin(spec, new JoinFunctions(spec, join.get))
    case TemporalJoinSpec(spec, rule) => new TemporalJoin(spec, rule, new JoinFunctions(spec, join.get))
  }
}

object Operator {
  def read(nodeJson: String): Operator = OperatorSpec.read(nodeJson) match {
    case spec @ NormalizeSpec(schema, _, filter, _) =>
      new Operator(spec, None, filter.map(text => Expressions.bind(Seq(text), schema).head))
    case spec @ RegularJoinSpec(join) => new Operator(spec, Some(JoinExpressions.bind(join)), None)
    case spec @ TemporalJoinSpec(join, _) => new Operator(spec, Some(JoinExpressions.bind(join)), None)
  }

  private def test(condition: Expression, fields: Int): Array[Byte] => Boolean = {
    val predicate = Predicate.create(condition)
    predicate.initialize(0)
    val row = new UnsafeRow(fields)
    bytes => {
      row.pointTo(bytes, bytes.length)
      predicate.eval(row)
    }
  }
}

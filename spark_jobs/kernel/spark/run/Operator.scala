package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.catalyst.expressions.Expression

import rejoin.core.machine.{Aggregate, AggregateSpec, CompactingMaterializer, Deduplicate, DeduplicateSpec,
  FirstOnWatermark, IntervalJoin, IntervalJoinSpec, JoinFunctions, KeyChanges, KeyChangesSpec, LatestJoin, Machine,
  MultiJoin, MultiJoinSpec, Normalize, NormalizeSpec, OperatorSpec, OutputExpressions, OutputFunctions,
  RegularJoin, RegularJoinSpec, SinkMaterializer, SinkMaterializerSpec, TemporalJoin, TemporalJoinSpec}

/** An operator bound on the driver and sent to tasks, each of which makes its own machine. */
final class Operator private (
    val spec: OperatorSpec,
    output: OutputExpressions,
    residual: Option[Expression],
    residuals: Seq[Option[Expression]])
    extends Serializable {

  def machine(): Machine = {
    val outputs = new OutputFunctions(spec, output)
    spec match {
      case s: NormalizeSpec => new Normalize(s, outputs)
      case s: KeyChangesSpec => new KeyChanges(s, outputs)
      case s: RegularJoinSpec => new RegularJoin(s, new JoinFunctions(s.join, residual), outputs)
      case s: IntervalJoinSpec => new IntervalJoin(s, new JoinFunctions(s.join, residual), outputs)
      case s: TemporalJoinSpec if s.isEventTime =>
        new TemporalJoin(s, new JoinFunctions(s.join, residual), outputs)
      case s: TemporalJoinSpec => new LatestJoin(s, new JoinFunctions(s.join, residual), outputs)
      case s: MultiJoinSpec => new MultiJoin(s, residuals, outputs)
      case s: DeduplicateSpec if s.onWatermark => new FirstOnWatermark(s, outputs)
      case s: DeduplicateSpec => new Deduplicate(s, outputs)
      case s: AggregateSpec => new Aggregate(s, outputs)
      case s: SinkMaterializerSpec if s.strategy == "deduplicate" => new SinkMaterializer(s, outputs)
      case s: SinkMaterializerSpec => new CompactingMaterializer(s, outputs)
    }
  }
}

object Operator {
  def read(nodeJson: String): Operator = {
    val spec = OperatorSpec.read(nodeJson)
    val residual = spec match {
      case s: RegularJoinSpec => JoinFunctions.bind(s.join)
      case s: IntervalJoinSpec => JoinFunctions.bind(s.join)
      case s: TemporalJoinSpec => JoinFunctions.bind(s.join)
      case _ => None
    }
    val residuals = spec match {
      case s: MultiJoinSpec => MultiJoin.bind(s)
      case _ => Nil
    }
    new Operator(spec, OutputExpressions.bind(spec), residual, residuals)
  }
}

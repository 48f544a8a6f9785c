package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.columns.{Expressions, JoinedBytes, Packed, PackedRows, StructCombination,
  TypedAggregate, TypedElements, TypedOrder}
import org.apache.spark.sql.rejoin.sink.LateRecords
import rejoin.core.machine.join.{IntervalChanges, IntervalJoin, JoinFunctions, LatestJoin, LookupJoin, MultiJoin,
  MultiJoinFunctions, RegularJoin, TemporalJoin}
import rejoin.core.machine.normalize.{KeyChanges, Normalize}
import rejoin.core.machine.{Aggregate, AggregateSpec, CompactingMaterializer, Deduplicate, DeduplicateSpec,
  FirstOnWatermark, IntervalJoinSpec, KeyChangesSpec, LookupJoinSpec, Machine, MultiJoinSpec, NormalizeSpec,
  OperatorSpec, OutputFunctions, Rank, RankSpec, RegularJoinSpec, SinkMaterializer, SinkMaterializerSpec,
  TemporalJoinSpec, Unnest, UnnestSpec}
import rejoin.core.results.Overflow
import rejoin.core.row.RowFunctions

/** An operator bound on the driver and sent to tasks, each of which makes its own machine.
  *
  * @param residuals
  *   as [[JoinColumns]] has them; those of a multi-way join are over one struct per side
  */
final class Operator private (
    val node: OperatorNode,
    where: Option[Expression],
    pairBy: Option[Seq[Expression]],
    shown: Option[Seq[Expression]],
    residuals: Seq[Option[Expression]])
    extends Serializable {
  def spec: OperatorSpec = node.spec

  /** @param overflow
    *   where rows wait that do not fit into the memory of the task
    */
  def machine(overflow: Overflow): Machine = {
    val out = outputs(overflow)
    spec match {
      case s: NormalizeSpec => new Normalize(s, rowsOf(0), out)
      case s: KeyChangesSpec => new KeyChanges(s, rowsOf(0), out)
      case s: RegularJoinSpec => new RegularJoin(s, joinFunctions, out)
      case s: IntervalJoinSpec if s.changes => new IntervalChanges(s, joinFunctions, out)
      case s: IntervalJoinSpec => new IntervalJoin(s, joinFunctions, out)
      case s: TemporalJoinSpec if s.isEventTime => new TemporalJoin(s, joinFunctions, out)
      case s: TemporalJoinSpec => new LatestJoin(s, joinFunctions, out)
      case s: LookupJoinSpec => new LookupJoin(s, joinFunctions, out)
      case s: MultiJoinSpec => new MultiJoin(s, multiJoinFunctions, out)
      case s: DeduplicateSpec if s.onWatermark => new FirstOnWatermark(s, out)
      case s: DeduplicateSpec => new Deduplicate(s, out)
      case s: RankSpec => new Rank(s, new TypedOrder(node.inputs(0).schema, node.order), out)
      case s: UnnestSpec =>
        val elements = new TypedElements(node.inputs(0).schema, node.elements.get)
        new Unnest(s, elements, condition(residuals.head), out)
      case s: AggregateSpec => new Aggregate(s, new TypedAggregate(s.calls, node.aggregate.get), out)
      case s: SinkMaterializerSpec if s.strategy == "deduplicate" => new SinkMaterializer(s, rowsOf(0), out)
      case s: SinkMaterializerSpec =>
        new CompactingMaterializer(s, rowsOf(0), new KeyViolation(node)(_), out)
    }
  }

  private def rowsOf(side: Int): RowFunctions = new PackedRows(node.inputs(side))

  private def joinFunctions: JoinFunctions =
    new JoinFunctions(condition(residuals.head), rowsOf(0), rowsOf(1), PackedRows.hasNoNulls(node.join.filterNulls))

  private def multiJoinFunctions: MultiJoinFunctions =
    new MultiJoinFunctions(
      node.inputs.indices.map(rowsOf),
      PackedRows.hasNoNulls(node.join.filterNulls),
      new StructCombination(node.inputs.map(_.schema), residuals, node.output.timeZone))

  private def outputs(overflow: Overflow): OutputFunctions = {
    val late = node.output.late.map(new LateRecords(_, lateSides))
    new OutputFunctions(condition(where), packed(pairBy), packed(shown), late, overflow)
  }

  /** The inputs whose late rows are dropped: of a temporal join the left one. */
  private def lateSides: Seq[StructType] = spec match {
    case _: IntervalJoinSpec => Seq(node.emitted._1, node.emitted._2)
    case _ => Seq(node.emitted._1)
  }

  /** Expressions over packed left and right rows, packed; null where there are none. */
  private def packed(bound: Option[Seq[Expression]]): (Array[Byte], Array[Byte]) => Array[Byte] =
    bound.map { exprs =>
      val joined = new JoinedBytes(node.emitted._1.size, node.emitted._2.size)
      val projection = Expressions.compiledProjection(exprs, node.output.timeZone)
      (left: Array[Byte], right: Array[Byte]) => Packed(projection(joined(left, right)))
    }.orNull

  /** A condition over packed left and right rows; true where there is none. */
  private def condition(bound: Option[Expression]): (Array[Byte], Array[Byte]) => Boolean = bound match {
    case None => (_, _) => true
    case Some(condition) =>
      val joined = new JoinedBytes(node.emitted._1.size, node.emitted._2.size)
      val predicate = Expressions.compiledPredicate(condition, node.output.timeZone)
      (left, right) => predicate.eval(joined(left, right))
  }
}

object Operator {
  def read(nodeJson: String): Operator = {
    val node = OperatorNode.read(nodeJson)
    def bindAll(texts: Seq[String], columns: StructType): Seq[Expression] =
      Expressions.bind(texts, columns, node.output.timeZone)
    val residuals = node.spec match {
      case _: MultiJoinSpec => multiResiduals(node)
      case _ =>
        val joined = StructType(node.emitted._1 ++ node.emitted._2)
        node.join.residuals.map(_.map(text => bindAll(Seq(text), joined).head))
    }
    new Operator(
      node,
      node.output.where.map(text => bindAll(Seq(text), node.joined).head),
      node.output.pairBy.map(bindAll(_, node.joined)),
      node.output.shown.map(bindAll(_, node.joined)),
      residuals)
  }

  private def multiResiduals(node: OperatorNode): Seq[Option[Expression]] = {
    val places = StructCombination.places(node.inputs.map(_.schema))
    node.join.residuals.zipWithIndex.map { case (residual, step) =>
      val width = node.inputs.take(step + 2).map(_.schema.size).sum
      val columns = StructType(node.emitted._1.take(width).map(_.copy(nullable = true)))
      residual.map { text =>
        Expressions.bind(Seq(text), columns, node.output.timeZone).head.transformUp { case column: BoundReference =>
          places(column.ordinal)
        }
      }
    }
  }
}

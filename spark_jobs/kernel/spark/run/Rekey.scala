package org.apache.spark.sql.rejoin.run

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{Expression, Generator}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.columns.{Expressions, JoinedBytes, Packed, RowProjection}
import org.apache.spark.sql.rejoin.ingest.EnvelopeRow
import rejoin.core.row.{Changelog, Envelope, KeyGroup, Mark, RowKind}

/** The planner's `rekey` node: an operator's changes as input of the next.
  *
  * @param left
  *   number of columns of the packed left rows; `right` likewise
  * @param isOrdered
  *   whether changes keep their order, rather than retractions of a batch coming first
  */
final class RekeySpec(
    val side: Byte,
    val groups: Int,
    val dropNullKeys: Seq[Int],
    val left: Int,
    val right: Int,
    val isOrdered: Boolean,
    key: Seq[Expression],
    row: Seq[Expression],
    rowtime: Option[Expression],
    timeZone: String)
    extends Serializable {
  val projectKey = new RowProjection(key, timeZone)
  val projectRow = new RowProjection(row, timeZone)
  val projectTime: Option[RowProjection] = rowtime.map(t => new RowProjection(Seq(t), timeZone))
}

object RekeySpec {
  def read(json: String): RekeySpec = {
    implicit val formats: Formats = DefaultFormats
    val node = parse(json)
    val (left, right) = OperatorNode.read(node \ "input").emitted
    val joined = OperatorNode.joined((left, right))
    val timeZone = (node \ "timeZone").extract[String]
    def bind(texts: Seq[String]): Seq[Expression] = Expressions.bind(texts, joined, timeZone)
    val key = bind((node \ "key").extract[Seq[String]])
    new RekeySpec(
      (node \ "side").extract[Int].toByte,
      (node \ "groups").extract[Int],
      (node \ "dropNullKeys").extract[Seq[Int]],
      left.size,
      right.size,
      (node \ "ordered").extract[Boolean],
      key,
      Expressions.bindAs(
        (node \ "row").children.map(c => (c \ "expr").extract[String]),
        joined,
        OperatorNode.schema(node \ "schema"),
        timeZone),
      OperatorNode.present(node \ "rowtime").map(time => bind(Seq(time.extract[String])).head),
      timeZone)
  }
}

/** Turns one task's changes into envelopes.
  *
  * Their `seq` is by the hash of the operator's own key, then by their order within it. Their place in
  * the task alone would differ from one run of a batch to the next, as the rows that it fetches do.
  */
final class Rekeyer(spec: RekeySpec) {
  private val joined = new JoinedBytes(spec.left, spec.right)
  private var seq = 0L

  def apply(change: Changelog): Iterator[Envelope] = {
    seq += 1
    if (RowKind.isMark(change.kind))
      Iterator.range(0, spec.groups).map(Mark.envelope(change, _, spec.side))
    else if (change.kind == RowKind.Reject) {
      val group = Math.floorMod(change.hash, spec.groups)
      Iterator.single(Envelope.reject(group, spec.side, change.hash, seq, change.left))
    } else if (change.kind == RowKind.News) Iterator.single(Envelope.news(spec.side, seq, change.left))
    else keyed(change)
  }

  private def keyed(change: Changelog): Iterator[Envelope] = {
    val row = joined(change.left, change.right)
    val key = spec.projectKey(row)
    if (spec.dropNullKeys.exists(key.isNullAt)) Iterator.empty
    else {
      val packed = Packed(key)
      val time = spec.projectTime.fold(Envelope.NoTime) { project =>
        val times = project(row)
        if (times.isNullAt(0)) Envelope.NoTime else Math.floorDiv(times.getLong(0), 1000L)
      }
      val group = KeyGroup.of(packed, spec.groups)
      val place = (change.hash & 0xffffffffL) << Rekeyer.PlaceBits | math.min(seq, Rekeyer.LastPlace)
      val order = if (spec.isOrdered || !RowKind.isAdd(change.kind)) place else place | Rekeyer.AfterRetractions
      val packedRow = Packed(spec.projectRow(row))
      Iterator.single(Envelope(group, spec.side, change.kind, time, 0, order, packed, packedRow, change.recordMs))
    }
  }
}

object Rekeyer {
  private final val PlaceBits = 30
  private final val LastPlace = (1L << PlaceBits) - 1
  private final val AfterRetractions = 1L << 62
}

/** [[Rekeyer]] as the only column of a select; children are the columns of a [[Changelog]].
  *
  * @param inSteps
  *   whether barriers come among them
  */
final case class RekeyRows(children: Seq[Expression], spec: RekeySpec, inSteps: Boolean)
    extends Generator
    with CodegenFallback {
  @transient private lazy val rekeyer = new Rekeyer(spec)
  @transient private lazy val steps = new RekeyedSteps(rekeyer, spec)

  override def elementSchema: StructType = EnvelopeRow.schema

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val change = Changelog(
      children(0).eval(input).asInstanceOf[Byte],
      children(1).eval(input).asInstanceOf[Int],
      children(2).eval(input).asInstanceOf[Array[Byte]],
      children(3).eval(input).asInstanceOf[Array[Byte]],
      children(4).eval(input).asInstanceOf[Long])
    if (inSteps) steps(change) else rekeyer(change).map(EnvelopeRow(_))
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): RekeyRows =
    copy(children = newChildren)
}

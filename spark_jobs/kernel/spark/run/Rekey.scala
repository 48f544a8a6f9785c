package org.apache.spark.sql.rejoin.run

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, Generator}
import org.apache.spark.sql.types.StructType

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
    if (change.kind == RowKind.Watermark || change.kind == RowKind.Loaded) marks(change)
    else if (change.kind == RowKind.Reject) {
      val group = Math.floorMod(change.hash, spec.groups)
      Iterator.single(Envelope(group, spec.side, change.kind, 0, change.hash, seq, Rekeyer.Nothing, change.left))
    } else if (change.kind == RowKind.News)
      Iterator.single(Envelope(0, spec.side, change.kind, 0, 0, seq, Rekeyer.Nothing, change.left))
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
      Iterator.single(Envelope(group, spec.side, change.kind, time, 0, order, packed, Packed(spec.projectRow(row))))
    }
  }

  /** A mark that one group of the operator passed on, for every group of the next. */
  private def marks(change: Changelog): Iterator[Envelope] = {
    val time = Mark.timeOf(change.left)
    (0 until spec.groups).iterator.map { group =>
      Envelope(group, spec.side, change.kind, time, change.hash, seq, Rekeyer.Nothing, Rekeyer.Nothing)
    }
  }
}

object Rekeyer {
  private final val PlaceBits = 30
  private final val LastPlace = (1L << PlaceBits) - 1
  private final val AfterRetractions = 1L << 62
  private val Nothing = new Array[Byte](0)
}

/** [[Rekeyer]] as the only column of a select; children are kind, hash, left and right. */
final case class RekeyRows(children: Seq[Expression], spec: RekeySpec) extends Generator with CodegenFallback {
  @transient private lazy val rekeyer = new Rekeyer(spec)

  override def elementSchema: StructType = RekeyRows.schema

  override def eval(input: InternalRow): IterableOnce[InternalRow] =
    rekeyer(
      Changelog(
        children(0).eval(input).asInstanceOf[Byte],
        children(1).eval(input).asInstanceOf[Int],
        children(2).eval(input).asInstanceOf[Array[Byte]],
        children(3).eval(input).asInstanceOf[Array[Byte]])).map { e =>
      new GenericInternalRow(Array[Any](e.group, e.side, e.kind, e.time, e.source, e.seq, e.key, e.row))
    }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): RekeyRows =
    copy(children = newChildren)
}

object RekeyRows {
  private val schema: StructType = Encoders.product[Envelope].schema
}

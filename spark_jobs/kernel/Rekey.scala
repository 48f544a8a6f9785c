package org.apache.spark.sql.rejoin

import java.nio.ByteBuffer

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, Generator, UnsafeRow}
import org.apache.spark.sql.types.StructType

/** The planner's `rekey` node: a normaliser's changes under the join key.
  *
  * @param fields
  *   number of columns of the normaliser's row
  */
final class RekeySpec(
    val side: Byte,
    val groups: Int,
    val dropNullKeys: Seq[Int],
    val fields: Int,
    val keySize: Int,
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
    val input = OperatorSpec.schema(node \ "input" \ "schema")
    val timeZone = OperatorSpec.present(node \ "timeZone").fold(Expressions.DefaultTimeZone)(_.extract[String])
    def bind(texts: Seq[String]): Seq[Expression] = Expressions.bind(texts, input, timeZone)
    val key = bind((node \ "key").extract[Seq[String]])
    new RekeySpec(
      (node \ "side").extract[Int].toByte,
      (node \ "groups").extract[Int],
      (node \ "dropNullKeys").extract[Seq[Int]],
      input.size,
      key.size,
      key,
      bind((node \ "row").children.map(c => (c \ "expr").extract[String])),
      OperatorSpec.present(node \ "rowtime").map(time => bind(Seq(time.extract[String])).head),
      timeZone)
  }
}

/** Turns one task's changes into envelopes; their order within the task becomes `seq`. */
final class Rekeyer(spec: RekeySpec) {
  private val row = new UnsafeRow(spec.fields)
  private var seq = 0L

  def apply(change: Changelog): Iterator[Envelope] = {
    seq += 1
    if (change.kind == RowKind.Watermark) marks(change)
    else if (change.kind == RowKind.Reject) {
      val group = Math.floorMod(change.hash, spec.groups)
      Iterator.single(Envelope(group, spec.side, change.kind, 0, 0, seq, Rekeyer.Nothing, change.left))
    } else keyed(change)
  }

  private def keyed(change: Changelog): Iterator[Envelope] = {
    row.pointTo(change.left, change.left.length)
    val key = spec.projectKey(row)
    if (spec.dropNullKeys.exists(key.isNullAt)) Iterator.empty
    else {
      val packed = Packed(key)
      val time = spec.projectTime.fold(Envelope.NoTime) { project =>
        val times = project(row)
        if (times.isNullAt(0)) Envelope.NoTime else Math.floorDiv(times.getLong(0), 1000L)
      }
      val group = KeyGroup.of(packed, spec.groups)
      Iterator.single(Envelope(group, spec.side, change.kind, time, 0, seq, packed, Packed(spec.projectRow(row))))
    }
  }

  /** A mark that one group of the normaliser passed on, for every group of the join. */
  private def marks(change: Changelog): Iterator[Envelope] = {
    val time = ByteBuffer.wrap(change.left).getLong
    (0 until spec.groups).iterator.map { group =>
      Envelope(group, spec.side, change.kind, time, change.hash, seq, Rekeyer.Nothing, Rekeyer.Nothing)
    }
  }
}

object Rekeyer {
  private val Nothing = new Array[Byte](0)

  /** A watermark mark as a normaliser passes it on: source id in place of the hash. */
  def mark(mark: Envelope): Array[Byte] = ByteBuffer.allocate(8).putLong(mark.time).array
}

/** [[Rekeyer]] as the only column of a select; children are kind, hash and left. */
final case class RekeyRows(children: Seq[Expression], spec: RekeySpec) extends Generator with CodegenFallback {
  @transient private lazy val rekeyer = new Rekeyer(spec)

  override def elementSchema: StructType = RekeyRows.schema

  override def eval(input: InternalRow): IterableOnce[InternalRow] =
    rekeyer(
      Changelog(
        children(0).eval(input).asInstanceOf[Byte],
        children(1).eval(input).asInstanceOf[Int],
        children(2).eval(input).asInstanceOf[Array[Byte]],
        null)).map { e =>
      new GenericInternalRow(Array[Any](e.group, e.side, e.kind, e.time, e.source, e.seq, e.key, e.row))
    }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): RekeyRows =
    copy(children = newChildren)
}

object RekeyRows {
  private val schema: StructType = Encoders.product[Envelope].schema
}

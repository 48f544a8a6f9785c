package org.apache.spark.sql.rejoin

import java.nio.charset.StandardCharsets.UTF_8
import java.util

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.types.StructType

/** An upsert whose event leaves values out, on its way to the machine that holds the key's row before it.
  *
  * PostgreSQL does not log a large value (TOAST) that an UPDATE leaves as it was.
  *
  * @param row
  *   packed, NULL where a value is missing
  * @param missing
  *   ordinals of the packed row
  */
final class PartialRow(val row: Array[Byte], val missing: util.BitSet, val unhealed: Unhealed)

object PartialRow {

  /** The bytes of an envelope of kind [[RowKind.Partial]] or [[RowKind.MovedPartial]]. */
  def pack(partial: PartialRow): Array[Byte] = {
    val out = new CellWriter().blob(partial.row).blob(partial.missing.toByteArray)
    partial.unhealed.write(out)
    out.result()
  }

  def unpack(bytes: Array[Byte]): PartialRow = {
    val in = new CellReader(bytes)
    val row = in.blob()
    val missing = util.BitSet.valueOf(in.blob())
    new PartialRow(row, missing, Unhealed.read(in))
  }
}

/** Which values of a table's rows may be missing, and where they stand in a packed row.
  *
  * What is evaluated over a row before it is packed cannot be made up for later.
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

  /** Ordinals of the packed row for those of the table's columns. */
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

/** The record behind a partial row, for the case that nobody knows its missing values.
  *
  * @param policy
  *   the table's, see [[OnError]]
  * @param content
  *   the packed [[DeadLetter]]; under `fail` the message as text, under `skip` nothing
  */
final class Unhealed(val table: String, val policy: String, val content: Array[Byte]) {

  /** Does what the policy says. */
  def settle(out: Output): Unit =
    if (policy == OnError.Fail) throw new RejectedRecordException(new String(content, UTF_8))
    else if (policy == OnError.DeadLetter) out.emit(RowKind.Reject, KeyGroup.hash(content), content, null)

  def write(out: CellWriter): Unit = out.blob(table.getBytes(UTF_8)).blob(policy.getBytes(UTF_8)).blob(content)
}

object Unhealed {

  /** Reads what [[Unhealed.write]] wrote. */
  def read(in: CellReader): Unhealed =
    new Unhealed(new String(in.blob(), UTF_8), new String(in.blob(), UTF_8), in.blob())
}

/** Fills what a partial row lacks from the row of its key before it. */
final class Healer(schema: StructType) {
  private val pack = new RowPacker(schema)
  private val present = new UnsafeRow(schema.size)
  private val past = new UnsafeRow(schema.size)

  /** The complete row; `before` is complete itself, or else what it lacks stays NULL. */
  def heal(partial: PartialRow, before: Array[Byte]): Array[Byte] = heal(partial.row, partial.missing, before)

  def heal(row: Array[Byte], missing: util.BitSet, before: Array[Byte]): Array[Byte] = {
    present.pointTo(row, row.length)
    past.pointTo(before, before.length)
    val values = schema.fields.indices.map { i =>
      val from = if (missing.get(i)) past else present
      if (from.isNullAt(i)) null else from.get(i, schema(i).dataType)
    }
    pack(new GenericInternalRow(values.toArray[Any]))
  }
}

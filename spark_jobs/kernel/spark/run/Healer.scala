package org.apache.spark.sql.rejoin.run

import java.util

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.types.StructType

import rejoin.core.row.PartialRow

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

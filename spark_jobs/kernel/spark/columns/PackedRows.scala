package org.apache.spark.sql.rejoin.columns

import java.util

import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

import rejoin.core.row.RowFunctions

/** The columns of one input's packed rows. Without a unique key the whole row tells rows apart. */
final class PackedRows(columns: InputColumns) extends RowFunctions {
  private val schema = columns.schema
  private val present = new UnsafeRow(schema.size)
  private val past = new UnsafeRow(schema.size)
  private lazy val pack = new RowPacker(schema)
  private lazy val projectKey = UnsafeProjection.create(
    columns.uniqueKey.map(i => BoundReference(i, schema(i).dataType, schema(i).nullable)))

  def uniqueKey(row: Array[Byte]): Array[Byte] =
    if (columns.uniqueKey.isEmpty) row
    else {
      present.pointTo(row, row.length)
      Packed(projectKey(present))
    }

  def withKeyOnly(key: Array[Byte]): Array[Byte] = {
    val view = new UnsafeRow(columns.uniqueKey.size)
    view.pointTo(key, key.length)
    val values = schema.fields.indices.map { i =>
      val place = columns.uniqueKey.indexOf(i)
      if (place < 0 || view.isNullAt(place)) null else view.get(place, schema(i).dataType)
    }
    pack(new GenericInternalRow(values.toArray[Any]))
  }

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

object PackedRows {

  /** False for a packed key that has a NULL in one of the columns where it matches nothing. */
  def hasNoNulls(filterNulls: Seq[Boolean]): Array[Byte] => Boolean = {
    val compared = filterNulls.indices.filter(filterNulls).toArray
    val view = new UnsafeRow(filterNulls.size)
    key =>
      compared.isEmpty || {
        view.pointTo(key, key.length)
        var at = 0
        while (at < compared.length && !view.isNullAt(compared(at))) at += 1
        at == compared.length
      }
  }
}

/** @param uniqueKey
  *   ordinals of what tells rows apart
  */
final case class InputColumns(schema: StructType, uniqueKey: Seq[Int])

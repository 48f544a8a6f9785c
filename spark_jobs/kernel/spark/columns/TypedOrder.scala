package org.apache.spark.sql.rejoin.columns

import java.io.ByteArrayOutputStream

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.types.{DoubleType, FloatType, StringType, StructType}

import rejoin.core.machine.RankColumns

/** @param ordinal
  *   of the column in the row
  */
final case class SortColumn(ordinal: Int, descends: Boolean, nullsFirst: Boolean)

/** The order of packed rows; part of the state format.
  *
  * A column is one byte that says where NULL stands, then the value; the value's bytes are inverted where the
  * column descends. A text ends with two zero bytes, and a zero byte within it is followed by 255.
  */
final class TypedOrder(schema: StructType, columns: Seq[SortColumn]) extends RankColumns {
  import TypedOrder._

  private val view = new UnsafeRow(schema.size)
  private val types = columns.map(column => schema(column.ordinal).dataType).toArray
  private val values = types.map(ColumnBytes.of(_))
  private val places = columns.toArray
  private val buffer = new ByteArrayOutputStream
  private val writer = new UnsafeRowWriter(1)

  def order(row: Array[Byte]): Array[Byte] = {
    view.pointTo(row, row.length)
    buffer.reset()
    var i = 0
    while (i < places.length) {
      val column = places(i)
      if (view.isNullAt(column.ordinal)) buffer.write(if (column.nullsFirst) NullFirst else NullLast)
      else {
        buffer.write(Present)
        write(bytes(i), types(i) == StringType, if (column.descends) 0xff else 0)
      }
      i += 1
    }
    buffer.toByteArray
  }

  def number(place: Long): Array[Byte] = {
    writer.reset()
    writer.write(0, place)
    Packed(writer.getRow)
  }

  /** Both zeros are one value. */
  private def bytes(i: Int): Array[Byte] = view.get(places(i).ordinal, types(i)) match {
    case zero: Double if types(i) == DoubleType && zero == 0.0 => values(i).encode(0.0)
    case zero: Float if types(i) == FloatType && zero == 0.0f => values(i).encode(0.0f)
    case value => values(i).encode(value)
  }

  private def write(value: Array[Byte], ends: Boolean, flip: Int): Unit = {
    var i = 0
    while (i < value.length) {
      buffer.write(value(i) ^ flip)
      if (ends && value(i) == 0) buffer.write(Escape ^ flip)
      i += 1
    }
    if (ends) {
      buffer.write(flip)
      buffer.write(flip)
    }
  }
}

private object TypedOrder {
  private val NullFirst = 0
  private val Present = 1
  private val NullLast = 2
  private val Escape = 0xff
}

package org.apache.spark.sql.rejoin.columns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

/** The collection of an UNNEST.
  *
  * @param ordinal
  *   of the collection in the row
  * @param spreads
  *   whether the fields of an element, which is a row, are columns; an element that is NULL is then left out
  * @param ordinality
  *   whether the last column is the place of the element, from 1
  */
final case class ElementColumns(elements: StructType, ordinal: Int, spreads: Boolean, ordinality: Boolean)

/** The elements of the collection in a packed row, packed. One instance serves one task. */
final class TypedElements(schema: StructType, columns: ElementColumns) extends (Array[Byte] => Iterator[Array[Byte]]) {
  private val view = new UnsafeRow(schema.size)
  private val pack = UnsafeProjection.create(columns.elements)
  private val values: () => Iterator[Seq[Any]] = schema(columns.ordinal).dataType match {
    case ArrayType(element: StructType, _) if columns.spreads => () => rows(view.getArray(columns.ordinal), element)
    case ArrayType(element, _) => () => items(view.getArray(columns.ordinal), element).map(Seq(_))
    case MapType(key, value, _) => () => entries(view.getMap(columns.ordinal), key, value)
    case other => throw new IllegalArgumentException(s"UNNEST of ${other.sql}")
  }

  def apply(row: Array[Byte]): Iterator[Array[Byte]] = {
    view.pointTo(row, row.length)
    if (view.isNullAt(columns.ordinal)) Iterator.empty
    else
      values().zipWithIndex.collect { case (found, i) if found != null => Packed(pack(element(found, i + 1))) }
  }

  private def element(values: Seq[Any], place: Int): InternalRow =
    new GenericInternalRow((if (columns.ordinality) values :+ place else values).toArray[Any])

  private def rows(array: ArrayData, element: StructType): Iterator[Seq[Any]] =
    items(array, element).map {
      case row: InternalRow => row.toSeq(element)
      case _ => null
    }

  private def entries(map: MapData, key: DataType, value: DataType): Iterator[Seq[Any]] =
    items(map.keyArray(), key).zip(items(map.valueArray(), value)).map { case (k, v) => Seq(k, v) }

  private def items(array: ArrayData, element: DataType): Iterator[Any] =
    Iterator.range(0, array.numElements()).map(i => if (array.isNullAt(i)) null else array.get(i, element))
}

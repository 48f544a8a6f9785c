package org.apache.spark.sql.rejoin.format.protobuf

import scala.collection.mutable

import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecificInternalRow}
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types._

/** Reads a field of a message into a column. One instance per task and place in the columns. */
private[protobuf] abstract class FieldReader {

  /** What the column has of a message without the field. */
  def clear(row: InternalRow, i: Int): Unit

  /** Reads one occurrence; false if its wire type is another one, as of an unknown field. */
  def read(in: ProtobufInput, wire: Int, row: InternalRow, i: Int): Boolean

  /** Called once the message has ended. */
  def finish(row: InternalRow, i: Int): Unit = ()
}

/** The fields of a message that columns read.
  *
  * @param fields
  *   the numbers of the fields, their readers and the ordinals of their columns
  */
private[protobuf] final class MessageReader(fields: Seq[(Int, FieldReader, Int)]) {
  private val readers = fields.map(_._2).toArray
  private val ordinals = fields.map(_._3).toArray
  private val places = new Array[Int](fields.map(_._1).filter(_ < MessageReader.MostPlaces).maxOption.getOrElse(0) + 1)
  private val beyond = mutable.HashMap.empty[Int, Int]
  java.util.Arrays.fill(places, -1)
  for (((number, _, _), i) <- fields.zipWithIndex)
    if (number < MessageReader.MostPlaces) places(number) = i else beyond(number) = i

  /** Reads up to the end of `in`; a message that occurs again goes on with what it has. */
  def read(in: ProtobufInput, row: InternalRow, isAgain: Boolean): Unit = {
    if (!isAgain) for (i <- readers.indices) readers(i).clear(row, ordinals(i))
    while (in.at < in.end) {
      val tag = in.tag()
      val i = placeOf(tag >>> 3)
      if (i < 0 || !readers(i).read(in, tag & 7, row, ordinals(i))) in.skip(tag)
    }
    for (i <- readers.indices) readers(i).finish(row, ordinals(i))
  }

  private def placeOf(number: Int): Int =
    if (number < places.length) places(number) else beyond.getOrElse(number, -1)
}

private[protobuf] object MessageReader {
  private final val MostPlaces = 4096
  private implicit val formats: Formats = DefaultFormats

  /** A reader of the planner's JSON for a field.
    *
    * @param readsDefaults
    *   `read-default-values`: a field that is not there has its default, though the message could tell
    */
  def field(node: JValue, dataType: DataType, readsDefaults: Boolean): (Int, FieldReader) = {
    val number = (node \ "number").extract[Int]
    val reader = ((node \ "kind").extract[String], dataType) match {
      case ("array", ArrayType(element, _)) =>
        new ArrayReader(single(node \ "element", element, hasDefault = false, readsDefaults), element, readsDefaults)
      case ("map", MapType(key, value, _)) =>
        val entry = Seq(field(node \ "key", key, readsDefaults), field(node \ "value", value, readsDefaults))
        new MapReader(entry, Seq(key, value), readsDefaults)
      case _ => single(node, dataType, readsDefaults || !(node \ "presence").extract[Boolean], readsDefaults)
    }
    number -> reader
  }

  private def single(node: JValue, dataType: DataType, hasDefault: Boolean, readsDefaults: Boolean): FieldReader =
    dataType match {
      case struct: StructType =>
        val byName = (node \ "fields").children.map(f => (f \ "name").extract[String] -> f).toMap
        val fields = struct.fields.zipWithIndex.map { case (column, i) =>
          val (number, reader) = field(byName(column.name), column.dataType, readsDefaults)
          (number, reader, i)
        }
        new NestedReader(new MessageReader(fields.toSeq), struct.size)
      case _ => ScalarReader(node, dataType, hasDefault)
    }
}

/** A message within a message: a ROW, NULL where it is not there. */
private final class NestedReader(message: MessageReader, size: Int) extends FieldReader {
  override def clear(row: InternalRow, i: Int): Unit = row.setNullAt(i)

  override def read(in: ProtobufInput, wire: Int, row: InternalRow, i: Int): Boolean =
    wire == ProtobufInput.Bytes && {
      val isAgain = !row.isNullAt(i)
      val nested = if (isAgain) row.getStruct(i, size) else new GenericInternalRow(size)
      in.part(message.read(in, nested, isAgain))
      row.update(i, nested)
      true
    }
}

/** A repeated field; numbers may stand packed in one occurrence. NULL, or empty with `read-default-values`, where
  * there is none.
  */
private final class ArrayReader(element: FieldReader, dataType: DataType, readsDefaults: Boolean) extends FieldReader {
  private val slot = new SpecificInternalRow(Seq(dataType))
  private val found = mutable.ArrayBuffer.empty[Any]

  override def clear(row: InternalRow, i: Int): Unit = found.clear()

  override def read(in: ProtobufInput, wire: Int, row: InternalRow, i: Int): Boolean =
    if (one(in, wire)) true
    else
      element match {
        case scalar: ScalarReader if wire == ProtobufInput.Bytes && scalar.wire != ProtobufInput.Bytes =>
          in.part(while (in.at < in.end) one(in, scalar.wire))
          true
        case _ => false
      }

  private def one(in: ProtobufInput, wire: Int): Boolean = {
    slot.setNullAt(0)
    val isRead = element.read(in, wire, slot, 0)
    if (isRead) found += slot.get(0, dataType)
    isRead
  }

  override def finish(row: InternalRow, i: Int): Unit =
    if (found.isEmpty && !readsDefaults) row.setNullAt(i) else row.update(i, new GenericArrayData(found.toArray[Any]))
}

/** Entries, of which the last one of a key counts; a key or value that is left out is its default. */
private final class MapReader(entry: Seq[(Int, FieldReader)], types: Seq[DataType], readsDefaults: Boolean)
    extends FieldReader {
  private val message = new MessageReader(entry.zipWithIndex.map { case ((number, reader), i) => (number, reader, i) })
  private val found = mutable.LinkedHashMap.empty[Any, Any]

  override def clear(row: InternalRow, i: Int): Unit = found.clear()

  override def read(in: ProtobufInput, wire: Int, row: InternalRow, i: Int): Boolean =
    wire == ProtobufInput.Bytes && {
      val one = new GenericInternalRow(2)
      in.part(message.read(in, one, isAgain = false))
      found(one.get(0, types.head)) = one.get(1, types(1))
      true
    }

  override def finish(row: InternalRow, i: Int): Unit =
    if (found.isEmpty && !readsDefaults) row.setNullAt(i)
    else row.update(i, ArrayBasedMapData(found.keys.toArray[Any], found.values.toArray[Any]))
}

package org.apache.spark.sql.rejoin.format.protobuf

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import org.apache.spark.sql.rejoin.format.{ByteSink, FormatSpec, Framing, RowEncoder}

/** Encodes rows as messages, byte for byte as Google's libraries do: fields in the order of their numbers, numbers
  * of a repeated field packed if it is declared so, and no field that has its default if a message does not tell
  * whether it has the field.
  *
  * With `proto-registry` a schema id and the place of the message in its file come first, as Confluent's serializer
  * writes them.
  *
  * NULL is a field that is not there. Elements of a repeated field and values of a map cannot be left out: NULL is
  * the default of their type there, as in Flink.
  */
private[format] final class ProtobufEncoder(format: FormatSpec, ordinals: Seq[Int], struct: StructType)
    extends RowEncoder {
  private val layout = parse(format.options("layout"))
  private val prefix =
    if (format.name == "proto-registry") Framing.prefix(format) ++ ProtobufEncoder.place(layout) else Array.empty[Byte]
  private val message = {
    val nullText = format.options.getOrElse("write-null-string-literal", "")
    new MessageWriter(layout \ "columns", struct, ordinals, nullText)
  }

  override def encode(row: SpecializedGetters, out: ByteSink): Unit = {
    out.write(prefix)
    message.write(row, out)
  }
}

private object ProtobufEncoder {
  import MessageWriter.formats

  /** Where the message stands in its file, counted as Confluent's serializer for Java does: without the messages that
    * protoc makes of maps. The first message is a single zero.
    */
  def place(layout: JValue): Array[Byte] = {
    val numbers = (layout \ "places").extract[Seq[Seq[Long]]].last
    val out = new ByteSink
    if (numbers == Seq(0L)) out.byte(0)
    else {
      out.signed(numbers.size.toLong)
      numbers.foreach(out.signed)
    }
    out.result()
  }
}

/** A value that its field cannot hold: the query is wrong, not a single record. */
final class ProtobufValueException(message: String) extends RuntimeException(message) {
  def in(field: String): ProtobufValueException = new ProtobufValueException(s"$field: $getMessage")
}

/** Writes the columns at `ordinals` as the fields of a message; `nodes` is the planner's JSON for them. */
private[protobuf] final class MessageWriter(nodes: JValue, struct: StructType, columns: Seq[Int], nullText: String) {
  import MessageWriter._

  private val (names, ordinals, writers) = {
    val byName = nodes.children.map(node => (node \ "name").extract[String] -> node).toMap
    struct.fields.toSeq
      .zip(columns)
      .sortBy { case (field, _) => number(byName(field.name)) }
      .map { case (field, ordinal) =>
        (field.name, ordinal, FieldWriter(byName(field.name), field.dataType, nullText))
      }
      .toArray
      .unzip3
  }

  def write(row: SpecializedGetters, out: ByteSink): Unit = {
    var i = 0
    try
      while (i < writers.length) {
        if (!row.isNullAt(ordinals(i))) writers(i).write(row, ordinals(i), out)
        i += 1
      }
    catch { case unfit: ProtobufValueException => throw unfit.in(names(i)) }
  }
}

private object MessageWriter {
  implicit val formats: Formats = DefaultFormats

  def number(node: JValue): Int = (node \ "number").extract[Int]
}

/** Writes a column that is not NULL, with the tag of its field. One instance per task and place in the columns. */
private abstract class FieldWriter {
  def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit
}

private object FieldWriter {
  import MessageWriter.{formats, number}

  def apply(node: JValue, dataType: DataType, nullText: String): FieldWriter =
    ((node \ "kind").extract[String], dataType) match {
      case ("array", ArrayType(element, _)) =>
        val value = FieldValue(node \ "element", element, nullText)
        if ((node \ "packed").extract[Boolean]) new PackedWriter(number(node), value)
        else new RepeatedWriter(number(node), value)
      case ("map", MapType(key, value, _)) =>
        val entry = Seq("key" -> key, "value" -> value).map { case (name, part) =>
          FieldValue(node \ name, part, nullText)
        }
        new MapWriter(number(node), entry.head, entry(1))
      case _ =>
        val value = FieldValue(node, dataType, nullText)
        new SingleWriter(number(node), value, leavesOutDefaults = !(node \ "presence").extract[Boolean])
    }

  def tag(number: Int, wire: Int): Long = number.toLong << 3 | wire
}

private final class SingleWriter(number: Int, value: FieldValue, leavesOutDefaults: Boolean) extends FieldWriter {
  private val tag = FieldWriter.tag(number, value.wire)

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit =
    if (!leavesOutDefaults || !value.isDefault(row, i)) value.write(row, i, out.varLong(tag))
}

/** A tag in front of each element. */
private final class RepeatedWriter(number: Int, element: FieldValue) extends FieldWriter {
  private val tag = FieldWriter.tag(number, element.wire)

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = {
    val items = row.getArray(i)
    for (at <- 0 until items.numElements()) element.writeOrDefault(items, at, out.varLong(tag))
  }
}

/** One tag and the length of all elements in front of them; nothing for an empty array. */
private final class PackedWriter(number: Int, element: FieldValue) extends FieldWriter {
  private val tag = FieldWriter.tag(number, ProtobufInput.Bytes)
  private val buffer = new ByteSink

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = {
    val items = row.getArray(i)
    if (items.numElements() > 0) {
      buffer.reset()
      for (at <- 0 until items.numElements()) element.writeOrDefault(items, at, buffer)
      out.varLong(tag).withLength(buffer)
    }
  }
}

/** A message of key and value for each entry; both always stand in it. */
private final class MapWriter(number: Int, key: FieldValue, value: FieldValue) extends FieldWriter {
  private val tag = FieldWriter.tag(number, ProtobufInput.Bytes)
  private val keyTag = FieldWriter.tag(1, key.wire)
  private val valueTag = FieldWriter.tag(2, value.wire)
  private val buffer = new ByteSink

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = {
    val map = row.getMap(i)
    for (at <- 0 until map.numElements()) {
      key.writeOrDefault(map.keyArray(), at, buffer.reset().varLong(keyTag))
      value.writeOrDefault(map.valueArray(), at, buffer.varLong(valueTag))
      out.varLong(tag).withLength(buffer)
    }
  }
}

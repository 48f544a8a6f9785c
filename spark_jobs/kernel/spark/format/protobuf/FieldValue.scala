package org.apache.spark.sql.rejoin.format.protobuf

import java.math.BigInteger
import java.util

import org.json4s.{DefaultFormats, Formats, JObject, JValue}

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.ByteSink

/** Writes one value of a field, without its tag.
  *
  * @param wire
  *   the wire type that stands in the tag
  */
private[protobuf] abstract class FieldValue(val wire: Int) {
  def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit
  def isDefault(row: SpecializedGetters, i: Int): Boolean
  def writeDefault(out: ByteSink): Unit

  final def writeOrDefault(row: SpecializedGetters, i: Int, out: ByteSink): Unit =
    if (row.isNullAt(i)) writeDefault(out) else write(row, i, out)
}

private[protobuf] object FieldValue {
  import ProtobufInput._
  private implicit val formats: Formats = DefaultFormats

  /** A writer of the planner's JSON for a field, or for an element of it. */
  def apply(node: JValue, dataType: DataType, nullText: String): FieldValue =
    ((node \ "kind").extract[String], dataType) match {
      case ("message", struct: StructType) => new NestedValue(node \ "fields", struct, nullText)
      case ("timestamp", _) => new TimestampValue
      case ("enum", _) => new EnumValue((node \ "values").extract[JObject], dataType)
      case ("string", _) => new TextValue(UTF8String.fromString(nullText))
      case ("bytes", _) => new BytesValue
      case ("bool", _) => new BoolValue
      case ("float", _) => new FloatValue
      case ("double", _) => new DoubleValue
      case (kind, _) => whole(kind, dataType)
    }

  private def whole(kind: String, dataType: DataType): FieldValue = {
    val isUnsigned = kind.startsWith("u") || kind.startsWith("f")
    val numbers = new WholeNumbers(kind, dataType, if (kind.endsWith("32")) 32 else 64, isUnsigned)
    kind match {
      case "int32" | "int64" | "uint32" | "uint64" => new WholeValue(Varint, numbers, _.varLong(_))
      case "sint32" | "sint64" => new WholeValue(Varint, numbers, _.signed(_))
      case "fixed32" | "sfixed32" => new WholeValue(Fixed32, numbers, (out, n) => out.int32LittleEndian(n.toInt))
      case "fixed64" | "sfixed64" => new WholeValue(Fixed64, numbers, _.int64LittleEndian(_))
      case other => throw new IllegalArgumentException(s"fields of protobuf have no kind '$other'")
    }
  }

  def unfit(value: Any, kind: String): Nothing =
    throw new ProtobufValueException(s"$value does not fit a field of type $kind")
}

private final class NestedValue(nodes: JValue, struct: StructType, nullText: String)
    extends FieldValue(ProtobufInput.Bytes) {
  private val message = new MessageWriter(nodes, struct, struct.indices, nullText)
  private val buffer = new ByteSink

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = {
    message.write(row.getStruct(i, struct.size), buffer.reset())
    out.withLength(buffer)
  }

  /** Never: that a message is there says something, even if it is empty. */
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = false
  override def writeDefault(out: ByteSink): Unit = out.byte(0)
}

/** `google.protobuf.Timestamp`: seconds in field 1, nanoseconds in field 2; no field for zero. */
private final class TimestampValue extends FieldValue(ProtobufInput.Bytes) {
  private val buffer = new ByteSink

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = {
    val micros = row.getLong(i)
    val seconds = Math.floorDiv(micros, 1000000L)
    if (seconds < TimestampValue.LeastSeconds || seconds > ScalarReader.MostSeconds)
      FieldValue.unfit(s"a time of $seconds seconds", "google.protobuf.Timestamp")
    val nanos = Math.floorMod(micros, 1000000L) * 1000
    buffer.reset()
    if (seconds != 0) buffer.byte(1 << 3).varLong(seconds)
    if (nanos != 0) buffer.byte(2 << 3).varLong(nanos)
    out.withLength(buffer)
  }

  override def isDefault(row: SpecializedGetters, i: Int): Boolean = false
  override def writeDefault(out: ByteSink): Unit = out.byte(0)
}

private object TimestampValue {
  final val LeastSeconds = -62135596800L // year 1
}

private final class TextValue(nullText: UTF8String) extends FieldValue(ProtobufInput.Bytes) {
  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = text(row.getUTF8String(i), out)
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = row.getUTF8String(i).numBytes == 0
  override def writeDefault(out: ByteSink): Unit = text(nullText, out)
  private def text(value: UTF8String, out: ByteSink): Unit = out.varLong(value.numBytes.toLong).write(value)
}

private final class BytesValue extends FieldValue(ProtobufInput.Bytes) {
  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = {
    val bytes = row.getBinary(i)
    out.varLong(bytes.length.toLong).write(bytes)
  }
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = row.getBinary(i).isEmpty
  override def writeDefault(out: ByteSink): Unit = out.byte(0)
}

private final class BoolValue extends FieldValue(ProtobufInput.Varint) {
  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = out.byte(if (row.getBoolean(i)) 1 else 0)
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = !row.getBoolean(i)
  override def writeDefault(out: ByteSink): Unit = out.byte(0)
}

/** The default of a float is 0.0 alone: -0.0 is written. */
private final class FloatValue extends FieldValue(ProtobufInput.Fixed32) {
  private def bits(row: SpecializedGetters, i: Int) = java.lang.Float.floatToIntBits(row.getFloat(i))
  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = out.int32LittleEndian(bits(row, i))
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = bits(row, i) == 0
  override def writeDefault(out: ByteSink): Unit = out.int32LittleEndian(0)
}

private final class DoubleValue extends FieldValue(ProtobufInput.Fixed64) {
  private def bits(row: SpecializedGetters, i: Int) = java.lang.Double.doubleToLongBits(row.getDouble(i))
  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = out.int64LittleEndian(bits(row, i))
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = bits(row, i) == 0
  override def writeDefault(out: ByteSink): Unit = out.int64LittleEndian(0)
}

private final class WholeValue(wire: Int, numbers: WholeNumbers, put: (ByteSink, Long) => Unit)
    extends FieldValue(wire) {
  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = put(out, numbers(row, i))
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = numbers(row, i) == 0
  override def writeDefault(out: ByteSink): Unit = put(out, 0)
}

/** A value by its name; also by its number, as one that has no name is read. NULL is the first value. */
private final class EnumValue(values: JObject, dataType: DataType) extends FieldValue(ProtobufInput.Varint) {
  private val numbers = new WholeNumbers("enum", dataType, 32, isUnsigned = false)
  private val first = values.obj.headOption.fold(0L)(_._1.toLong)
  private val byName = new util.HashMap[UTF8String, java.lang.Long]
  for ((number, name) <- values.obj) byName.put(UTF8String.fromString(name.values.toString), number.toLong)

  override def write(row: SpecializedGetters, i: Int, out: ByteSink): Unit = out.varLong(number(row, i))
  override def isDefault(row: SpecializedGetters, i: Int): Boolean = number(row, i) == 0
  override def writeDefault(out: ByteSink): Unit = out.varLong(first)

  private def number(row: SpecializedGetters, i: Int): Long =
    if (dataType != StringType) numbers(row, i)
    else {
      val name = row.getUTF8String(i)
      val known = byName.get(name)
      if (known != null) known
      else name.toString.toIntOption.fold(FieldValue.unfit(s"'$name'", "enum"))(_.toLong)
    }
}

/** Reads a column as a whole number of 32 or 64 bits; those of unsigned fields have the bits of a Long. */
private final class WholeNumbers(kind: String, dataType: DataType, bits: Int, isUnsigned: Boolean) {
  private val least = if (isUnsigned) BigInteger.ZERO else BigInteger.ONE.shiftLeft(bits - 1).negate
  private val most = BigInteger.ONE.shiftLeft(if (isUnsigned) bits else bits - 1).subtract(BigInteger.ONE)
  private val leastLong = least.longValue
  private val mostLong = most.min(BigInteger.valueOf(Long.MaxValue)).longValue

  def apply(row: SpecializedGetters, i: Int): Long = dataType match {
    case IntegerType => within(row.getInt(i).toLong)
    case LongType => within(row.getLong(i))
    case ShortType => within(row.getShort(i).toLong)
    case ByteType => within(row.getByte(i).toLong)
    case decimal: DecimalType => exact(row.getDecimal(i, decimal.precision, decimal.scale))
    case other => throw new IllegalArgumentException(s"${other.sql} is no whole number")
  }

  private def within(value: Long): Long =
    if (value < leastLong || value > mostLong) FieldValue.unfit(value, kind) else value

  private def exact(value: Decimal): Long = {
    val stripped = value.toJavaBigDecimal.stripTrailingZeros
    if (stripped.scale > 0) FieldValue.unfit(value, kind)
    val whole = stripped.toBigInteger
    if (whole.compareTo(least) < 0 || whole.compareTo(most) > 0) FieldValue.unfit(value, kind)
    whole.longValue
  }
}

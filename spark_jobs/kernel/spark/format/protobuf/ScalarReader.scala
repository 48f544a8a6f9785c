package org.apache.spark.sql.rejoin.format.protobuf

import java.nio.charset.StandardCharsets.UTF_8
import java.util

import org.json4s.{DefaultFormats, Formats, JNothing, JNull, JValue}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Reads a field of one value.
  *
  * @param absent
  *   the column of a message without the field; null is NULL
  */
private[protobuf] final class ScalarReader(
    val wire: Int,
    absent: Any,
    set: (ProtobufInput, InternalRow, Int) => Unit)
    extends FieldReader {
  override def clear(row: InternalRow, i: Int): Unit = if (absent == null) row.setNullAt(i) else row.update(i, absent)

  override def read(in: ProtobufInput, wire: Int, row: InternalRow, i: Int): Boolean =
    wire == this.wire && {
      set(in, row, i)
      true
    }
}

private[protobuf] object ScalarReader {
  import ProtobufInput._
  private implicit val formats: Formats = DefaultFormats

  def apply(node: JValue, dataType: DataType, hasDefault: Boolean): ScalarReader = {
    val kind = (node \ "kind").extract[String]
    val declared = node \ "default" match {
      case JNull | JNothing => None
      case text => Some(text.extract[String])
    }
    def scalar(wire: Int, default: Any)(set: (ProtobufInput, InternalRow, Int) => Unit): ScalarReader =
      new ScalarReader(wire, if (hasDefault) default else null, set)
    def whole(wire: Int, isUnsigned: Boolean = false)(read: ProtobufInput => Long): ScalarReader = {
      val value = declared.fold(0L)(text => if (isUnsigned) java.lang.Long.parseUnsignedLong(text) else text.toLong)
      val into = Whole(dataType, isUnsigned)
      scalar(wire, into.value(value))((in, row, i) => into.write(read(in), row, i))
    }
    kind match {
      case "int32" => whole(Varint)(_.varint().toInt.toLong)
      case "int64" => whole(Varint)(_.varint())
      case "uint32" => whole(Varint)(_.varint() & 0xffffffffL)
      case "uint64" => whole(Varint, isUnsigned = true)(_.varint())
      case "sint32" | "sint64" => whole(Varint)(_.zigzag())
      case "fixed32" => whole(Fixed32)(_.fixed32() & 0xffffffffL)
      case "sfixed32" => whole(Fixed32)(_.fixed32().toLong)
      case "fixed64" => whole(Fixed64, isUnsigned = true)(_.fixed64())
      case "sfixed64" => whole(Fixed64)(_.fixed64())
      case "bool" => scalar(Varint, declared.contains("true"))((in, row, i) => row.setBoolean(i, in.varint() != 0))
      case "float" => float(dataType, declared.fold(0f)(_.toFloat), scalar)
      case "double" =>
        scalar(Fixed64, declared.fold(0d)(_.toDouble))((in, row, i) =>
          row.setDouble(i, java.lang.Double.longBitsToDouble(in.fixed64())))
      case "string" =>
        scalar(Bytes, UTF8String.fromString(declared.getOrElse("")))((in, row, i) => row.update(i, text(in)))
      case "bytes" =>
        scalar(Bytes, declared.getOrElse("").getBytes(UTF_8))((in, row, i) => row.update(i, bytes(in)))
      case "enum" => enumeration(node, dataType, declared, scalar)
      case "timestamp" => new ScalarReader(Bytes, null, timestamp)
      case other => throw new IllegalArgumentException(s"fields of protobuf have no kind '$other'")
    }
  }

  private type Scalar = (Int, Any) => ((ProtobufInput, InternalRow, Int) => Unit) => ScalarReader

  private def float(dataType: DataType, default: Float, scalar: Scalar): ScalarReader =
    if (dataType == DoubleType)
      scalar(Fixed32, default.toDouble)((in, row, i) =>
        row.setDouble(i, java.lang.Float.intBitsToFloat(in.fixed32()).toDouble))
    else scalar(Fixed32, default)((in, row, i) => row.setFloat(i, java.lang.Float.intBitsToFloat(in.fixed32())))

  /** The name of a value, the number of one that has none; or the number itself in a column of numbers. */
  private def enumeration(node: JValue, dataType: DataType, declared: Option[String], scalar: Scalar): ScalarReader = {
    val names = new util.HashMap[Long, UTF8String]
    val listed = (node \ "values").extract[Map[String, String]].map { case (n, name) => n.toLong -> name }
    listed.foreach { case (n, name) => names.put(n, UTF8String.fromString(name)) }
    val first = declared.flatMap(name => listed.find(_._2 == name)).map(_._1).getOrElse(0L)
    def named(number: Long): UTF8String = {
      val name = names.get(number)
      if (name == null) UTF8String.fromString(number.toString) else name
    }
    if (dataType == StringType)
      scalar(Varint, named(first))((in, row, i) => row.update(i, named(in.varint().toInt.toLong)))
    else {
      val into = Whole(dataType, isUnsigned = false)
      scalar(Varint, into.value(first))((in, row, i) => into.write(in.varint().toInt.toLong, row, i))
    }
  }

  private def text(in: ProtobufInput): UTF8String = {
    val length = in.length()
    val found = UTF8String.fromBytes(in.bytes, in.at, length)
    in.at += length
    if (!found.isValid) malformed("a string that is no UTF-8")
    found
  }

  private def bytes(in: ProtobufInput): Array[Byte] = {
    val length = in.length()
    in.at += length
    util.Arrays.copyOfRange(in.bytes, in.at - length, in.at)
  }

  /** `google.protobuf.Timestamp`: seconds in field 1, nanoseconds in field 2; cut to microseconds. */
  private def timestamp(in: ProtobufInput, row: InternalRow, i: Int): Unit = {
    var seconds, nanos = 0L
    in.part(while (in.at < in.end) {
      val tag = in.tag()
      if (tag == (1 << 3 | Varint)) seconds = in.varint()
      else if (tag == (2 << 3 | Varint)) nanos = in.varint()
      else in.skip(tag)
    })
    if (math.abs(seconds) > MostSeconds || nanos < 0 || nanos > MostNanos)
      throw new BadRecord(Reason.OutOfRange, s"a timestamp of $seconds seconds and $nanos nanoseconds")
    row.setLong(i, seconds * 1000000 + nanos / 1000)
  }

  final val MostSeconds = 253402300799L
  private final val MostNanos = 999999999L
}

/** Writes whole numbers of 64 bits into a column of another type; those that do not fit are bad records. */
private final case class Whole(dataType: DataType, isUnsigned: Boolean) {

  /** The number as a value of a row. */
  def value(number: Long): Any = dataType match {
    case ByteType => within(number, Byte.MinValue, Byte.MaxValue).toByte
    case ShortType => within(number, Short.MinValue, Short.MaxValue).toShort
    case IntegerType => within(number, Int.MinValue, Int.MaxValue).toInt
    case LongType => within(number, Long.MinValue, Long.MaxValue)
    case decimal: DecimalType => Decimal(BigDecimal(digits(number)), decimal.precision, decimal.scale)
    case other => throw new IllegalArgumentException(s"a whole number is no ${other.sql}")
  }

  def write(number: Long, row: InternalRow, i: Int): Unit = dataType match {
    case LongType => row.setLong(i, within(number, Long.MinValue, Long.MaxValue))
    case IntegerType => row.setInt(i, within(number, Int.MinValue, Int.MaxValue).toInt)
    case _ => row.update(i, value(number))
  }

  private def within(number: Long, least: Long, most: Long): Long =
    if (isUnsigned && number < 0 || number < least || number > most)
      throw new BadRecord(Reason.OutOfRange, s"${digits(number)} is too large for its column")
    else number

  private def digits(number: Long): String =
    if (isUnsigned) java.lang.Long.toUnsignedString(number) else number.toString
}

package org.apache.spark.sql.rejoin.format.json

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import com.fasterxml.jackson.core.io.JsonStringEncoder

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.{ByteSink, FormatSpec, SqlTypes, TimeText}

/** Writes rows as Flink's JSON formats do: compact, in column order, NULLs written out.
  *
  * @param ordinals
  *   the columns to write; `struct` has their names and types
  */
final class JsonObjectWriter(options: JsonWriterOptions, ordinals: Seq[Int], struct: StructType) {
  private val columns = ordinals.toArray
  private val names = struct.fieldNames.map(JsonWriter.quotedName)
  private val values = struct.fields.map { f =>
    JsonValueWriter(f.dataType, SqlTypes.isTime(SqlTypes.of(f)), options)
  }

  def write(row: SpecializedGetters, out: ByteSink): Unit = {
    out.byte('{')
    var isFirst = true
    var i = 0
    try
      while (i < columns.length) {
        val isNull = row.isNullAt(columns(i))
        if (!isNull || !options.ignoreNullFields) {
          if (!isFirst) out.byte(',')
          isFirst = false
          out.write(names(i))
          if (isNull) out.write(JsonWriter.Null) else values(i).write(row, columns(i), out)
        }
        i += 1
      }
    catch { case unfit: JsonValueException => throw unfit.in(struct(i).name) }
    out.byte('}')
  }
}

/** A value that JSON does not have, and of which the schema in a registry says that it is one: the query is wrong,
  * not a single record.
  */
final class JsonValueException(message: String) extends RuntimeException(message) {
  def in(column: String): JsonValueException = new JsonValueException(s"$column: $getMessage")
}

/** Options of Flink's JSON formats that matter when writing.
  *
  * @param followsSchema
  *   whether a schema in a registry says that numbers are numbers
  */
final case class JsonWriterOptions(
    timestampStandard: String,
    decimalAsPlainNumber: Boolean,
    ignoreNullFields: Boolean,
    mapNullKeyMode: String,
    mapNullKeyLiteral: String,
    followsSchema: Boolean)

object JsonWriterOptions {
  def apply(format: FormatSpec): JsonWriterOptions =
    JsonWriterOptions(
      format.options.getOrElse("timestamp-format.standard", "SQL"),
      format.flag("encode.decimal-as-plain-number"),
      format.flag("encode.ignore-null-fields"),
      format.options.getOrElse("map-null-key.mode", "FAIL"),
      format.options.getOrElse("map-null-key.literal", "null"),
      followsSchema = format.options.contains("schema-id"))
}

object JsonWriter {
  private[rejoin] val Null = "null".getBytes(UTF_8)

  /** `"name":` */
  def quotedName(name: String): Array[Byte] =
    s"\"${new String(JsonStringEncoder.getInstance.quoteAsString(name))}\":".getBytes(UTF_8)

  /** Writes a JSON string. Only quotes, backslashes and control characters need an escape; bytes that are
    * not UTF-8, which columns of raw or Avro text may hold, become U+FFFD.
    */
  def text(value: UTF8String, out: ByteSink): Unit = {
    out.byte('"')
    if (isPlain(value)) out.write(value)
    else out.write(JsonStringEncoder.getInstance.quoteAsUTF8(value.toString))
    out.byte('"')
  }

  private def isPlain(value: UTF8String): Boolean = {
    val base = value.getBaseObject
    val from = value.getBaseOffset
    val end = from + value.numBytes
    var at = from
    var plain = true
    var isAscii = true
    while (plain && at < end) {
      val b = Platform.getByte(base, at)
      if (b < 0) isAscii = false // part of a character that needs no escape
      else plain = b >= 0x20 && b != '"' && b != '\\'
      at += 1
    }
    plain && (isAscii || value.isValid)
  }
}

/** Writes one value that is not NULL. */
abstract class JsonValueWriter {
  def write(row: SpecializedGetters, ordinal: Int, out: ByteSink): Unit
}

object JsonValueWriter {
  def apply(dataType: DataType, isTime: Boolean, options: JsonWriterOptions): JsonValueWriter =
    dataType match {
      case BooleanType => (row, i, out) => out.ascii(if (row.getBoolean(i)) "true" else "false")
      case ByteType => (row, i, out) => out.decimal(row.getByte(i).toLong)
      case ShortType => (row, i, out) => out.decimal(row.getShort(i).toLong)
      case IntegerType if isTime => (row, i, out) => quoted(out)(TimeText.time(row.getInt(i), out))
      case IntegerType => (row, i, out) => out.decimal(row.getInt(i).toLong)
      case LongType => (row, i, out) => out.decimal(row.getLong(i))
      case FloatType => (row, i, out) => number(row.getFloat(i).toString, options, out)
      case DoubleType => (row, i, out) => number(row.getDouble(i).toString, options, out)
      case decimal: DecimalType => decimalWriter(decimal, options)
      case StringType => (row, i, out) => JsonWriter.text(row.getUTF8String(i), out)
      case BinaryType =>
        (row, i, out) => quoted(out)(out.write(Base64.getEncoder.encode(row.getBinary(i))))
      case DateType => (row, i, out) => quoted(out)(TimeText.date(row.getInt(i), out))
      case TimestampNTZType | TimestampType => timestampWriter(dataType == TimestampType, options)
      case struct: StructType =>
        val nested = new JsonObjectWriter(options, struct.indices, struct)
        (row, i, out) => nested.write(row.getStruct(i, struct.size), out)
      case array: ArrayType => arrayWriter(array, options)
      case map: MapType => mapWriter(map, options)
      case other => throw new IllegalArgumentException(s"JSON formats cannot write ${SqlTypes.text(other)}")
    }

  private def quoted(out: ByteSink)(body: => Unit): Unit = {
    out.byte('"')
    body
    out.byte('"')
  }

  /** JSON has no numbers for NaN and the infinities: they are written as strings, as Flink does. */
  private def number(text: String, options: JsonWriterOptions, out: ByteSink): Unit =
    if (!text.last.isLetter) out.ascii(text)
    else if (options.followsSchema) throw new JsonValueException(s"$text is no number of JSON")
    else quoted(out)(out.ascii(text))

  private def decimalWriter(decimal: DecimalType, options: JsonWriterOptions): JsonValueWriter =
    (row, i, out) => {
      val value = row.getDecimal(i, decimal.precision, decimal.scale).toJavaBigDecimal
      out.ascii(if (options.decimalAsPlainNumber) value.toPlainString else value.toString)
    }

  private def timestampWriter(isZoned: Boolean, options: JsonWriterOptions): JsonValueWriter = {
    val format = new TimeText(options.timestampStandard)
    (row, i, out) => quoted(out)(format.timestamp(row.getLong(i), isZoned, out))
  }

  private def arrayWriter(array: ArrayType, options: JsonWriterOptions): JsonValueWriter = {
    val element = JsonValueWriter(array.elementType, isTime = false, options)
    (row, i, out) => {
      val items = row.getArray(i)
      out.byte('[')
      var at = 0
      while (at < items.numElements()) {
        if (at > 0) out.byte(',')
        if (items.isNullAt(at)) out.write(JsonWriter.Null) else element.write(items, at, out)
        at += 1
      }
      out.byte(']')
    }
  }

  private def mapWriter(map: MapType, options: JsonWriterOptions): JsonValueWriter = {
    require(map.keyType == StringType, s"JSON formats write maps with STRING keys, not ${SqlTypes.text(map)}")
    val value = JsonValueWriter(map.valueType, isTime = false, options)
    (row, i, out) => {
      val keys = row.getMap(i).keyArray()
      val values = row.getMap(i).valueArray()
      var isFirst = true
      out.byte('{')
      for (at <- 0 until keys.numElements(); key <- mapKey(keys, at, options)) {
        if (!isFirst) out.byte(',')
        isFirst = false
        JsonWriter.text(key, out)
        out.byte(':')
        if (values.isNullAt(at)) out.write(JsonWriter.Null) else value.write(values, at, out)
      }
      out.byte('}')
    }
  }

  private def mapKey(keys: ArrayData, at: Int, options: JsonWriterOptions): Option[UTF8String] =
    if (!keys.isNullAt(at)) Some(keys.getUTF8String(at))
    else
      options.mapNullKeyMode match {
        case "DROP" => None
        case "LITERAL" => Some(UTF8String.fromString(options.mapNullKeyLiteral))
        case _ => throw new IllegalArgumentException("a map's key is NULL: see 'map-null-key.mode'")
      }
}

package org.apache.spark.sql.rejoin.format.csv

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8
import java.time.LocalTime

import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.core.Base64Variants
import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.json.{Decimals, JsonFields}
import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec, RowDecoder, SourceRecord, SqlTypes, TimeText}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Decodes a line of CSV as a row; for keys and plain values.
  *
  * Fields have no names: the planner gives those of all columns of the record, in their order.
  */
final class CsvDecoder(format: FormatSpec, targets: Seq[FieldTarget]) extends RowDecoder {
  private val options = CsvOptions(format)
  private val columns = CsvDecoder.columns(format)
  private val line = new CsvLine(options, columns.size)
  private val places = targets.map(t => columns.indexOf(t.field)).toArray
  private val ordinals = targets.map(_.ordinal).toArray
  private val converters = targets.map(t => CsvConverter(t.dataType, t.sqlType, options)).toArray
  private val utf8 = UTF_8.newDecoder()

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    line.read(text(bytes))
    var i = 0
    while (i < places.length) {
      if (places(i) < line.size) readField(i, row) else row.setNullAt(ordinals(i))
      i += 1
    }
  }

  private def text(bytes: Array[Byte]): String =
    try utf8.decode(ByteBuffer.wrap(bytes)).toString.stripPrefix(CsvDecoder.ByteOrderMark)
    catch { case _: CharacterCodingException => throw new BadRecord(Reason.CsvMalformed, "not UTF-8") }

  private def readField(i: Int, row: InternalRow): Unit =
    try converters(i).read(line(places(i)), row, ordinals(i))
    catch {
      case e: Exception if JsonFields.isFieldProblem(e) =>
        if (!options.ignoreParseErrors)
          throw new BadRecord(Reason.CsvField, s"'${targets(i).field}' is no ${targets(i).typeText}: ${e.getMessage}")
        row.setNullAt(ordinals(i))
    }
}

private object CsvDecoder {
  private implicit val formats: Formats = DefaultFormats
  private val ByteOrderMark = "\uFEFF"

  def columns(format: FormatSpec): Seq[String] =
    parse(format.options.getOrElse("columns", throw new IllegalArgumentException("format 'csv' has no columns")))
      .extract[Seq[String]]
}

/** Reads one field of an expected type, by the rules of Flink's `csv` format. */
private abstract class CsvConverter {

  /** Throws IllegalArgumentException or DateTimeException if the text is no value of the type. */
  def read(text: String, row: InternalRow, ordinal: Int): Unit
}

private object CsvConverter {

  /** The null literal in an array or row is an element, not the whole field. */
  def apply(dataType: DataType, sqlType: Option[String], options: CsvOptions): CsvConverter = dataType match {
    case array: ArrayType => new CsvArray(array, options)
    case struct: StructType => new CsvStruct(struct, options)
    case _ => nullable(scalar(dataType, sqlType), options)
  }

  def nullable(converter: CsvConverter, options: CsvOptions): CsvConverter = (text, row, i) =>
    if (options.isNull(text)) row.setNullAt(i) else converter.read(text, row, i)

  def scalar(dataType: DataType, sqlType: Option[String]): CsvConverter = dataType match {
    case BooleanType => (text, row, i) => row.setBoolean(i, java.lang.Boolean.parseBoolean(text.trim))
    case ByteType => (text, row, i) => row.setByte(i, text.trim.toByte)
    case ShortType => (text, row, i) => row.setShort(i, text.trim.toShort)
    case IntegerType if SqlTypes.isTime(sqlType) => time(sqlType)
    case IntegerType => (text, row, i) => row.setInt(i, text.trim.toInt)
    case LongType => (text, row, i) => row.setLong(i, text.trim.toLong)
    case FloatType => (text, row, i) => row.setFloat(i, text.trim.toFloat)
    case DoubleType => (text, row, i) => row.setDouble(i, text.trim.toDouble)
    case decimal: DecimalType => (text, row, i) => row.update(i, Decimals.fit(Decimals.parse(text), decimal))
    case StringType => (text, row, i) => row.update(i, UTF8String.fromString(text))
    case BinaryType => (text, row, i) => row.update(i, Base64Variants.getDefaultVariant.decode(text))
    // as Flink: a day that its month does not have is one of the next month
    case DateType => (text, row, i) => row.setInt(i, java.sql.Date.valueOf(text).toLocalDate.toEpochDay.toInt)
    case TimestampNTZType => (text, row, i) => row.setLong(i, Timestamps.parseTimestamp(text.trim, isZoned = false))
    case TimestampType => (text, row, i) => row.setLong(i, Timestamps.parseTimestamp(text.trim, isZoned = true))
    case other => throw new IllegalArgumentException(s"format 'csv' cannot read ${SqlTypes.text(other)}")
  }

  private val Timestamps = new TimeText("SQL")

  /** The millisecond of the day, without the digits that the column does not declare. */
  private def time(sqlType: Option[String]): CsvConverter = {
    val precision = sqlType.flatMap(_.find(_.isDigit)).fold(0)(_.asDigit)
    val unit = Seq(1000, 100, 10).lift(precision).getOrElse(1)
    (text, row, i) => {
      val millis = (LocalTime.parse(text).toNanoOfDay / 1000000).toInt
      row.setInt(i, millis - millis % unit)
    }
  }

  /** The elements of an array or row; none in a blank text. */
  def elements(text: String, options: CsvOptions): ArrayBuffer[String] = {
    val found = new ArrayBuffer[String]
    var from = 0
    while (from >= 0 && (from > 0 || !text.isBlank)) {
      val end = text.indexOf(options.arraySeparator, from)
      val element = if (end < 0) text.substring(from) else text.substring(from, end)
      found += (if (options.trimSpaces) element.trim else element)
      from = if (end < 0) -1 else end + options.arraySeparator.length
    }
    found
  }

  /** Reads an element, which is NULL if it cannot be read and errors are ignored. */
  def readElement(
      converter: CsvConverter,
      text: String,
      row: InternalRow,
      ordinal: Int,
      options: CsvOptions): Unit =
    try converter.read(text, row, ordinal)
    catch { case e: Exception if options.ignoreParseErrors && JsonFields.isFieldProblem(e) => row.setNullAt(ordinal) }
}

private final class CsvArray(array: ArrayType, options: CsvOptions) extends CsvConverter {
  private val converter = CsvConverter.nullable(CsvConverter.scalar(array.elementType, None), options)
  private val slot = new SpecificInternalRow(Seq(array.elementType))

  override def read(text: String, row: InternalRow, ordinal: Int): Unit = {
    val values = CsvConverter.elements(text, options).map { element =>
      CsvConverter.readElement(converter, element, slot, 0, options)
      if (slot.isNullAt(0)) null else slot.get(0, array.elementType)
    }
    row.update(ordinal, new GenericArrayData(values.toArray[Any]))
  }
}

/** Reads the fields of a row by their places; a blank text is NULL. */
private final class CsvStruct(struct: StructType, options: CsvOptions) extends CsvConverter {
  private val types = struct.map(_.dataType)
  private val converters = struct.fields.map { f =>
    CsvConverter.nullable(CsvConverter.scalar(f.dataType, SqlTypes.of(f)), options)
  }

  override def read(text: String, row: InternalRow, ordinal: Int): Unit = {
    val fields = CsvConverter.elements(text, options)
    if (fields.isEmpty) row.setNullAt(ordinal)
    else {
      if (fields.size < types.size && !options.ignoreParseErrors)
        throw new IllegalArgumentException(s"${fields.size} fields where ${types.size} are expected")
      val nested = new SpecificInternalRow(types)
      for (i <- converters.indices)
        if (i < fields.size) CsvConverter.readElement(converters(i), fields(i), nested, i, options)
        else nested.setNullAt(i)
      row.update(ordinal, nested)
    }
  }
}

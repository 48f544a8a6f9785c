package org.apache.spark.sql.rejoin.format.csv

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.{ByteSink, FormatSpec, RowEncoder, SqlTypes, TimeText}

/** Writes rows as Flink's `csv` format does: the columns in their order, without a line end.
  *
  * @param ordinals
  *   the columns to write; `struct` has their names and types
  */
final class CsvEncoder(format: FormatSpec, ordinals: Seq[Int], struct: StructType) extends RowEncoder {
  private val options = CsvOptions(format)
  private val separator = options.separator.toString.getBytes(UTF_8)
  private val nullText = options.nullText.getBytes(UTF_8)
  private val columns = ordinals.toArray
  private val texts = struct.fields.map(f => CsvText(f.dataType, SqlTypes.isTime(SqlTypes.of(f)), options))
  private val quotes = struct.fields.map(f => CsvText.mayHaveQuotes(f.dataType))
  private val quoting = new CsvQuoting(options)

  override def encode(row: SpecializedGetters, out: ByteSink): Unit = {
    var i = 0
    while (i < columns.length) {
      if (i > 0) out.write(separator)
      if (row.isNullAt(columns(i))) out.write(nullText)
      else {
        val text = texts(i).of(row, columns(i))
        out.write((if (quotes(i)) quoting(text) else text).getBytes(UTF_8))
      }
      i += 1
    }
  }
}

/** Puts texts into quotes as Jackson does: those that are long or have a character up to the separator or
  * quote, whichever is greater.
  */
private final class CsvQuoting(options: CsvOptions) {
  private val quote = options.quote.toChar
  private val lastUnsafe = math.max(options.separator.toInt, options.quote)
  private val isQuoting = options.quote != CsvOptions.NoChar

  def apply(text: String): String = if (isQuoting && needsQuotes(text)) quoted(text) else text

  private def needsQuotes(text: String): Boolean =
    text.length > CsvQuoting.MostUnquoted || text.exists(c => c <= lastUnsafe || c == options.escape)

  private def quoted(text: String): String = {
    val out = new java.lang.StringBuilder(text.length + 2).append(quote)
    text.foreach { c =>
      if (c == quote || c == options.escape) out.append(c)
      out.append(c)
    }
    out.append(quote).toString
  }
}

private object CsvQuoting {
  private final val MostUnquoted = 24
}

/** The text of one value that is not NULL, without quotes. */
private abstract class CsvText {
  def of(row: SpecializedGetters, ordinal: Int): String
}

private object CsvText {

  /** Numbers and booleans never have quotes. */
  def mayHaveQuotes(dataType: DataType): Boolean = dataType match {
    case BooleanType => false
    case _: NumericType => false
    case _ => true
  }

  def apply(dataType: DataType, isTime: Boolean, options: CsvOptions): CsvText = dataType match {
    case array: ArrayType => arrayText(array, options)
    case struct: StructType => structText(struct, options)
    case _ => scalar(dataType, isTime, options)
  }

  private def scalar(dataType: DataType, isTime: Boolean, options: CsvOptions): CsvText = dataType match {
    case BooleanType => (row, i) => row.getBoolean(i).toString
    case ByteType => (row, i) => row.getByte(i).toString
    case ShortType => (row, i) => row.getShort(i).toString
    case IntegerType if isTime => (row, i) => written(TimeText.time(row.getInt(i), _))
    case IntegerType => (row, i) => row.getInt(i).toString
    case LongType => (row, i) => row.getLong(i).toString
    case FloatType => (row, i) => row.getFloat(i).toString
    case DoubleType => (row, i) => row.getDouble(i).toString
    case decimal: DecimalType => (row, i) => number(row.getDecimal(i, decimal.precision, decimal.scale), options)
    case StringType => (row, i) => row.getUTF8String(i).toString
    case BinaryType => (row, i) => Base64.getEncoder.encodeToString(row.getBinary(i))
    case DateType => (row, i) => written(TimeText.date(row.getInt(i), _))
    case TimestampNTZType => (row, i) => written(Timestamps.timestamp(row.getLong(i), isZoned = false, _))
    case TimestampType => (row, i) => written(Timestamps.timestamp(row.getLong(i), isZoned = true, _))
    case other => throw new IllegalArgumentException(s"format 'csv' cannot write ${SqlTypes.text(other)}")
  }

  private val Timestamps = new TimeText("SQL")

  private def written(write: ByteSink => Unit): String = {
    val out = new ByteSink
    write(out)
    new String(out.result(), UTF_8)
  }

  private def number(value: Decimal, options: CsvOptions): String =
    if (options.scientific) value.toJavaBigDecimal.stripTrailingZeros.toString
    else value.toJavaBigDecimal.toPlainString

  private def arrayText(array: ArrayType, options: CsvOptions): CsvText = {
    val element = scalar(array.elementType, isTime = false, options)
    (row, i) => {
      val items = row.getArray(i)
      (0 until items.numElements()).map(elementText(element, items, _, options)).mkString(options.arraySeparator)
    }
  }

  private def structText(struct: StructType, options: CsvOptions): CsvText = {
    val fields = struct.fields.map(f => scalar(f.dataType, SqlTypes.isTime(SqlTypes.of(f)), options))
    (row, i) => {
      val nested = row.getStruct(i, fields.length)
      fields.indices.map(f => elementText(fields(f), nested, f, options)).mkString(options.arraySeparator)
    }
  }

  private def elementText(text: CsvText, row: SpecializedGetters, i: Int, options: CsvOptions): String =
    if (row.isNullAt(i)) options.nullText else text.of(row, i)
}

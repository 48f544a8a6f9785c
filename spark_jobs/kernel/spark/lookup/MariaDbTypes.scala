package org.apache.spark.sql.rejoin.lookup

import java.sql.ResultSet
import java.time.format.{DateTimeFormatter, DateTimeFormatterBuilder, ResolverStyle}
import java.time.temporal.ChronoField
import java.time.{LocalDate, LocalDateTime, LocalTime, ZoneOffset}

import org.json4s.JsonAST.{JInt, JString, JValue}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.lookup.Dialect.{decimal, isYear}

/** How MariaDB's and MySQL's types become the types of SQL columns, as in Flink's JDBC connector. */
object MariaDbTypes {
  private val Integers = Set("tinyint", "smallint", "mediumint", "int", "bigint")
  private val Flags = Set("tinyint(1)", "bit(1)")
  private val Texts = Set("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
  private val Bytes = Set("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")

  private val UpToByte = Set("tinyint", "tinyint(1)")
  private val UpToShort = UpToByte ++ Set("tinyint unsigned", "smallint")
  private val UpToInt = UpToShort ++ Set("smallint unsigned", "mediumint", "mediumint unsigned", "int")
  private val UpToLong = UpToInt ++ Set("int unsigned", "bigint")

  /** A type as `SHOW COLUMNS` writes it, without lengths but those that tell a flag, and whether it has a sign. */
  def kind(shown: String): String = {
    val base = shown.takeWhile(c => c != '(' && c != ' ')
    if (Flags(shown)) shown
    else if (Integers(base) && shown.contains(" unsigned")) s"$base unsigned"
    else base
  }

  def accepted(column: LookupColumn): Set[String] = column.dataType match {
    case BooleanType => Flags
    case ByteType => UpToByte
    case ShortType => UpToShort
    case IntegerType if column.isTime => Set("time")
    case IntegerType => UpToInt
    case LongType => UpToLong
    case FloatType => Set("float")
    case DoubleType => Set("double", "float")
    case _: DecimalType => UpToLong ++ Set("decimal", "bigint unsigned")
    case StringType => Texts ++ Set("enum", "set", "json", "uuid")
    case DateType => Set("date")
    case TimestampNTZType => Set("datetime", "timestamp")
    case TimestampType => Set("timestamp")
    case BinaryType => Bytes
    case _ => Set.empty
  }

  /** `set`, `json` and `uuid` have no equality with every text. A TIMESTAMP for an instant is ambiguous in the hour
    * that clocks are put back by.
    */
  def isKey(column: FoundColumn): Boolean = column.stored.kind match {
    case "set" | "json" | "uuid" => false
    case "timestamp" => column.declared.dataType == TimestampType
    case _ => true
  }

  /** The type in which a key's column comes. */
  def ofKey(column: FoundColumn): String = column.declared.dataType match {
    case StringType => "LONGTEXT CHARACTER SET utf8mb4"
    case d: DecimalType => s"DECIMAL(${d.precision}, ${d.scale})"
    case DateType => "DATE"
    case TimestampNTZType | TimestampType => "DATETIME(6)"
    case _ => "BIGINT"
  }

  /** A key's column in the JSON text; none where no row can have it. Decimals and times are texts there, because a
    * number of JSON may be read as a floating-point number.
    */
  def keyValue(key: UnsafeRow, i: Int, column: FoundColumn): Option[JValue] = column.declared.dataType match {
    case StringType => Some(JString(key.getUTF8String(i).toString))
    case BooleanType => Some(JInt(if (key.getBoolean(i)) 1 else 0))
    case ByteType => Some(JInt(key.getByte(i).toInt))
    case ShortType => Some(JInt(key.getShort(i).toInt))
    case IntegerType => Some(JInt(key.getInt(i)))
    case LongType => Some(JInt(key.getLong(i)))
    case d: DecimalType => Some(JString(key.getDecimal(i, d.precision, d.scale).toJavaBigDecimal.toPlainString))
    case DateType =>
      val date = LocalDate.ofEpochDay(key.getInt(i).toLong)
      Option.when(isYear(date.getYear))(JString(date.toString))
    case TimestampNTZType | TimestampType =>
      val time = DateTimeUtils.microsToLocalDateTime(key.getLong(i))
      Option.when(isYear(time.getYear))(JString(time.format(Times)))
    case other => throw new IllegalArgumentException(s"no rows are looked up by ${other.sql}")
  }

  /** `2024-02-29 10:00:00.123456`, with as many digits of the second as the column has. */
  private val Times = new DateTimeFormatterBuilder()
    .append(DateTimeFormatter.ISO_LOCAL_DATE)
    .appendLiteral(' ')
    .appendPattern("HH:mm:ss")
    .appendFraction(ChronoField.MICRO_OF_SECOND, 0, 6, true)
    .toFormatter
    .withResolverStyle(ResolverStyle.STRICT)

  /** Whether the database writes the column as a text: a driver makes NULL of the date `0000-00-00`, and moves a time
    * by the time zone that it takes for the session's.
    */
  def isReadAsText(column: FoundColumn): Boolean =
    Set("date", "time", "datetime", "timestamp")(column.stored.kind)

  def read(rows: ResultSet, at: Int, column: FoundColumn, timeZone: String): Any = {
    def unlessNull(value: Any): Any = if (rows.wasNull()) null else value
    def ofText(read: String => Any): Any = Option(rows.getString(at)).map(read).orNull
    column.declared.dataType match {
      case BooleanType => unlessNull(rows.getBoolean(at))
      case ByteType => unlessNull(rows.getByte(at))
      case ShortType => unlessNull(rows.getShort(at))
      case IntegerType if column.declared.isTime => ofText(text => (LocalTime.parse(text).toNanoOfDay / 1000000).toInt)
      case IntegerType => unlessNull(rows.getInt(at))
      case LongType => unlessNull(rows.getLong(at))
      case FloatType => unlessNull(rows.getFloat(at))
      case DoubleType => unlessNull(rows.getDouble(at))
      case StringType => ofText(UTF8String.fromString)
      case BinaryType => rows.getBytes(at)
      case d: DecimalType => Option(rows.getBigDecimal(at)).map(decimal(_, d)).orNull
      case DateType => ofText(text => Math.toIntExact(LocalDate.parse(text).toEpochDay))
      case TimestampNTZType if column.stored.kind == "timestamp" =>
        ofText { text =>
          micros(LocalDateTime.ofInstant(utc(text).toInstant(ZoneOffset.UTC), DateTimeUtils.getZoneId(timeZone)))
        }
      case TimestampNTZType | TimestampType => ofText(text => micros(utc(text)))
      case other => throw new IllegalArgumentException(s"${other.sql} cannot be read")
    }
  }

  private def utc(text: String): LocalDateTime = LocalDateTime.parse(text, Times)

  private def micros(time: LocalDateTime): Long = DateTimeUtils.localDateTimeToMicros(time)
}

package org.apache.spark.sql.rejoin.lookup

import java.sql.ResultSet
import java.time.{Instant, LocalDate, LocalDateTime, LocalTime, OffsetDateTime, ZoneOffset}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.lookup.Dialect.{decimal, isYear}

/** How PostgreSQL's types become the types of SQL columns, as in Flink's JDBC connector. */
object PostgresTypes {

  /** The kind of all enumerations, none of which is called so. */
  final val Enumeration = "enumeration"

  private val Texts = Set("text", "varchar", "bpchar", "name", "citext", "uuid", "json", "jsonb", "xml", Enumeration)

  /** Texts that a key must not be compared with: not every text is such a value, or they have no equality. */
  private val NoKeys = Set("name", "json", "jsonb", "xml", Enumeration)

  def isKey(stored: String): Boolean = !NoKeys(stored)

  /** Types of PostgreSQL, by their names in pg_type, that a column of this type can hold all values of. */
  def accepted(column: LookupColumn): Set[String] = column.dataType match {
    case IntegerType if column.isTime => Set("time")
    case BooleanType => Set("bool")
    case ByteType | ShortType => Set("int2")
    case IntegerType => Set("int4", "int2")
    case LongType => Set("int8", "int4", "int2")
    case FloatType => Set("float4")
    case DoubleType => Set("float8", "float4")
    case _: DecimalType => Set("numeric", "int2", "int4", "int8")
    case StringType => Texts
    case DateType => Set("date")
    case TimestampNTZType => Set("timestamp")
    case TimestampType => Set("timestamptz")
    case BinaryType => Set("bytea")
    case _ => Set.empty
  }

  /** The type of the array in which keys are sent: that of texts is the column's, so that its index is used. */
  def ofKey(column: FoundColumn): String = column.declared.dataType match {
    case BooleanType => "bool"
    case ByteType | ShortType => "int2"
    case IntegerType => "int4"
    case LongType => "int8"
    case _: DecimalType => "numeric"
    case DateType => "date"
    case TimestampNTZType => "timestamp"
    case TimestampType => "timestamptz"
    case _ => column.stored.kind
  }

  /** A key's column as an element of such an array; none where no row can have it. */
  def keyValue(key: UnsafeRow, i: Int, column: FoundColumn): Option[AnyRef] = column.declared.dataType match {
    case StringType =>
      val text = key.getUTF8String(i).toString
      val fits = text.indexOf('\u0000') < 0 && (column.stored.kind != "uuid" || isUuid(text))
      Option.when(fits)(text)
    case BooleanType => Some(Boolean.box(key.getBoolean(i)))
    case ByteType => Some(Short.box(key.getByte(i).toShort))
    case ShortType => Some(Short.box(key.getShort(i)))
    case IntegerType => Some(Int.box(key.getInt(i)))
    case LongType => Some(Long.box(key.getLong(i)))
    case d: DecimalType => Some(key.getDecimal(i, d.precision, d.scale).toJavaBigDecimal)
    case DateType => Some(LocalDate.ofEpochDay(key.getInt(i).toLong)).filter(date => isYear(date.getYear))
    case TimestampNTZType =>
      Some(DateTimeUtils.microsToLocalDateTime(key.getLong(i))).filter(time => isYear(time.getYear))
    case TimestampType =>
      Some(DateTimeUtils.microsToInstant(key.getLong(i)).atOffset(ZoneOffset.UTC)).filter(t => isYear(t.getYear))
    case other => throw new IllegalArgumentException(s"no rows are looked up by ${other.sql}")
  }

  private val Uuid = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}".r

  private def isUuid(text: String): Boolean = Uuid.matches(text)

  /** A column of a result as Spark has it; null where it is NULL. `at` counts from 1. */
  def read(rows: ResultSet, at: Int, column: LookupColumn): Any = {
    def unlessNull(value: Any): Any = if (rows.wasNull()) null else value
    column.dataType match {
      case IntegerType if column.isTime =>
        Option(rows.getObject(at, classOf[LocalTime])).map(time => (time.toNanoOfDay / 1000000).toInt).orNull
      case BooleanType => unlessNull(rows.getBoolean(at))
      case ByteType => unlessNull(rows.getByte(at))
      case ShortType => unlessNull(rows.getShort(at))
      case IntegerType => unlessNull(rows.getInt(at))
      case LongType => unlessNull(rows.getLong(at))
      case FloatType => unlessNull(rows.getFloat(at))
      case DoubleType => unlessNull(rows.getDouble(at))
      case StringType => Option(rows.getString(at)).map(UTF8String.fromString).orNull
      case BinaryType => rows.getBytes(at)
      case d: DecimalType => Option(rows.getBigDecimal(at)).map(decimal(_, d)).orNull
      case DateType =>
        Option(rows.getObject(at, classOf[LocalDate])).map(date => Math.toIntExact(date.toEpochDay)).orNull
      case TimestampNTZType =>
        Option(rows.getObject(at, classOf[LocalDateTime])).map(time => micros(time.toInstant(ZoneOffset.UTC))).orNull
      case TimestampType =>
        Option(rows.getObject(at, classOf[OffsetDateTime])).map(time => micros(time.toInstant)).orNull
      case other => throw new IllegalArgumentException(s"${other.sql} cannot be read")
    }
  }

  private def micros(time: Instant): Long = DateTimeUtils.instantToMicros(time)
}

package org.apache.spark.sql.rejoin.format.debezium

import java.math.{BigDecimal => JavaDecimal, BigInteger}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.format.DateTimeFormatter.ISO_LOCAL_DATE_TIME
import java.time.{DateTimeException, Duration, LocalDate, LocalDateTime, ZoneOffset}
import java.util.{Base64, UUID}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.json.Decimals
import org.apache.spark.sql.rejoin.format.{SqlTypes, TimeText}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Converts values of Kafka Connect's and Debezium's named types to column values, for JSON and Avro alike.
  * docs/formats.md lists which type is read into which column.
  *
  * Each factory returns null if the type cannot be read into the column. The converters throw a
  * [[BadRecord]] with [[Reason.OutOfRange]] or [[Reason.Infinity]].
  */
private[rejoin] object DebeziumTypes {
  private final val Days = "io.debezium.time.Date"
  private final val ConnectDays = "org.apache.kafka.connect.data.Date"
  final val VariableScaleDecimal = "io.debezium.data.VariableScaleDecimal"
  final val Decimal = "org.apache.kafka.connect.data.Decimal"
  final val Bits = "io.debezium.data.Bits"

  /** Writes a whole number of the source into a column. */
  trait FromNumber {
    def write(value: Long, row: InternalRow, ordinal: Int): Unit
  }

  /** Writes a text of the source into a column. */
  trait FromText {
    def write(text: String, row: InternalRow, ordinal: Int): Unit
  }

  /** Reads whole numbers of a named type; null also for names that it does not know. */
  def fromNumber(name: String, wanted: DataType, isTime: Boolean): FromNumber = {
    val nanos = nanosPerUnit(name)
    name match {
      case Days | ConnectDays => days(wanted)
      case _ if nanos == 0 => null
      case _ if name.endsWith("Duration") => duration(nanos, wanted)
      case _ if name.endsWith("Timestamp") => timestamp(nanos, wanted)
      case _ => timeOfDay(nanos, wanted, isTime)
    }
  }

  /** The unit of the numbers of this type, in nanoseconds; 0 for other types. */
  private def nanosPerUnit(name: String): Long = name match {
    case "io.debezium.time.Time" | "io.debezium.time.Timestamp" => 1000000L
    case "org.apache.kafka.connect.data.Time" | "org.apache.kafka.connect.data.Timestamp" => 1000000L
    case "io.debezium.time.MicroTime" | "io.debezium.time.MicroTimestamp" => 1000L
    case "io.debezium.time.MicroDuration" => 1000L
    case "io.debezium.time.NanoTime" | "io.debezium.time.NanoTimestamp" => 1L
    case "io.debezium.time.NanoDuration" => 1L
    case _ => 0L
  }

  /** Days since 1970. */
  def days(wanted: DataType): FromNumber = wanted match {
    case DateType =>
      (value, row, i) => {
        refuseInfinity(value == DaysOfInfinity, value == DaysOfMinusInfinity)
        row.setInt(i, whole(value, "DATE"))
      }
    case StringType =>
      (value, row, i) =>
        row.update(
          i,
          text(
            if (value == DaysOfInfinity) Infinity
            else if (value == DaysOfMinusInfinity) MinusInfinity
            else LocalDate.ofEpochDay(whole(value, "DATE").toLong).toString))
    case _ => bareNumber(wanted)
  }

  /** Time since 1970 on a clock without time zone; TIMESTAMP_LTZ takes it as UTC. */
  def timestamp(nanosPerUnit: Long, wanted: DataType): FromNumber = {
    val unit = nanosPerUnit
    wanted match {
      case TimestampNTZType | TimestampType =>
        (value, row, i) => {
          refuseInfinity(isInfinity(value, unit), isMinusInfinity(value, unit))
          row.setLong(i, micros(value, unit))
        }
      case StringType =>
        (value, row, i) =>
          row.update(
            i,
            text(
              if (isInfinity(value, unit)) Infinity
              else if (isMinusInfinity(value, unit)) MinusInfinity
              else timestampText(value, unit)))
      case _ => bareNumber(wanted)
    }
  }

  /** Time since midnight. */
  def timeOfDay(nanosPerUnit: Long, wanted: DataType, isTime: Boolean): FromNumber = wanted match {
    case IntegerType if isTime =>
      (value, row, i) => {
        if (value < 0 || value >= NanosPerDay / nanosPerUnit)
          outOfRange(s"${timeText(value, nanosPerUnit)} is no time of day")
        row.setInt(i, (value * nanosPerUnit / 1000000).toInt)
      }
    case StringType => (value, row, i) => row.update(i, text(timeText(value, nanosPerUnit)))
    case _ => bareNumber(wanted)
  }

  private def duration(nanosPerUnit: Long, wanted: DataType): FromNumber = wanted match {
    case StringType => (value, row, i) => row.update(i, text(durationText(value, nanosPerUnit)))
    case _ => bareNumber(wanted)
  }

  /** The number itself, also where it stands for infinity. */
  private def bareNumber(wanted: DataType): FromNumber = wanted match {
    case LongType => (value, row, i) => row.setLong(i, value)
    case IntegerType => (value, row, i) => row.setInt(i, whole(value, "INT"))
    case _ => null
  }

  /** Reads texts of a named type into columns other than STRING. */
  def fromText(name: String, wanted: DataType, isTime: Boolean): FromText = (name, wanted) match {
    case ("io.debezium.time.ZonedTimestamp", TimestampType) =>
      (value, row, i) => row.setLong(i, parsed(value)(TimeText.parseInstant))
    case ("io.debezium.time.IsoTimestamp", TimestampType | TimestampNTZType) =>
      (value, row, i) => row.setLong(i, parsed(value)(t => TimeText.parseLocal(t.stripSuffix("Z"))))
    case ("io.debezium.time.IsoDate", DateType) =>
      (value, row, i) => row.setInt(i, parsed(value)(t => TimeText.parseDate(t.stripSuffix("Z")).toLong).toInt)
    case ("io.debezium.time.ZonedTime" | "io.debezium.time.IsoTime", IntegerType) if isTime =>
      (value, row, i) => row.setInt(i, parsed(value)(t => TimeText.parseTime(t.stripSuffix("Z")).toLong).toInt)
    case _ => null
  }

  private def parsed(value: String)(parse: String => Long): Long = {
    refuseInfinity(value == Infinity, value == MinusInfinity)
    within(parse(value))
  }

  /** Rejects what is not a time, or one out of the column's range: PostgreSQL's reach to the year 294276. */
  def within[T](time: => T): T =
    try time
    catch { case e @ (_: DateTimeException | _: ArithmeticException) => outOfRange(e.getMessage) }

  /** Rejects a database's `infinity` and `-infinity`, which no date or time column can hold. */
  def refuseInfinity(isInfinity: Boolean, isMinusInfinity: Boolean): Unit =
    if (isInfinity || isMinusInfinity)
      throw new BadRecord(
        Reason.Infinity,
        s"the database's ${if (isInfinity) Infinity else MinusInfinity} is no instant: declare the column as STRING")

  def isInfinity(text: String): Boolean = text == Infinity || text == MinusInfinity

  private def isInfinity(value: Long, unit: Long): Boolean = value == (unit match {
    case 1000000L => MillisOfInfinity
    case 1000L => MillisOfInfinity * 1000
    case _ => Long.MaxValue
  })

  private def isMinusInfinity(value: Long, unit: Long): Boolean = value == (unit match {
    case 1000000L => MillisOfMinusInfinity
    case 1000L => MillisOfMinusInfinity * 1000
    case _ => Long.MinValue
  })

  private def micros(value: Long, unit: Long): Long =
    if (unit == 1000L) value
    else if (unit == 1L) Math.floorDiv(value, 1000L)
    else if (value > Long.MaxValue / 1000 || value < Long.MinValue / 1000) outOfRange(s"$value ms is no TIMESTAMP")
    else value * 1000

  private def timestampText(value: Long, unit: Long): String = {
    val perSecond = 1000000000L / unit
    val nanos = (Math.floorMod(value, perSecond) * unit).toInt
    ISO_LOCAL_DATE_TIME.format(LocalDateTime.ofEpochSecond(Math.floorDiv(value, perSecond), nanos, ZoneOffset.UTC))
  }

  /** With as many digits as the fraction needs. PostgreSQL allows `24:00:00`, MySQL `-838:59:59` to `838:59:59`. */
  private def timeText(value: Long, unit: Long): String = {
    val perSecond = 1000000000L / unit
    val seconds = Math.abs(value / perSecond)
    val nanos = Math.abs(value % perSecond) * unit
    val fraction = if (nanos == 0) "" else f".$nanos%09d".reverse.dropWhile(_ == '0').reverse
    val sign = if (value < 0) "-" else ""
    f"$sign${seconds / 3600}%02d:${seconds / 60 % 60}%02d:${seconds % 60}%02d$fraction"
  }

  /** ISO 8601 in hours, minutes and seconds: `PT10303H5M6.78S`. */
  def durationText(value: Long, nanosPerUnit: Long): String = {
    val perSecond = 1000000000L / nanosPerUnit
    Duration.ofSeconds(Math.floorDiv(value, perSecond), Math.floorMod(value, perSecond) * nanosPerUnit).toString
  }

  /** Writes a decimal, given as its scale and its unscaled number in big-endian two's complement, into a
    * column for which [[takesDecimal]] holds.
    */
  def writeDecimal(unscaled: Array[Byte], scale: Int, wanted: DataType, row: InternalRow, ordinal: Int): Unit = {
    if (unscaled.length == 0) outOfRange("a decimal without digits")
    if (unscaled.length > MostDecimalBytes || Math.abs(scale.toLong) > MostScale)
      outOfRange(s"a decimal of ${unscaled.length} bytes and scale $scale")
    val value = new JavaDecimal(new BigInteger(unscaled), scale)
    wanted match {
      case decimal: DecimalType => row.update(ordinal, fitting(value, decimal))
      case DoubleType => row.setDouble(ordinal, value.doubleValue)
      case _ => row.update(ordinal, text(value.toPlainString))
    }
  }

  def takesDecimal(wanted: DataType): Boolean = wanted match {
    case _: DecimalType | DoubleType | StringType => true
    case _ => false
  }

  /** Rounds half up to the column's scale; rejects a number with more digits before the point than the column. */
  def fitting(value: JavaDecimal, decimal: DecimalType): Decimal = {
    val fits = Decimals.fit(value, decimal)
    if (fits == null) outOfRange(s"a value has too many digits for ${SqlTypes.text(decimal)}")
    fits
  }

  /** The digits of a bit string, the most significant first; bytes come least significant first. */
  def bitText(bytes: Array[Byte], length: Int): UTF8String = {
    val bits = bytes.length * 8
    val digits = if (length <= 0 || length > bits) bits else length
    val text = new Array[Byte](digits)
    var i = 0
    while (i < digits) {
      text(digits - 1 - i) = (if ((bytes(i / 8) >> (i % 8) & 1) == 1) '1' else '0').toByte
      i += 1
    }
    UTF8String.fromBytes(text)
  }

  /** Debezium's placeholder for a large value that did not change and that the database did not log. */
  object Unavailable {
    private final val Name = "__debezium_unavailable_value"
    val Bytes: Array[Byte] = Name.getBytes(UTF_8)
    val Text: UTF8String = UTF8String.fromString(Name)

    private val Id = UUID.nameUUIDFromBytes(Bytes)

    /** Its forms as text: plain, as a UUID, as bytes in base64, and as JSON arrays and a JSON map (hstore). */
    private val Texts = Array(
      Text,
      UTF8String.fromString(Id.toString),
      UTF8String.fromString(s"""["$Id"]"""),
      UTF8String.fromBytes(Base64.getEncoder.encode(Bytes)),
      UTF8String.fromString(s"""["$Name"]"""),
      UTF8String.fromString(Bytes.mkString("[", ",", "]")),
      UTF8String.fromString(s"""{"$Name":"$Name"}"""))
    private val MostBytes = Texts.map(_.numBytes).max

    /** Whether a column's text is a form of the placeholder. */
    def isText(text: UTF8String): Boolean =
      text.numBytes >= Text.numBytes && text.numBytes <= MostBytes && Texts.contains(text)

    /** Whether an array of numbers holds the bytes of the placeholder. */
    def isNumbers(values: collection.IndexedSeq[Any]): Boolean =
      values.length == Bytes.length && values.indices.forall { i =>
        values(i) match {
          case number: Int => number == Bytes(i)
          case number: Long => number == Bytes(i)
          case _ => false
        }
      }

    def problem: BadRecord =
      new BadRecord(
        Reason.Unavailable,
        "the database did not log an unchanged large value: set REPLICA IDENTITY FULL")
  }

  def outOfRange(message: String): Nothing = throw new BadRecord(Reason.OutOfRange, message)

  private def whole(value: Long, wanted: String): Int =
    if (value.toInt == value) value.toInt else outOfRange(s"$value is no $wanted")

  private def text(value: String): UTF8String = UTF8String.fromString(value)

  private final val Infinity = "infinity"
  private final val MinusInfinity = "-infinity"
  private final val NanosPerDay = 86400000000000L

  // how PostgreSQL's driver and Debezium's connector write infinities
  private final val MillisOfInfinity = 9223372036825200L
  private final val MillisOfMinusInfinity = -9223372036832400L
  private final val DaysOfInfinity = -2147472692L
  private final val DaysOfMinusInfinity = -2147472691L

  // NUMERIC has at most 131072 digits before the point and 16383 after it
  private final val MostDecimalBytes = 1 << 16
  private final val MostScale = 131072L + 16383
}

package org.apache.spark.sql.rejoin.functions

import java.text.{ParseException, ParsePosition, SimpleDateFormat}
import java.time.{DayOfWeek, LocalDate, LocalDateTime, ZoneId}
import java.time.format.{DateTimeFormatter, DateTimeParseException}
import java.time.temporal.{ChronoUnit, TemporalAdjusters}
import java.util.TimeZone

import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.unsafe.types.UTF8String

/** Functions of times with Flink's results. A timestamp without time zone is in microseconds since 1970. */
object Times {
  private final val DayMicros = 86_400_000_000L
  private val seconds = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss")

  /** Whole months from `start` to `end`. A shorter month's last day counts as the day that it lacks. */
  def monthsBetween(start: Long, end: Long): Int = {
    val from = LocalDate.ofEpochDay(Math.floorDiv(start, DayMicros))
    val to = LocalDate.ofEpochDay(Math.floorDiv(end, DayMicros))
    val months = if (to.isBefore(from)) -wholeMonths(to, from) else wholeMonths(from, to)
    val isShort = from.plusMonths(months) == to && Math.floorMod(end, DayMicros) < Math.floorMod(start, DayMicros)
    if (isShort) months - 1 else months
  }

  private def wholeMonths(from: LocalDate, to: LocalDate): Int = {
    val months = (to.getYear - from.getYear) * 12 + to.getMonthValue - from.getMonthValue
    if (from.plusMonths(months.toLong).isAfter(to)) months - 1 else months
  }

  def floorTime(micros: Long, unit: UTF8String): Long =
    toMicros(floor(DateTimeUtils.microsToLocalDateTime(micros), unit.toString))

  def ceilTime(micros: Long, unit: UTF8String): Long = {
    val time = DateTimeUtils.microsToLocalDateTime(micros)
    val below = floor(time, unit.toString)
    toMicros(if (below == time) below else next(below, unit.toString))
  }

  private def toMicros(time: LocalDateTime): Long = DateTimeUtils.localDateTimeToMicros(time)

  private def floor(time: LocalDateTime, unit: String): LocalDateTime = {
    def day(date: LocalDate) = date.atStartOfDay
    val date = time.toLocalDate
    unit match {
      case "YEAR" => day(date.withDayOfYear(1))
      case "QUARTER" => day(date.withDayOfMonth(1).minusMonths((date.getMonthValue - 1) % 3L))
      case "MONTH" => day(date.withDayOfMonth(1))
      case "WEEK" => day(date.`with`(TemporalAdjusters.previousOrSame(DayOfWeek.SUNDAY)))
      case "DAY" => day(date)
      case "HOUR" => time.truncatedTo(ChronoUnit.HOURS)
      case "MINUTE" => time.truncatedTo(ChronoUnit.MINUTES)
      case "SECOND" => time.truncatedTo(ChronoUnit.SECONDS)
      case "MILLISECOND" => time.truncatedTo(ChronoUnit.MILLIS)
    }
  }

  private def next(time: LocalDateTime, unit: String): LocalDateTime = unit match {
    case "QUARTER" => time.plusMonths(3)
    case "MILLISECOND" => time.plus(1, ChronoUnit.MILLIS)
    case _ => time.plus(1, ChronoUnit.valueOf(s"${unit}S"))
  }

  /** A text that begins with a time of seconds, from one time zone in another; NULL if it does not. */
  def convertTz(text: UTF8String, from: UTF8String, to: UTF8String): UTF8String =
    try {
      val local = LocalDateTime.from(seconds.parse(text.toString, new ParsePosition(0)))
      val there = local.atZone(zone(from)).withZoneSameInstant(zone(to))
      UTF8String.fromString(seconds.format(there))
    } catch { case _: DateTimeParseException => null }

  private def zone(name: UTF8String): ZoneId = TimeZone.getTimeZone(name.toString).toZoneId

  /** Seconds since 1970 of a text; the least BIGINT if the text does not fit the pattern. */
  def unixTimestamp(text: UTF8String, pattern: UTF8String, timeZone: UTF8String): Long = {
    val format = new SimpleDateFormat(pattern.toString)
    format.setTimeZone(TimeZone.getTimeZone(timeZone.toString))
    try Math.floorDiv(format.parse(text.toString).getTime, 1000L)
    catch { case _: ParseException => Long.MinValue }
  }
}

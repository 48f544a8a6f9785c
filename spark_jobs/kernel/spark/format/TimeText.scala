package org.apache.spark.sql.rejoin.format

import java.time.{DateTimeException, LocalDate, LocalDateTime, OffsetDateTime, ZoneOffset}

import org.apache.spark.sql.catalyst.util.DateTimeUtils

/** Dates and times as Flink's JSON formats write and read them.
  *
  * `SQL` is `2020-08-15 10:00:00.5`, `ISO-8601` is `2020-08-15T10:00:00.5`; with local time zone
  * both end with `Z`. A fraction has as many digits as it needs.
  */
final class TimeText(standard: String) {
  private val isIso = standard == "ISO-8601"
  private val separator = if (isIso) 'T' else ' '

  /** Microseconds since 1970. Throws DateTimeException if the text is not of this form. */
  def parseTimestamp(text: String, isZoned: Boolean): Long = {
    val end = if (isZoned) text.length - 1 else text.length
    if (isZoned && (end < 0 || text.charAt(end) != 'Z')) TimeText.fail(text)
    val at = text.indexOf(separator.toInt)
    if (at < 0) TimeText.fail(text)
    val days = TimeText.parseDate(text.substring(0, at))
    Math.addExact(
      Math.multiplyExact(days.toLong, TimeText.MicrosPerDay),
      TimeText.parseMicrosOfDay(text, at + 1, end, isIso))
  }

  def timestamp(micros: Long, isZoned: Boolean, out: ByteSink): Unit = {
    TimeText.date(Math.floorDiv(micros, TimeText.MicrosPerDay).toInt, out)
    out.byte(separator)
    TimeText.timeOfDay(Math.floorMod(micros, TimeText.MicrosPerDay), out)
    if (isZoned) out.byte('Z')
  }
}

object TimeText {
  private final val MicrosPerDay = 86400000000L

  def fail(text: String): Nothing =
    throw new DateTimeException(s"'$text' is not of the expected form")

  /** Days since 1970. */
  def parseDate(text: String): Int =
    if (text.length == 10 && text.charAt(4) == '-' && text.charAt(7) == '-')
      LocalDate.of(digits(text, 0, 4), digits(text, 5, 7), digits(text, 8, 10)).toEpochDay.toInt
    else Math.toIntExact(LocalDate.parse(text).toEpochDay)

  /** Milliseconds of the day. */
  def parseTime(text: String): Int =
    (parseMicrosOfDay(text, 0, text.length, optionalSeconds = false) / 1000).toInt

  private def parseMicrosOfDay(
      text: String,
      from: Int,
      end: Int,
      optionalSeconds: Boolean): Long = {
    val length = end - from
    if (length < 5 || text.charAt(from + 2) != ':') fail(text)
    val minutes = within(digits(text, from, from + 2), 23, text) * 60L +
      within(digits(text, from + 3, from + 5), 59, text)
    if (length == 5 && optionalSeconds) minutes * 60000000L
    else {
      if (length < 8 || text.charAt(from + 5) != ':') fail(text)
      val seconds = minutes * 60 + within(digits(text, from + 6, from + 8), 59, text)
      seconds * 1000000L + (if (length == 8) 0 else micros(text, from + 8, end))
    }
  }

  /** The fraction of a second, from its point on, truncated to microseconds. */
  private def micros(text: String, from: Int, end: Int): Int = {
    val count = end - from - 1
    if (text.charAt(from) != '.' || count < 1 || count > 9) fail(text)
    var value = 0
    var i = 0
    while (i < 6) {
      value = value * 10 + (if (i < count) digits(text, from + 1 + i, from + 2 + i) else 0)
      i += 1
    }
    while (i < count) {
      digits(text, from + 1 + i, from + 2 + i)
      i += 1
    }
    value
  }

  private def within(value: Int, most: Int, text: String): Int =
    if (value <= most) value else fail(text)

  private def digits(text: String, from: Int, until: Int): Int = {
    var value = 0
    var i = from
    while (i < until) {
      val digit = text.charAt(i) - '0'
      if (digit < 0 || digit > 9) fail(text)
      value = value * 10 + digit
      i += 1
    }
    value
  }

  /** Microseconds since 1970 of ISO text with an offset, as in Debezium's zoned types and Avro strings. */
  def parseInstant(text: String): Long =
    DateTimeUtils.instantToMicros(OffsetDateTime.parse(text).toInstant)

  /** Microseconds since 1970, in UTC, of ISO text without an offset. */
  def parseLocal(text: String): Long =
    DateTimeUtils.instantToMicros(LocalDateTime.parse(text).toInstant(ZoneOffset.UTC))

  def date(days: Int, out: ByteSink): Unit = {
    val date = LocalDate.ofEpochDay(days.toLong)
    if (date.getYear < 0 || date.getYear > 9999) out.ascii(date.toString)
    else {
      out.padded(date.getYear, 4).byte('-')
      out.padded(date.getMonthValue, 2).byte('-')
      out.padded(date.getDayOfMonth, 2)
    }
  }

  def time(millis: Int, out: ByteSink): Unit = timeOfDay(millis * 1000L, out)

  private def timeOfDay(micros: Long, out: ByteSink): Unit = {
    val seconds = (micros / 1000000).toInt
    out.padded(seconds / 3600, 2).byte(':')
    out.padded(seconds / 60 % 60, 2).byte(':')
    out.padded(seconds % 60, 2)
    var fraction = (micros % 1000000).toInt
    if (fraction > 0) {
      var width = 6
      while (fraction % 10 == 0) {
        fraction /= 10
        width -= 1
      }
      out.byte('.').padded(fraction, width)
    }
  }
}

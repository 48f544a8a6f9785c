package org.apache.spark.sql.rejoin.functions

import java.math.{BigDecimal => JavaDecimal, RoundingMode}
import java.util.Locale

import org.apache.spark.unsafe.types.UTF8String

/** Functions of numbers with Flink's results: Java's `Math` and not `StrictMath`, nothing is NULL. */
object Numbers {
  private final val Octets = 4

  def cot(x: Double): Double = 1.0 / Math.tan(x)

  def log(base: Double, x: Double): Double = Math.log(x) / Math.log(base)

  def log2(x: Double): Double = Math.log(x) / Math.log(2)

  /** A value that is not finite stays as it is. */
  def truncateDouble(x: Double, places: Int): Double =
    if (x.isNaN || x.isInfinite) x else truncated(JavaDecimal.valueOf(x), places).doubleValue

  def truncateFloat(x: Float, places: Int): Float =
    if (x.isNaN || x.isInfinite) x else truncated(new JavaDecimal(x.toString), places).floatValue

  def truncateLong(x: Long, places: Int): Long = truncated(JavaDecimal.valueOf(x), places).longValue

  private def truncated(x: JavaDecimal, places: Int): JavaDecimal =
    if (places >= x.scale) x
    else x.movePointRight(places).setScale(0, RoundingMode.DOWN).movePointLeft(places)

  def bin(x: Long): UTF8String = UTF8String.fromString(java.lang.Long.toBinaryString(x))

  def hexOfNumber(x: Long): UTF8String =
    UTF8String.fromString(java.lang.Long.toHexString(x).toUpperCase(Locale.ROOT))

  /** The number of an IPv4 address of one to four parts, the last of which fills what is left; else NULL. */
  def inetAton(address: UTF8String): java.lang.Long = {
    val parts = address.toString.split("\\.", -1)
    val numbers = parts.map(_.toLongOption.filter(_ >= 0))
    if (parts.length > Octets || numbers.exists(_.isEmpty) || parts.exists(_.exists(!_.isDigit))) null
    else {
      val values = numbers.map(_.get)
      val last = 1L << (8 * (Octets + 1 - values.length))
      if (values.init.exists(_ > 255) || values.last >= last) null
      else values.init.foldLeft(0L)((sum, part) => (sum << 8) + part) * last + values.last
    }
  }

  /** The IPv4 address of a number; NULL of a number that has none. */
  def inetNtoa(number: Long): UTF8String =
    if (number < 0 || number > 0xffffffffL) null
    else UTF8String.fromString((Octets - 1 to 0 by -1).map(i => (number >> (8 * i)) & 255).mkString("."))
}

package rejoin.core.machine

import java.math.{BigDecimal => JavaDecimal, BigInteger, RoundingMode}

import rejoin.core.row.{CellReader, CellWriter}

/** COUNT, SUM or AVG of one group: what is kept of the values that were added and taken away.
  *
  * Results are Flink's: integers wrap in the result's type, averages of integers truncate, the sum of no
  * value is NULL.
  */
sealed trait Accumulator {

  /** Takes in a value, or takes it back where `sign` is -1; COUNT looks at none. */
  def change(value: Number, sign: Int): Unit

  /** As exact as it is kept: its type's range is for the caller to apply. */
  def result: Number
  def reset(): Unit
  def read(in: CellReader): Unit
  def write(out: CellWriter): Unit
}

object Accumulator {
  def counting: Accumulator = new Counting

  def ofIntegers(isAverage: Boolean): Accumulator = new IntegralSum(isAverage)

  /** @param isFloat
    *   whether the values are FLOATs rather than DOUBLEs
    */
  def ofFloats(isAverage: Boolean, isFloat: Boolean): Accumulator = new FloatingSum(isAverage, isFloat)

  /** @param scale
    *   of the values; `precision` and `resultScale` are those of the result
    */
  def ofDecimals(isAverage: Boolean, scale: Int, precision: Int, resultScale: Int): Accumulator =
    new DecimalSum(isAverage, scale, precision, resultScale)
}

private final class Counting extends Accumulator {
  private var count = 0L

  def change(value: Number, sign: Int): Unit = count += sign
  def result: Number = count
  def reset(): Unit = count = 0L
  def read(in: CellReader): Unit = count = in.signed()
  def write(out: CellWriter): Unit = out.signed(count)
}

/** The sum wraps as a BIGINT, and with it in every narrower type. */
private final class IntegralSum(isAverage: Boolean) extends Accumulator {
  private var count = 0L
  private var sum = 0L

  def change(value: Number, sign: Int): Unit = {
    count += sign
    sum += sign * value.longValue
  }

  def result: Number =
    if (count == 0) null
    else if (isAverage) sum / count
    else sum

  def reset(): Unit = {
    count = 0L
    sum = 0L
  }

  def read(in: CellReader): Unit = {
    count = in.signed()
    sum = in.signed()
  }

  def write(out: CellWriter): Unit = out.signed(count).signed(sum)
}

/** A sum of FLOATs is rounded to FLOAT after every step, an average of them is kept in DOUBLE. What rounding
  * leaves behind goes with the last value.
  */
private final class FloatingSum(isAverage: Boolean, isFloat: Boolean) extends Accumulator {
  private val rounds = isFloat && !isAverage
  private var count = 0L
  private var sum = 0.0

  def change(value: Number, sign: Int): Unit = {
    count += sign
    val exact = sum + sign * value.doubleValue
    sum = if (count == 0) 0.0 else if (rounds) exact.toFloat.toDouble else exact
  }

  def result: Number =
    if (count == 0) null
    else if (isAverage) sum / count
    else sum

  def reset(): Unit = {
    count = 0L
    sum = 0.0
  }

  def read(in: CellReader): Unit = {
    count = in.signed()
    sum = java.lang.Double.longBitsToDouble(in.varLong())
  }

  def write(out: CellWriter): Unit = out.signed(count).varLong(java.lang.Double.doubleToRawLongBits(sum))
}

/** Exact, without bound; a result that its type cannot hold is NULL. */
private final class DecimalSum(isAverage: Boolean, scale: Int, precision: Int, resultScale: Int) extends Accumulator {
  private var count = 0L
  private var sum = JavaDecimal.ZERO

  def change(value: Number, sign: Int): Unit = {
    count += sign
    val number = value.asInstanceOf[JavaDecimal]
    sum = if (sign > 0) sum.add(number) else sum.subtract(number)
  }

  def result: Number =
    if (count == 0) null
    else {
      val exact =
        if (isAverage) sum.divide(JavaDecimal.valueOf(count), resultScale, RoundingMode.HALF_UP)
        else sum.setScale(resultScale, RoundingMode.HALF_UP)
      if (exact.precision > precision) null else exact
    }

  def reset(): Unit = {
    count = 0L
    sum = JavaDecimal.ZERO
  }

  def read(in: CellReader): Unit = {
    count = in.signed()
    sum = new JavaDecimal(new BigInteger(in.blob()), scale)
  }

  def write(out: CellWriter): Unit = out.signed(count).blob(sum.setScale(scale).unscaledValue.toByteArray)
}

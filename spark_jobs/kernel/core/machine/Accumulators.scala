package rejoin.core.machine

import java.math.{BigDecimal => JavaDecimal, BigInteger, RoundingMode}

import rejoin.core.row.{CellReader, CellWriter}

/** COUNT, SUM, AVG or a variance of one group: what is kept of the values that were added and taken away.
  *
  * Results are Flink's: integers wrap in the result's type, averages of integers truncate, the sum of no
  * value is NULL.
  */
sealed abstract class Accumulator {
  protected var count = 0L

  /** Takes in a value, or takes it back where `sign` is -1; COUNT looks at none. */
  def change(value: Number, sign: Int): Unit

  /** As exact as it is kept: its type's range is for the caller to apply. */
  def result: Number
  def reset(): Unit = count = 0L
  def read(in: CellReader): Unit = count = in.signed()
  def write(out: CellWriter): Unit = out.signed(count)
}

final class Counting extends Accumulator {
  def change(value: Number, sign: Int): Unit = count += sign
  def result: Number = count
}

/** The sum wraps as a BIGINT, and with it in every narrower type. */
final class IntegralSum(isAverage: Boolean) extends Accumulator {
  private var sum = 0L

  def change(value: Number, sign: Int): Unit = {
    count += sign
    sum += sign * value.longValue
  }

  def result: Number =
    if (count == 0) null
    else if (isAverage) sum / count
    else sum

  override def reset(): Unit = {
    super.reset()
    sum = 0L
  }

  override def read(in: CellReader): Unit = {
    super.read(in)
    sum = in.signed()
  }

  override def write(out: CellWriter): Unit = out.signed(count).signed(sum)
}

/** A sum of FLOATs is rounded to FLOAT after every step, an average of them is kept in DOUBLE. What rounding
  * leaves behind goes with the last value.
  *
  * @param isFloat
  *   whether the values are FLOATs rather than DOUBLEs
  */
final class FloatingSum(isAverage: Boolean, isFloat: Boolean) extends Accumulator {
  private val rounds = isFloat && !isAverage
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

  override def reset(): Unit = {
    super.reset()
    sum = 0.0
  }

  override def read(in: CellReader): Unit = {
    super.read(in)
    sum = java.lang.Double.longBitsToDouble(in.varLong())
  }

  override def write(out: CellWriter): Unit = out.signed(count).varLong(java.lang.Double.doubleToRawLongBits(sum))
}

/** Welford's sum of the squared distances from the mean, in the steps that Flink takes. Rounding may leave a sum
  * below 0, whose result is NULL.
  *
  * @param isSample
  *   whether the sum is divided by one less than the number of values
  * @param isDeviation
  *   whether the result is the root of the variance
  */
final class Variance(isSample: Boolean, isDeviation: Boolean) extends Accumulator {
  private var mean = 0.0
  private var squares = 0.0

  def change(value: Number, sign: Int): Unit = {
    count += sign
    if (count == 0) forget()
    else if (count > 0) {
      val distance = value.doubleValue - mean
      mean += sign * distance / count
      squares += sign * distance * (value.doubleValue - mean)
    }
  }

  def result: Number = {
    val divisor = if (isSample) count - 1 else count
    if (divisor <= 0 || squares < 0) null
    else if (isDeviation) math.sqrt(squares / divisor)
    else squares / divisor
  }

  private def forget(): Unit = {
    mean = 0.0
    squares = 0.0
  }

  override def reset(): Unit = {
    super.reset()
    forget()
  }

  override def read(in: CellReader): Unit = {
    super.read(in)
    mean = java.lang.Double.longBitsToDouble(in.varLong())
    squares = java.lang.Double.longBitsToDouble(in.varLong())
  }

  override def write(out: CellWriter): Unit =
    Seq(mean, squares).foldLeft(out.signed(count)) { (written, part) =>
      written.varLong(java.lang.Double.doubleToRawLongBits(part))
    }
}

/** Exact, without bound; a result that its type cannot hold is NULL.
  *
  * @param scale
  *   of the values; `precision` and `resultScale` are those of the result
  */
final class DecimalSum(isAverage: Boolean, scale: Int, precision: Int, resultScale: Int) extends Accumulator {
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

  override def reset(): Unit = {
    super.reset()
    sum = JavaDecimal.ZERO
  }

  override def read(in: CellReader): Unit = {
    super.read(in)
    sum = new JavaDecimal(new BigInteger(in.blob()), scale)
  }

  override def write(out: CellWriter): Unit = out.signed(count).blob(sum.setScale(scale).unscaledValue.toByteArray)
}

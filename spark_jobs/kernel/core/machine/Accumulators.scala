package rejoin.core.machine

import java.math.{BigDecimal => JavaDecimal, BigInteger, RoundingMode}

import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.SqlTypes
import rejoin.core.row.{CellReader, CellWriter}

/** COUNT, SUM or AVG of one group: what is kept of the values that were added and taken away.
  *
  * Results are Flink's: integers wrap in the result's type, averages of integers truncate, the sum of no
  * value is NULL.
  */
sealed trait Accumulator {

  /** Takes in a value, or takes it back where `sign` is -1. */
  def change(value: Any, sign: Int): Unit
  def result: Any
  def reset(): Unit
  def read(in: CellReader): Unit
  def write(out: CellWriter): Unit
}

object Accumulator {

  /** @param argument
    *   the type of the values; null for COUNT
    */
  def of(call: AggregateCallSpec, argument: DataType): Accumulator = {
    val isAverage = call.function == "AVG"
    (call.function, argument) match {
      case ("COUNT", _) => new Counting
      case ("SUM" | "AVG", ByteType | ShortType | IntegerType | LongType) => new IntegralSum(isAverage, call.dataType)
      case ("SUM" | "AVG", FloatType | DoubleType) =>
        new FloatingSum(isAverage, isFloat = argument == FloatType, call.dataType)
      case ("SUM" | "AVG", d: DecimalType) => new DecimalSum(isAverage, d.scale, call.dataType)
      case (function, other) =>
        throw new IllegalArgumentException(s"$function of ${SqlTypes.text(other)} is not defined")
    }
  }
}

private final class Counting extends Accumulator {
  private var count = 0L

  def change(value: Any, sign: Int): Unit = count += sign
  def result: Any = count
  def reset(): Unit = count = 0L
  def read(in: CellReader): Unit = count = in.signed()
  def write(out: CellWriter): Unit = out.signed(count)
}

/** The sum wraps as a BIGINT, and with it in every narrower type. */
private final class IntegralSum(isAverage: Boolean, dataType: DataType) extends Accumulator {
  private var count = 0L
  private var sum = 0L

  def change(value: Any, sign: Int): Unit = {
    count += sign
    sum += sign * value.asInstanceOf[Number].longValue
  }

  def result: Any =
    if (count == 0) null
    else {
      val exact = if (isAverage) sum / count else sum
      dataType match {
        case ByteType => exact.toByte
        case ShortType => exact.toShort
        case IntegerType => exact.toInt
        case LongType => exact
        case other => throw new IllegalArgumentException(s"no sum of integers is of type ${SqlTypes.text(other)}")
      }
    }

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
private final class FloatingSum(isAverage: Boolean, isFloat: Boolean, dataType: DataType) extends Accumulator {
  private val rounds = isFloat && !isAverage
  private var count = 0L
  private var sum = 0.0

  def change(value: Any, sign: Int): Unit = {
    count += sign
    val exact = sum + sign * value.asInstanceOf[Number].doubleValue
    sum = if (count == 0) 0.0 else if (rounds) exact.toFloat.toDouble else exact
  }

  def result: Any =
    if (count == 0) null
    else {
      val exact = if (isAverage) sum / count else sum
      if (dataType == FloatType) exact.toFloat else exact
    }

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
private final class DecimalSum(isAverage: Boolean, scale: Int, dataType: DataType) extends Accumulator {
  private val wanted = dataType.asInstanceOf[DecimalType]
  private var count = 0L
  private var sum = JavaDecimal.ZERO

  def change(value: Any, sign: Int): Unit = {
    count += sign
    val number = value.asInstanceOf[Decimal].toJavaBigDecimal
    sum = if (sign > 0) sum.add(number) else sum.subtract(number)
  }

  def result: Any =
    if (count == 0) null
    else {
      val exact =
        if (isAverage) sum.divide(JavaDecimal.valueOf(count), wanted.scale, RoundingMode.HALF_UP)
        else sum.setScale(wanted.scale, RoundingMode.HALF_UP)
      if (exact.precision > wanted.precision) null else Decimal(BigDecimal(exact), wanted.precision, wanted.scale)
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

package org.apache.spark.sql.rejoin.columns

import java.math.{BigDecimal => JavaDecimal, RoundingMode}

import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, JoinedRow}
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.SqlTypes
import rejoin.core.machine.{Accumulator, AggregateCallSpec, AggregateColumns, Counting, DecimalSum, FloatingSum,
  IntegralSum, Variance}

/** The columns of an aggregate by their types. Results are of Flink's types: integers wrap in the result's. */
final class TypedAggregate(calls: Seq[AggregateCallSpec], types: AggregateTypes) extends AggregateColumns {
  private val input = new UnsafeRow(types.input.size)
  private val groupKey = new UnsafeRow(types.key.size)
  private val converted = new GenericInternalRow(calls.size)
  private val joined = new JoinedRow
  private val bytes = types.input.map(column => ColumnBytes.of(column.dataType)).toArray
  private val results = types.results.toArray
  private val project = UnsafeProjection.create(
    (types.key.map(_.dataType) ++ types.results).zipWithIndex.map { case (dataType, i) =>
      BoundReference(i, dataType, nullable = true)
    })

  def accumulator(call: Int): Accumulator = {
    val function = calls(call).function
    val isAverage = function == "AVG"
    def undefined(of: DataType) =
      throw new IllegalArgumentException(s"$function of ${SqlTypes.text(of)} is not defined")
    (function, calls(call).argument.map(types.input(_).dataType).orNull) match {
      case ("MIN" | "MAX", of) if !ColumnBytes.isOrdered(of) => undefined(of)
      case ("COUNT" | "MIN" | "MAX" | "FIRST_VALUE" | "LAST_VALUE" | "ARRAY_AGG" | "LISTAGG", _) => new Counting
      case ("STDDEV_POP" | "STDDEV_SAMP" | "VAR_POP" | "VAR_SAMP", _: NumericType) =>
        new Variance(function.endsWith("SAMP"), function.startsWith("STDDEV"))
      case ("SUM" | "AVG", _: IntegralType) => new IntegralSum(isAverage)
      case ("SUM" | "AVG", of @ (FloatType | DoubleType)) => new FloatingSum(isAverage, of == FloatType)
      case ("SUM" | "AVG", of: DecimalType) =>
        val result = results(call).asInstanceOf[DecimalType]
        new DecimalSum(isAverage, of.scale, result.precision, result.scale)
      case (_, of) => undefined(of)
    }
  }

  def point(row: Array[Byte]): Unit = input.pointTo(row, row.length)

  def isNull(column: Int): Boolean = input.isNullAt(column)

  def isTrue(column: Int): Boolean = !input.isNullAt(column) && input.getBoolean(column)

  def number(column: Int): Number = raw(column) match {
    case decimal: Decimal => decimal.toJavaBigDecimal
    case number: Number => number
    case _ => null
  }

  def sortable(column: Int): Array[Byte] = bytes(column).encode(raw(column))

  def value(column: Int, sortable: Array[Byte]): Any = if (sortable == null) null else bytes(column).decode(sortable)

  def array(column: Int, sortable: Iterable[Array[Byte]]): Any =
    new GenericArrayData(sortable.iterator.map(value(column, _)).toArray[Any])

  def joined(sortable: Iterable[Array[Byte]], separator: String): Any =
    UTF8String.concatWs(UTF8String.fromString(separator), sortable.iterator.map(UTF8String.fromBytes).toArray: _*)

  def pack(key: Array[Byte], values: Array[Any]): Array[Byte] = {
    groupKey.pointTo(key, key.length)
    var i = 0
    while (i < values.length) {
      converted.update(i, convert(values(i), results(i)))
      i += 1
    }
    Packed(project(joined(groupKey, converted)))
  }

  private def raw(column: Int): Any = input.get(column, types.input(column).dataType)

  /** What an accumulator computed, in the result's type; values of the column itself have it already. */
  private def convert(value: Any, dataType: DataType): Any = (value, dataType) match {
    case (sum: java.lang.Long, ByteType) => sum.toByte
    case (sum: java.lang.Long, ShortType) => sum.toShort
    case (sum: java.lang.Long, IntegerType) => sum.toInt
    case (real: java.lang.Double, ByteType) => real.toByte
    case (real: java.lang.Double, ShortType) => real.toShort
    case (real: java.lang.Double, IntegerType) => real.toInt
    case (real: java.lang.Double, LongType) => real.toLong
    case (real: java.lang.Double, FloatType) => real.toFloat
    case (real: java.lang.Double, decimal: DecimalType) => rounded(real, decimal)
    case (sum: JavaDecimal, decimal: DecimalType) => Decimal(BigDecimal(sum), decimal.precision, decimal.scale)
    case (other, _) => other
  }

  private def rounded(value: Double, decimal: DecimalType): Decimal = {
    val exact = JavaDecimal.valueOf(value).setScale(decimal.scale, RoundingMode.HALF_UP)
    if (exact.precision > decimal.precision) null else Decimal(BigDecimal(exact), decimal.precision, decimal.scale)
  }
}

/** @param key
  *   the columns that are grouped by; `results` has the type of each call
  */
final case class AggregateTypes(input: StructType, key: StructType, results: Seq[DataType])

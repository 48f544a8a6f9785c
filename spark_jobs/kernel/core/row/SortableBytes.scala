package rejoin.core.row

import java.math.BigInteger
import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.SqlTypes
import org.apache.spark.sql.rejoin.run.Packed

/** Column values as bytes that sort, unsigned, as the values do; part of the state format. */
trait SortableBytes {
  def encode(value: Any): Array[Byte]
  def decode(bytes: Array[Byte]): Any
}

object SortableBytes {
  private val DecimalBytes = 16

  def of(dataType: DataType): SortableBytes = dataType match {
    case BooleanType => codec[Boolean](b => Array[Byte](if (b) 1 else 0), _(0) == 1)
    case ByteType => codec[Byte](v => long(v.toLong), toLong(_).toByte)
    case ShortType => codec[Short](v => long(v.toLong), toLong(_).toShort)
    case IntegerType | DateType => codec[Int](v => long(v.toLong), toLong(_).toInt)
    case LongType | TimestampType | TimestampNTZType => codec[Long](long, toLong)
    case FloatType => codec[Float](v => double(v.toDouble), toDouble(_).toFloat)
    case DoubleType => codec[Double](double, toDouble)
    case StringType => codec[UTF8String](_.getBytes, UTF8String.fromBytes(_))
    case d: DecimalType => codec[Decimal](decimal(_, d), toDecimal(_, d))
    case other => new Unordered(other)
  }

  /** Whether MIN and MAX are defined. */
  def isOrdered(dataType: DataType): Boolean = !of(dataType).isInstanceOf[Unordered]

  private def codec[T](to: T => Array[Byte], from: Array[Byte] => T): SortableBytes = new SortableBytes {
    def encode(value: Any): Array[Byte] = to(value.asInstanceOf[T])
    def decode(bytes: Array[Byte]): Any = from(bytes)
  }

  private def long(value: Long): Array[Byte] = ByteBuffer.allocate(8).putLong(value ^ Long.MinValue).array

  private def toLong(bytes: Array[Byte]): Long = ByteBuffer.wrap(bytes).getLong ^ Long.MinValue

  /** Negative numbers descend in their bits; NaN comes last. */
  private def double(value: Double): Array[Byte] = {
    val bits = java.lang.Double.doubleToLongBits(value)
    long(if (bits < 0) bits ^ Long.MaxValue else bits)
  }

  private def toDouble(bytes: Array[Byte]): Double = {
    val bits = toLong(bytes)
    java.lang.Double.longBitsToDouble(if (bits < 0) bits ^ Long.MaxValue else bits)
  }

  private def decimal(value: Decimal, dataType: DecimalType): Array[Byte] = {
    val unscaled = value.toJavaBigDecimal.setScale(dataType.scale).unscaledValue.toByteArray
    val bytes = Array.fill[Byte](DecimalBytes)(if (unscaled(0) < 0) -1 else 0)
    System.arraycopy(unscaled, 0, bytes, DecimalBytes - unscaled.length, unscaled.length)
    bytes(0) = (bytes(0) ^ 0x80).toByte
    bytes
  }

  private def toDecimal(bytes: Array[Byte], dataType: DecimalType): Decimal = {
    val signed = bytes.clone()
    signed(0) = (signed(0) ^ 0x80).toByte
    val value = new java.math.BigDecimal(new BigInteger(signed), dataType.scale)
    Decimal(BigDecimal(value), dataType.precision, dataType.scale)
  }

  /** Types that are only told apart, by their packed form. */
  private final class Unordered(dataType: DataType) extends SortableBytes {
    private val project = UnsafeProjection.create(Seq(BoundReference(0, dataType, nullable = true)))

    def encode(value: Any): Array[Byte] = Packed(project(new GenericInternalRow(Array(value))))

    def decode(bytes: Array[Byte]): Any =
      throw new UnsupportedOperationException(s"${SqlTypes.text(dataType)} values have no order")
  }
}

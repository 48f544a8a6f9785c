package org.apache.spark.sql.rejoin.columns

import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import rejoin.core.row.SortableBytes

/** Values of one column type as the bytes by which an aggregate counts them; part of the state format. */
trait ColumnBytes {
  def encode(value: Any): Array[Byte]
  def decode(bytes: Array[Byte]): Any
}

object ColumnBytes {
  import SortableBytes._

  def of(dataType: DataType): ColumnBytes = dataType match {
    case BooleanType => codec[Boolean](b => Array[Byte](if (b) 1 else 0), _(0) == 1)
    case ByteType => codec[Byte](v => ofLong(v.toLong), toLong(_).toByte)
    case ShortType => codec[Short](v => ofLong(v.toLong), toLong(_).toShort)
    case IntegerType | DateType => codec[Int](v => ofLong(v.toLong), toLong(_).toInt)
    case LongType | TimestampType | TimestampNTZType => codec[Long](ofLong, toLong)
    case FloatType => codec[Float](v => ofDouble(v.toDouble), toDouble(_).toFloat)
    case DoubleType => codec[Double](ofDouble, toDouble)
    case StringType => codec[UTF8String](_.getBytes, UTF8String.fromBytes(_))
    case d: DecimalType =>
      codec[Decimal](
        value => ofDecimal(value.toJavaBigDecimal, d.scale),
        bytes => Decimal(BigDecimal(toDecimal(bytes, d.scale)), d.precision, d.scale))
    case other => new Unordered(other)
  }

  /** Whether MIN and MAX are defined. */
  def isOrdered(dataType: DataType): Boolean = !of(dataType).isInstanceOf[Unordered]

  private def codec[T](to: T => Array[Byte], from: Array[Byte] => T): ColumnBytes = new ColumnBytes {
    def encode(value: Any): Array[Byte] = to(value.asInstanceOf[T])
    def decode(bytes: Array[Byte]): Any = from(bytes)
  }

  /** Types that are only told apart, by their packed form. */
  private final class Unordered(dataType: DataType) extends ColumnBytes {
    private val project = UnsafeProjection.create(Seq(BoundReference(0, dataType, nullable = true)))

    def encode(value: Any): Array[Byte] = Packed(project(new GenericInternalRow(Array(value))))

    def decode(bytes: Array[Byte]): Any = Packed.view(bytes, 1).get(0, dataType)
  }
}

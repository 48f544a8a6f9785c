package rejoin.core.row

import java.math.{BigDecimal, BigInteger}
import java.nio.ByteBuffer

/** Numbers as bytes that sort, unsigned, as the numbers do; part of the state format. */
object SortableBytes {
  private val DecimalBytes = 16

  def ofLong(value: Long): Array[Byte] = ByteBuffer.allocate(8).putLong(value ^ Long.MinValue).array

  def toLong(bytes: Array[Byte]): Long = ByteBuffer.wrap(bytes).getLong ^ Long.MinValue

  /** The bits of negative numbers grow as the numbers fall, hence they are inverted; NaN comes last. */
  def ofDouble(value: Double): Array[Byte] = {
    val bits = java.lang.Double.doubleToLongBits(value)
    ofLong(if (bits < 0) bits ^ Long.MaxValue else bits)
  }

  def toDouble(bytes: Array[Byte]): Double = {
    val bits = toLong(bytes)
    java.lang.Double.longBitsToDouble(if (bits < 0) bits ^ Long.MaxValue else bits)
  }

  def ofDecimal(value: BigDecimal, scale: Int): Array[Byte] = {
    val unscaled = value.setScale(scale).unscaledValue.toByteArray
    val bytes = Array.fill[Byte](DecimalBytes)(if (unscaled(0) < 0) -1 else 0)
    System.arraycopy(unscaled, 0, bytes, DecimalBytes - unscaled.length, unscaled.length)
    bytes(0) = (bytes(0) ^ 0x80).toByte
    bytes
  }

  def toDecimal(bytes: Array[Byte], scale: Int): BigDecimal = {
    val signed = bytes.clone()
    signed(0) = (signed(0) ^ 0x80).toByte
    new BigDecimal(new BigInteger(signed), scale)
  }
}

package org.apache.spark.sql.rejoin.format

import java.util

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A growing buffer that encoders write into; `reset` starts the next record in the same memory. */
final class ByteSink {
  private var bytes = new Array[Byte](512)
  private var size = 0

  def reset(): this.type = {
    size = 0
    this
  }

  /** A copy of what was written. */
  def result(): Array[Byte] = util.Arrays.copyOf(bytes, size)

  private def reserve(n: Int): Unit =
    if (size + n > bytes.length)
      bytes = util.Arrays.copyOf(bytes, math.max(bytes.length * 2, size + n))

  def byte(value: Int): this.type = {
    reserve(1)
    bytes(size) = value.toByte
    size += 1
    this
  }

  def byte(value: Char): this.type = byte(value.toInt)

  def write(value: Array[Byte]): this.type = {
    reserve(value.length)
    System.arraycopy(value, 0, bytes, size, value.length)
    size += value.length
    this
  }

  def write(text: UTF8String): this.type = {
    val length = text.numBytes
    reserve(length)
    text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + size)
    size += length
    this
  }

  def ascii(text: String): this.type = {
    val length = text.length
    reserve(length)
    var i = 0
    while (i < length) {
      bytes(size + i) = text.charAt(i).toByte
      i += 1
    }
    size += length
    this
  }

  /** Writes a non-negative number with leading zeros. */
  def padded(value: Int, width: Int): this.type = {
    reserve(width)
    var rest = value
    var i = size + width - 1
    while (i >= size) {
      bytes(i) = ('0' + rest % 10).toByte
      rest /= 10
      i -= 1
    }
    size += width
    this
  }

  def decimal(value: Long): this.type =
    if (value >= 0 && value < 10) byte('0' + value.toInt) else ascii(value.toString)

  /** Writes Avro's int or long. */
  def zigzag(value: Long): this.type = {
    reserve(10)
    var rest = (value << 1) ^ (value >> 63)
    while ((rest & ~0x7fL) != 0) {
      bytes(size) = ((rest & 0x7f) | 0x80).toByte
      size += 1
      rest >>>= 7
    }
    bytes(size) = rest.toByte
    size += 1
    this
  }

  def int32LittleEndian(value: Int): this.type =
    byte(value).byte(value >>> 8).byte(value >>> 16).byte(value >>> 24)

  def int64LittleEndian(value: Long): this.type =
    int32LittleEndian(value.toInt).int32LittleEndian((value >>> 32).toInt)
}

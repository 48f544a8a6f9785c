package org.apache.spark.sql.rejoin.format

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import rejoin.core.row.GrowingBytes

/** The bytes of a record's key or value, which encoders write one after the other. */
final class ByteSink extends GrowingBytes(512) {
  def byte(value: Char): this.type = byte(value.toInt)

  def write(text: UTF8String): this.type = {
    val length = text.numBytes
    reserve(length)
    text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + size)
    size += length
    this
  }

  /** Writes another's bytes behind their number. */
  def withLength(part: ByteSink): this.type = {
    varLong(part.size.toLong)
    reserve(part.size)
    System.arraycopy(part.bytes, 0, bytes, size, part.size)
    size += part.size
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

  def int32LittleEndian(value: Int): this.type =
    byte(value).byte(value >>> 8).byte(value >>> 16).byte(value >>> 24)

  def int64LittleEndian(value: Long): this.type =
    int32LittleEndian(value.toInt).int32LittleEndian((value >>> 32).toInt)
}

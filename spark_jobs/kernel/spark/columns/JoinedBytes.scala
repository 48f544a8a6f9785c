package org.apache.spark.sql.rejoin.columns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow, UnsafeRow}
import org.apache.spark.unsafe.Platform

/** Views packed left and right rows as one row, without copying; an absent side reads as NULLs. */
final class JoinedBytes(leftFields: Int, rightFields: Int) {
  private val left = new UnsafeRow(leftFields)
  private val right = new UnsafeRow(rightFields)
  private val noLeft = new GenericInternalRow(leftFields)
  private val noRight = new GenericInternalRow(rightFields)
  private val joined = new JoinedRow

  def apply(leftBytes: Array[Byte], rightBytes: Array[Byte]): InternalRow =
    joined(point(left, leftBytes, noLeft), point(right, rightBytes, noRight))

  private def point(row: UnsafeRow, bytes: Array[Byte], absent: InternalRow): InternalRow =
    if (bytes == null) absent
    else {
      row.pointTo(bytes, bytes.length)
      row
    }
}

object Packed {

  /** A view of packed bytes as a row, without a copy. */
  def view(bytes: Array[Byte], fields: Int): UnsafeRow = {
    val row = new UnsafeRow(fields)
    row.pointTo(bytes, bytes.length)
    row
  }

  /** The bytes of a row in an array of its own: `getBytes` may hand out the producer's buffer. */
  def apply(row: UnsafeRow): Array[Byte] = {
    val bytes = new Array[Byte](row.getSizeInBytes)
    val start = Platform.BYTE_ARRAY_OFFSET.toLong
    Platform.copyMemory(row.getBaseObject, row.getBaseOffset, bytes, start, bytes.length.toLong)
    bytes
  }
}

package org.apache.spark.sql.rejoin.format.protobuf

import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** The bytes of an encoded message, and how far they are read. */
private[protobuf] final class ProtobufInput(val bytes: Array[Byte], var at: Int, var end: Int) {
  import ProtobufInput._

  def varint(): Long = {
    var value = 0L
    var shift = 0
    var next = byte()
    while (next < 0 && shift < 63) {
      value |= (next & 0x7fL) << shift
      shift += 7
      next = byte()
    }
    if (next < 0) malformed("a number of more than ten bytes")
    value | next.toLong << shift
  }

  def zigzag(): Long = {
    val value = varint()
    value >>> 1 ^ -(value & 1)
  }

  def fixed32(): Int = {
    require(4)
    at += 4
    bytes(at - 4) & 0xff | (bytes(at - 3) & 0xff) << 8 | (bytes(at - 2) & 0xff) << 16 | bytes(at - 1) << 24
  }

  def fixed64(): Long = (fixed32() & 0xffffffffL) | fixed32().toLong << 32

  /** The length of what follows, all of which is there. */
  def length(): Int = {
    val found = varint()
    if (found < 0 || found > end - at) malformed(s"$found bytes of a field, but ${end - at} are left")
    found.toInt
  }

  /** Runs `read` with no more to read than the part whose length comes first, and goes on behind it. */
  def part(read: => Unit): Unit = {
    val outer = end
    val size = length() // moves `at`
    end = at + size
    read
    at = end
    end = outer
  }

  /** Skips a field; a group up to its end, with what is nested in it. */
  def skip(tag: Int): Unit = {
    var depth = skipOne(tag)
    while (depth > 0) depth += skipOne(this.tag())
  }

  /** The number of a field and its wire type. */
  def tag(): Int = {
    val found = varint()
    if (found >>> 3 == 0 || found >>> 3 > MostNumber) malformed(s"no field has the number ${found >>> 3}")
    found.toInt
  }

  /** By how much the field changes the depth of groups. */
  private def skipOne(tag: Int): Int = {
    tag & 7 match {
      case Varint => varint()
      case Fixed64 => require(8); at += 8
      case Bytes =>
        val size = length() // moves `at`
        at += size
      case Fixed32 => require(4); at += 4
      case StartGroup | EndGroup => ()
      case wire => malformed(s"no field has the wire type $wire")
    }
    if ((tag & 7) == StartGroup) 1 else if ((tag & 7) == EndGroup) -1 else 0
  }

  private def byte(): Byte = {
    require(1)
    at += 1
    bytes(at - 1)
  }

  private def require(count: Int): Unit = if (end - at < count) malformed("the message is cut off")
}

private[protobuf] object ProtobufInput {
  final val Varint = 0
  final val Fixed64 = 1
  final val Bytes = 2
  final val StartGroup = 3
  final val EndGroup = 4
  final val Fixed32 = 5
  private final val MostNumber = (1 << 29) - 1

  def malformed(why: String): Nothing = throw new BadRecord(Reason.ProtobufMalformed, why)
}

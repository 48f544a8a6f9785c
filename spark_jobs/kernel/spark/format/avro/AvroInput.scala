package org.apache.spark.sql.rejoin.format.avro

import java.util

import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** A cursor over Avro binary data. It does not check each byte: reading past the end throws an
  * ArrayIndexOutOfBoundsException, which the decoder turns into a [[BadRecord]].
  */
final class AvroInput {
  var bytes: Array[Byte] = _
  var at: Int = 0
  private var depth = 0

  def open(bytes: Array[Byte], at: Int): this.type = {
    this.bytes = bytes
    this.at = at
    depth = 0
    this
  }

  /** Begins a record that may contain itself; the depth is limited so that the stack does not overflow. */
  def enter(): Unit = {
    depth += 1
    if (depth > AvroInput.MostDepth) AvroInput.fail(s"records within records, more than ${AvroInput.MostDepth} deep")
  }

  def leave(): Unit = depth -= 1

  /** An int or long, both zigzag and variable-length. */
  def long(): Long = {
    val buffer = bytes
    var i = at
    var part = buffer(i).toInt
    i += 1
    var raw = (part & 0x7f).toLong
    var shift = 7
    while (part < 0) {
      if (shift > 63) AvroInput.fail("a number of more than 10 bytes")
      part = buffer(i).toInt
      i += 1
      raw |= (part & 0x7f).toLong << shift
      shift += 7
    }
    at = i
    (raw >>> 1) ^ -(raw & 1)
  }

  def int(): Int = {
    val value = long()
    if (value.toInt != value) AvroInput.fail(s"$value in place of an int")
    value.toInt
  }

  def boolean(): Boolean = {
    val value = bytes(at)
    at += 1
    value match {
      case 0 => false
      case 1 => true
      case other => AvroInput.fail(s"$other in place of a boolean")
    }
  }

  def float(): Float = {
    advance(4)
    java.lang.Float.intBitsToFloat(littleEndian(at - 4))
  }

  def double(): Double = {
    advance(8)
    java.lang.Double.longBitsToDouble(
      (littleEndian(at - 8) & 0xffffffffL) | (littleEndian(at - 4).toLong << 32))
  }

  private def littleEndian(i: Int): Int =
    (bytes(i) & 0xff) | (bytes(i + 1) & 0xff) << 8 |
      (bytes(i + 2) & 0xff) << 16 | bytes(i + 3) << 24

  /** Length of the bytes or text that follow; checks that there are as many. */
  def length(): Int = {
    val length = long()
    if (length < 0 || length > bytes.length - at) AvroInput.fail(s"a length of $length")
    length.toInt
  }

  /** Skips n bytes. */
  def advance(n: Int): Unit = {
    if (n > bytes.length - at) AvroInput.fail(s"$n bytes expected, ${bytes.length - at} left")
    at += n
  }

  /** A copy of the next bytes. */
  def slice(length: Int): Array[Byte] = {
    val from = at
    advance(length)
    util.Arrays.copyOfRange(bytes, from, from + length)
  }

  /** The text that follows, as a view of the record's own bytes. */
  def text(): UTF8String = {
    val size = length()
    val from = at
    advance(size)
    UTF8String.fromBytes(bytes, from, size)
  }

  def startsWith(form: Array[Byte]): Boolean =
    form.length <= bytes.length - at && util.Arrays.equals(bytes, at, at + form.length, form, 0, form.length)

  /** Number of items in the next block of an array or map, 0 at its end; an item takes at least one byte. */
  def block(): Long = {
    val written = long()
    if (written < 0) long()
    val count = Math.abs(written)
    if (count < 0 || count > bytes.length - at) AvroInput.fail(s"a block of $written items")
    count
  }
}

object AvroInput {
  private final val MostDepth = 1000

  def fail(message: String): Nothing =
    throw new BadRecord(Reason.AvroMalformed, s"not Avro: $message")
}

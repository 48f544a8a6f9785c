package rejoin.core.row

import java.io.OutputStream
import java.util

/** A growing array to append to; `reset` starts the next value in the same memory. */
abstract class GrowingBytes(initialSize: Int) {
  protected final var bytes = new Array[Byte](initialSize)
  protected final var size = 0

  def reset(): this.type = {
    size = 0
    this
  }

  /** A copy of what was written. */
  def result(): Array[Byte] = util.Arrays.copyOf(bytes, size)

  def writeTo(out: OutputStream): Unit = out.write(bytes, 0, size)

  protected final def reserve(n: Int): Unit =
    if (size + n > bytes.length) bytes = util.Arrays.copyOf(bytes, math.max(bytes.length * 2, size + n))

  def byte(value: Int): this.type = {
    reserve(1)
    bytes(size) = value.toByte
    size += 1
    this
  }

  def write(value: Array[Byte]): this.type = {
    reserve(value.length)
    System.arraycopy(value, 0, bytes, size, value.length)
    size += value.length
    this
  }

  /** Unsigned LEB128. */
  def varLong(value: Long): this.type = {
    reserve(10)
    var rest = value
    while ((rest & ~0x7fL) != 0) {
      bytes(size) = ((rest & 0x7f) | 0x80).toByte
      size += 1
      rest >>>= 7
    }
    bytes(size) = rest.toByte
    size += 1
    this
  }

  /** Zigzag, so that small negative numbers stay small: Avro's int and long. */
  def signed(value: Long): this.type = varLong((value << 1) ^ (value >> 63))
}

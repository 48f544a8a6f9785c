package rejoin.core.row

import java.util

/** State values are written by hand: a format version first, then variable-length integers and
  * length-prefixed bytes. No encoder of a class stands between a checkpoint and its reader.
  */
object Codec {
  val Version: Byte = 1
}

/** Writes the value of a cell. */
final class CellWriter extends GrowingBytes(256) {
  def length: Int = size

  def blob(value: Array[Byte]): this.type = varLong(value.length.toLong).write(value)

  /** Null differs from empty. */
  def nullable(value: Array[Byte]): this.type =
    if (value == null) byte(0) else byte(1).blob(value)
}

/** Reads what [[CellWriter]] wrote. */
final class CellReader(bytes: Array[Byte]) {
  private var at = 0

  def hasMore: Boolean = at < bytes.length

  def byte(): Int = {
    val value = bytes(at)
    at += 1
    value & 0xff
  }

  def varLong(): Long = {
    var shift = 0
    var value = 0L
    var part = byte()
    while ((part & 0x80) != 0) {
      value |= (part & 0x7fL) << shift
      shift += 7
      part = byte()
    }
    value | (part.toLong << shift)
  }

  def int(): Int = varLong().toInt

  def signed(): Long = {
    val raw = varLong()
    (raw >>> 1) ^ -(raw & 1)
  }

  def blob(): Array[Byte] = {
    val length = int()
    val value = util.Arrays.copyOfRange(bytes, at, at + length)
    at += length
    value
  }

  def nullable(): Array[Byte] = if (byte() == 0) null else blob()

  /** Opens a cell: its first byte must be the format version that this kernel writes. */
  def version(): this.type = {
    val found = byte()
    require(
      found == Codec.Version,
      s"state format version $found, this kernel reads ${Codec.Version}: restore with the release that wrote it")
    this
  }

  /** Opens a cell of which there are several formats: gives the one it has, up to the newest. */
  def version(newest: Byte): Byte = {
    val found = byte()
    require(
      found >= 1 && found <= newest,
      s"state format version $found, this kernel reads 1 to $newest: restore with the release that wrote it")
    found.toByte
  }
}

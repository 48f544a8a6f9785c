package rejoin.core.row

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** Which key group a packed key belongs to. Part of the state format: never change it. */
object KeyGroup {
  private val Seed = 42

  /** Hash of a packed key. */
  def hash(key: Array[Byte]): Int =
    Murmur3_x86_32.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET.toLong, key.length, Seed)

  def of(key: Array[Byte], groups: Int): Int = Math.floorMod(hash(key), groups)
}

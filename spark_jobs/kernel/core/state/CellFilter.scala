package rejoin.core.state

import org.apache.spark.unsafe.Platform

/** A Bloom filter of cells, by the hashes that [[CellCache]] has of them, outside the heap. For one thread at a time.
  *
  * A cell is four bits of one word. None is ever taken out: the more cells were added, the more often it says that it
  * may have one that it has not.
  */
private[state] final class CellFilter(bytes: Long) {
  private val words = math.max(bytes / 8, 1)
  private val memory = Platform.allocateMemory(words * 8)
  Platform.setMemory(memory, 0.toByte, words * 8)

  def add(hash: Int): Unit = {
    val word = wordOf(hash)
    Platform.putLong(null, word, Platform.getLong(null, word) | bitsOf(hash))
  }

  /** False only if no cell of this hash was added. */
  def mayHave(hash: Int): Boolean = {
    val bits = bitsOf(hash)
    (Platform.getLong(null, wordOf(hash)) & bits) == bits
  }

  def free(): Unit = Platform.freeMemory(memory)

  private def wordOf(hash: Int): Long = memory + ((hash & 0xffffffffL) * words >>> 32) * 8

  /** Hashes of one word begin with the same bits; a product's first bits depend on all of the hash. */
  private def bitsOf(hash: Int): Long = {
    val mixed = hash * 0x9e3779b97f4a7c15L
    1L << (mixed >>> 58) | 1L << (mixed >>> 52) | 1L << (mixed >>> 46) | 1L << (mixed >>> 40)
  }
}

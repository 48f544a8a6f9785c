package rejoin.core.row

import java.nio.ByteBuffer
import java.util

/** Where a change stands in its database's log, and when it was committed there; NoTime where unknown.
  *
  * 24 bytes behind the packed row of each envelope of a table whose rows carry it. Neither the log nor
  * the time alone tells a repetition: a new server begins its log anew, and a transaction has one
  * commit time.
  */
final class SourcePosition {
  var log: Long = Envelope.NoTime

  /** The place among changes that share `log`; NoTime where they are of different rows. */
  var within: Long = Envelope.NoTime
  var committedMs: Long = Envelope.NoTime

  def clear(): Unit = set(Envelope.NoTime, Envelope.NoTime, Envelope.NoTime)

  def set(log: Long, within: Long, committedMs: Long): Unit = {
    this.log = log
    this.within = within
    this.committedMs = committedMs
  }

  def set(other: SourcePosition): Unit = set(other.log, other.within, other.committedMs)

  def isKnown: Boolean = log != Envelope.NoTime

  /** Whether a change at `other` has been seen by whom this is the last one: it is no later in the log
    * and was not committed later either.
    */
  def covers(other: SourcePosition): Boolean =
    isKnown && other.isKnown && other.committedMs <= committedMs &&
      (other.log < log || (other.log == log && other.within <= within && within != SourcePosition.Untold))

  /** Reads what [[append]] wrote. */
  def readTail(bytes: Array[Byte]): Unit = {
    val tail = ByteBuffer.wrap(bytes, bytes.length - SourcePosition.Size, SourcePosition.Size)
    set(tail.getLong, tail.getLong, tail.getLong)
  }

  /** The row with this position as its tail. */
  def append(row: Array[Byte]): Array[Byte] =
    ByteBuffer.allocate(row.length + SourcePosition.Size).put(row).putLong(log).putLong(within)
      .putLong(committedMs).array
}

object SourcePosition {
  private final val Size = 24

  /** A `within` of changes that share `log` and are not told apart: none of them counts as a repetition. */
  final val Untold: Long = Envelope.NoTime + 1

  /** The row without the source position at its end. */
  def rowOf(bytes: Array[Byte]): Array[Byte] = util.Arrays.copyOf(bytes, bytes.length - Size)
}

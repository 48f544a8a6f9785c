package rejoin.core.row

import java.nio.ByteBuffer
import java.util

/** Where a change stands in its database's log, and when it was committed there; NoTime where unknown.
  *
  * 16 bytes behind the packed row of each envelope of a table whose rows carry it. Two numbers, of
  * which neither alone tells a repetition: a new server begins its log anew, and a transaction has
  * one commit time.
  */
final class SourcePosition {
  var log: Long = Envelope.NoTime
  var committedMs: Long = Envelope.NoTime

  def clear(): Unit = set(Envelope.NoTime, Envelope.NoTime)

  def set(log: Long, committedMs: Long): Unit = {
    this.log = log
    this.committedMs = committedMs
  }

  def set(other: SourcePosition): Unit = set(other.log, other.committedMs)

  /** Whether a change at `other` has been seen by whom this is the last one: it is no later in the log
    * and was not committed later either.
    */
  def covers(other: SourcePosition): Boolean =
    log != Envelope.NoTime && other.log != Envelope.NoTime && other.log <= log && other.committedMs <= committedMs

  /** Reads what [[SourcePosition.append]] wrote. */
  def readTail(bytes: Array[Byte]): Unit = {
    val tail = ByteBuffer.wrap(bytes, bytes.length - SourcePosition.Size, SourcePosition.Size)
    set(tail.getLong, tail.getLong)
  }
}

object SourcePosition {
  private final val Size = 16

  def append(row: Array[Byte], log: Long, committedMs: Long): Array[Byte] =
    ByteBuffer.allocate(row.length + Size).put(row).putLong(log).putLong(committedMs).array

  /** The row without the source position at its end. */
  def rowOf(bytes: Array[Byte]): Array[Byte] = util.Arrays.copyOf(bytes, bytes.length - Size)
}

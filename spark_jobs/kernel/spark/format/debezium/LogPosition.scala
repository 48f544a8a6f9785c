package org.apache.spark.sql.rejoin.format.debezium

import org.apache.spark.sql.rejoin.format.Decoded
import rejoin.core.row.Envelope

/** Position of a change in its database's log, as one number that grows along the log.
  *
  * PostgreSQL: `lsn`. MySQL, MariaDB: `file`, `pos`, `row` in 20, 32 and 11 bits. SQL Server: the
  * three parts of `commit_lsn` in 23, 24 and 16 bits, so that the changes of one transaction share
  * a position. Other databases: the time of the change, `ts_ms`.
  */
private[rejoin] final class LogPosition {
  private var lsn, pos, row, changedMs: Long = Envelope.NoTime
  private var file, commitLsn: String = _

  def clear(): Unit = {
    lsn = Envelope.NoTime
    pos = Envelope.NoTime
    row = Envelope.NoTime
    changedMs = Envelope.NoTime
    file = null
    commitLsn = null
  }

  /** Takes a number of the event's `source` block; ignores fields that say nothing of the position. */
  def number(name: String, value: Long): Unit = name match {
    case "lsn" => lsn = value
    case "pos" => pos = value
    case "row" => row = value
    case "ts_ms" => changedMs = value
    case _ => ()
  }

  /** Takes a text of the event's `source` block, which may be null. */
  def text(name: String, value: String): Unit = name match {
    case "file" => file = value
    case "commit_lsn" => commitLsn = value
    case _ => ()
  }

  def write(into: Decoded): Unit = {
    into.position =
      if (lsn != Envelope.NoTime) lsn
      else if (commitLsn != null) LogPosition.fromCommitLsn(commitLsn)
      else if (file != null && pos != Envelope.NoTime) fromBinlog
      else changedMs
    into.positionMs = changedMs
    into.isOneChange = lsn != Envelope.NoTime
  }

  private def fromBinlog: Long = {
    val number = file.substring(file.lastIndexOf('.') + 1).toLongOption.getOrElse(-1L)
    if (number < 0 || pos < 0 || pos > 0xffffffffL) Envelope.NoTime
    else (number & 0xfffff) << 43 | pos << 11 | math.min(math.max(row, 0L), 0x7ffL)
  }
}

private[rejoin] object LogPosition {

  /** The fields of `source` that make up a position. */
  val Fields: Set[String] = Set("lsn", "pos", "row", "ts_ms", "file", "commit_lsn")

  private val Lsn = "([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})".r

  private def fromCommitLsn(text: String): Long = text match {
    case Lsn(file, block, slot) => part(file, 23) << 40 | part(block, 24) << 16 | part(slot, 16)
    case _ => Envelope.NoTime
  }

  private def part(hex: String, bits: Int): Long = java.lang.Long.parseLong(hex, 16) & (1L << bits) - 1
}

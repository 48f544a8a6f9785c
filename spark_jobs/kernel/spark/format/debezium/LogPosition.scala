package org.apache.spark.sql.rejoin.format.debezium

import org.apache.spark.sql.rejoin.format.Decoded
import rejoin.core.row.{Envelope, SourcePosition}

/** Position of a change in its database's log, as numbers that grow along the log.
  *
  * PostgreSQL: `lsn`. MySQL, MariaDB: `file`, `pos`, `row` in 20, 32 and 11 bits. SQL Server: the
  * three parts of `commit_lsn` in 23, 24 and 16 bits, and among the changes of one transaction
  * `change_lsn` likewise, its first part in 22 bits, with one bit that `event_serial_no` sets from 2 on.
  * Other databases: the time of the change, `ts_ms`, which changes may share.
  */
private[rejoin] final class LogPosition {
  import LogPosition.fromLsn

  private var lsn, pos, row, serial, changedMs: Long = Envelope.NoTime
  private var file, commitLsn, changeLsn: String = _

  def clear(): Unit = {
    lsn = Envelope.NoTime
    pos = Envelope.NoTime
    row = Envelope.NoTime
    serial = Envelope.NoTime
    changedMs = Envelope.NoTime
    file = null
    commitLsn = null
    changeLsn = null
  }

  /** Takes a number of the event's `source` block; ignores fields that say nothing of the position. */
  def number(name: String, value: Long): Unit = name match {
    case "lsn" => lsn = value
    case "pos" => pos = value
    case "row" => row = value
    case "event_serial_no" => serial = value
    case "ts_ms" => changedMs = value
    case _ => ()
  }

  /** Takes a text of the event's `source` block, which may be null. */
  def text(name: String, value: String): Unit = name match {
    case "file" => file = value
    case "commit_lsn" => commitLsn = value
    case "change_lsn" => changeLsn = value
    case _ => ()
  }

  def write(into: Decoded): Unit = {
    if (lsn != Envelope.NoTime) into.position.set(lsn, Envelope.NoTime, changedMs)
    else if (commitLsn != null) into.position.set(fromLsn(commitLsn, 23), withinCommit, changedMs)
    else if (file != null && pos != Envelope.NoTime) into.position.set(fromBinlog, Envelope.NoTime, changedMs)
    else into.position.set(changedMs, SourcePosition.Untold, changedMs)
    into.isOneChange = lsn != Envelope.NoTime
  }

  /** NoTime for the rows of a snapshot, which have no `change_lsn`. */
  private def withinCommit: Long = {
    val change = if (changeLsn == null) Envelope.NoTime else fromLsn(changeLsn, 22)
    if (change == Envelope.NoTime) change else change << 1 | (if (serial > 1) 1 else 0)
  }

  private def fromBinlog: Long = {
    val number = file.substring(file.lastIndexOf('.') + 1).toLongOption.getOrElse(-1L)
    if (number < 0 || pos < 0 || pos > 0xffffffffL) Envelope.NoTime
    else (number & 0xfffff) << 43 | pos << 11 | math.min(math.max(row, 0L), 0x7ffL)
  }
}

private[rejoin] object LogPosition {

  /** The fields of `source` that make up a position. */
  val Fields: Set[String] =
    Set("lsn", "pos", "row", "ts_ms", "file", "commit_lsn", "change_lsn", "event_serial_no")

  private val Lsn = "([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})".r

  /** @param fileBits
    *   how many bits of the first part are kept
    */
  private def fromLsn(text: String, fileBits: Int): Long = text match {
    case Lsn(file, block, slot) => part(file, fileBits) << 40 | part(block, 24) << 16 | part(slot, 16)
    case _ => Envelope.NoTime
  }

  private def part(hex: String, bits: Int): Long = java.lang.Long.parseLong(hex, 16) & (1L << bits) - 1
}

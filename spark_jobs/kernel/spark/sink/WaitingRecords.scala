package org.apache.spark.sql.rejoin.sink

import java.nio.charset.StandardCharsets.UTF_8

import rejoin.core.results.{Overflow, OverflowQueue}
import rejoin.core.row.{CellReader, CellWriter}

/** Additions of one epoch and task, in order, that wait until the task has sent its retractions. */
private[sink] final class WaitingRecords(overflow: Overflow) extends OverflowQueue[SinkRecord](overflow) {
  import WaitingRecords._

  override protected def sizeOf(record: SinkRecord): Long =
    RecordBytes + bytesOf(record.key) + bytesOf(record.value)

  override protected def write(record: SinkRecord, out: CellWriter): Unit = {
    out.blob(record.topic.getBytes(UTF_8)).nullable(record.key).nullable(record.value)
    out.signed(record.hash.toLong).signed(record.recordMs)
    record.timestamp.fold(out.byte(0))(out.byte(1).signed(_))
    if (record.headers == null) out.byte(0)
    else {
      out.byte(1).varLong(record.headers.size.toLong)
      record.headers.foreach(header => out.blob(header.key.getBytes(UTF_8)).nullable(header.value))
    }
  }

  override protected def read(in: CellReader): SinkRecord = {
    val (topic, key, value) = (new String(in.blob(), UTF_8), in.nullable(), in.nullable())
    val (hash, recordMs) = (in.signed().toInt, in.signed())
    val timestamp = Option.when(in.byte() == 1)(in.signed())
    val headers =
      if (in.byte() == 0) null
      else Vector.fill(in.int())(SinkHeader(new String(in.blob(), UTF_8), in.nullable()))
    SinkRecord(topic, key, value, hash, timestamp, headers, isDeadLetter = false, isRetraction = false, recordMs)
  }
}

private object WaitingRecords {

  /** About what a record takes in memory besides its key and value. */
  private final val RecordBytes = 128L

  private def bytesOf(bytes: Array[Byte]): Int = if (bytes == null) 0 else bytes.length
}

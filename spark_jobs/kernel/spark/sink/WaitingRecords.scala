package org.apache.spark.sql.rejoin.sink

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, Overflow, OverflowFile}

/** Additions of one epoch and task, in order, that wait until the task has sent its retractions: the first ones in
  * memory, the others in a file.
  */
private[sink] final class WaitingRecords(overflow: Overflow) {
  import WaitingRecords._

  private val first = new ArrayBuffer[SinkRecord]
  private var bytes = 0L
  private var rest: OverflowFile = _

  def add(record: SinkRecord): Unit =
    if (bytes < overflow.maxBytes) {
      first += record
      bytes += RecordBytes + sizeOf(record.key) + sizeOf(record.value)
    } else write(record)

  private def write(record: SinkRecord): Unit = {
    if (rest == null) rest = overflow.open()
    val out = rest.record.blob(record.topic.getBytes(UTF_8)).nullable(record.key).nullable(record.value)
    out.signed(record.hash.toLong).signed(record.recordMs)
    record.timestamp.fold(out.byte(0))(out.byte(1).signed(_))
    if (record.headers == null) out.byte(0)
    else {
      out.byte(1).varLong(record.headers.size.toLong)
      record.headers.foreach(header => out.blob(header.key.getBytes(UTF_8)).nullable(header.value))
    }
    rest.add()
  }

  /** Gives out all records. */
  def drain(send: SinkRecord => Unit): Unit = {
    first.foreach(send)
    if (rest != null) {
      rest.iterator.foreach(in => send(read(in)))
      rest.delete()
    }
  }

  private def read(in: CellReader): SinkRecord = {
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

  private def sizeOf(bytes: Array[Byte]): Int = if (bytes == null) 0 else bytes.length
}

package org.apache.spark.sql.rejoin.sink

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.format.json.{JsonObjectWriter, JsonWriterOptions}
import org.apache.spark.sql.rejoin.format.{ByteSink, FormatSpec}
import org.apache.spark.sql.rejoin.ingest.{DeadLetter, Reason}
import org.apache.spark.sql.rejoin.run.LateTopic
import rejoin.core.machine.LateRows
import rejoin.core.row.{Envelope, Output, RowKind}

/** Sends the rows that an operator drops as late to a topic of their own.
  *
  * They are emitted as rejects, which every later operator and sink passes on. The record's value is JSON of
  * the row's columns that the operator has; its timestamp is the row's event time.
  *
  * @param sides
  *   the columns of each input whose late rows come here, the left one first
  */
final class LateRecords(to: LateTopic, sides: Seq[StructType]) extends LateRows {
  import LateRecords._

  private val writers = sides.map { schema =>
    new JsonObjectWriter(JsonWriterOptions(FormatSpec("json", Map.empty)), schema.indices, schema)
  }.toArray
  private val rows = sides.map(schema => new UnsafeRow(schema.size)).toArray
  private val value = new ByteSink

  def emit(late: Envelope, watermark: Long, hash: Int, out: Output): Unit = {
    val side = late.side.toInt
    rows(side).pointTo(late.row, late.row.length)
    writers(side).write(rows(side), value.reset())
    val time = Option.when(late.time != Envelope.NoTime)(late.time)
    val headers = Seq(
      DeadLetter.ReasonHeader -> Reason.Late,
      "rejoin.operator" -> to.operator,
      "rejoin.kind" -> RowKind.name(late.kind),
      "rejoin.watermark" -> watermark.toString) ++ time.map(ms => "rejoin.event-time" -> ms.toString) ++
      Option.when(sides.size > 1)("rejoin.side" -> SideNames(side))
    out.emit(RowKind.Reject, hash, DeadLetter.pack(to.topic, value.result(), time, headers), null)
  }
}

private object LateRecords {
  val SideNames: IndexedSeq[String] = IndexedSeq("left", "right")
}

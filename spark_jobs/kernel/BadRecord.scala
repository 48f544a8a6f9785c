package org.apache.spark.sql.rejoin

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** Why a record cannot become a row; header `rejoin.reason` and label of the reject counters. */
object Reason {
  final val JsonMalformed = "json-malformed"
  final val JsonField = "json-field-malformed"
  final val JsonMissingField = "json-missing-field"
  final val AvroFraming = "avro-bad-framing"
  final val AvroUnknownId = "avro-unknown-schema-id"
  final val AvroMalformed = "avro-malformed"
  final val AvroMismatch = "avro-schema-mismatch"
  final val RawLength = "raw-bad-length"
  final val Envelope = "debezium-no-envelope"
  final val Truncate = "debezium-truncate"
  final val Message = "debezium-message"
  final val UnknownOp = "unknown-op"
  final val Unavailable = "debezium-unavailable-value"
  final val MissingBefore = "missing-before"
  final val MissingAfter = "missing-after"
  final val NullKey = "null-record-key"
  final val NullPrimaryKey = "null-primary-key"
  final val NullRowtime = "null-rowtime"
  final val NotNull = "not-null-violation"
  final val OutOfRange = "value-out-of-range"
  final val Expression = "expression-failed"

  /** No bad record: a row behind the watermark. */
  final val Late = "late"
}

/** A record that cannot become a row: data, not a failure of the job. Carries no stack trace. */
final class BadRecord(val reason: String, message: String, val inKey: Boolean = false)
    extends Exception(message, null, false, false) {
  def ofKey: BadRecord = new BadRecord(reason, s"record key: $getMessage", inKey = true)
}

/** Stops the job under `rejoin.on-error` = `fail`. */
final class RejectedRecordException(message: String) extends RuntimeException(message)

/** A record on its way to a dead-letter topic: original bytes and headers, and what was wrong. */
object DeadLetter {
  val schema: StructType =
    StructType(
      Encoders.product[SinkRecord].schema
        .filter(f => Set("topic", "key", "value", "timestamp", "headers")(f.name)))
  private val Fields = schema.size

  /** Packs the record for the rows' way through the query. Called for rejects only. */
  def pack(topic: String, record: SourceRecord, table: String, problem: BadRecord): Array[Byte] =
    new RowPacker(schema)(
      new GenericInternalRow(
        Array[Any](
          UTF8String.fromString(topic),
          record.key,
          record.value,
          record.timestampMs,
          headers(record, table, problem))))

  /** Packs a record that the query itself has made. */
  def pack(topic: String, value: Array[Byte], timeMs: Option[Long], headers: Seq[(String, String)]): Array[Byte] =
    new RowPacker(schema)(
      new GenericInternalRow(
        Array[Any](
          UTF8String.fromString(topic),
          null,
          value,
          timeMs.orNull,
          new GenericArrayData(headers.map { case (name, text) => header(name, text) }.toArray[Any]))))

  /** Views what [[pack]] made, without a copy. */
  def unpack(bytes: Array[Byte]): UnsafeRow = {
    val row = new UnsafeRow(Fields)
    row.pointTo(bytes, bytes.length)
    row
  }

  private def headers(record: SourceRecord, table: String, problem: BadRecord): ArrayData = {
    val original =
      if (record.headers == null) Array.empty[Any]
      else record.headers.toArray[Any](SourceRecord.HeaderType)
    val added = Seq(
      "__connect.errors.topic" -> record.topic.toString,
      "__connect.errors.partition" -> record.partition.toString,
      "__connect.errors.offset" -> record.offset.toString,
      "__connect.errors.stage" -> (if (problem.inKey) "KEY_CONVERTER" else "VALUE_CONVERTER"),
      "__connect.errors.exception.class.name" -> classOf[BadRecord].getName,
      "__connect.errors.exception.message" -> problem.getMessage,
      "rejoin.reason" -> problem.reason,
      "rejoin.table" -> table)
    new GenericArrayData(original ++ added.map { case (name, text) => header(name, text) })
  }

  private def header(name: String, text: String): InternalRow =
    new GenericInternalRow(Array[Any](UTF8String.fromString(name), text.getBytes(UTF_8)))
}

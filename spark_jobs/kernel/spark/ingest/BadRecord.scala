package org.apache.spark.sql.rejoin.ingest

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.columns.{Packed, RowPacker}
import org.apache.spark.sql.rejoin.format.SourceRecord
import org.apache.spark.sql.rejoin.sink.SinkRecord

/** Why a record cannot become a row; header `rejoin.reason` and label of the reject counters. */
object Reason {
  final val JsonMalformed = "json-malformed"
  final val JsonField = "json-field-malformed"
  final val JsonMissingField = "json-missing-field"
  final val JsonFraming = "json-bad-framing"
  final val AvroFraming = "avro-bad-framing"
  final val AvroUnknownId = "avro-unknown-schema-id"
  final val AvroMalformed = "avro-malformed"
  final val AvroMismatch = "avro-schema-mismatch"
  final val CsvMalformed = "csv-malformed"
  final val CsvField = "csv-field-malformed"
  final val ProtobufMalformed = "protobuf-malformed"
  final val ProtobufFraming = "protobuf-bad-framing"
  final val RawLength = "raw-bad-length"
  final val Envelope = "debezium-no-envelope"
  final val Truncate = "debezium-truncate"
  final val Message = "debezium-message"
  final val UnknownOp = "unknown-op"
  final val Unavailable = "debezium-unavailable-value"
  final val Infinity = "debezium-infinity"
  final val Heartbeat = "debezium-heartbeat"
  final val Transaction = "debezium-transaction"
  final val SchemaChange = "debezium-schema-change"
  final val Document = "debezium-document"
  final val ConnectSchema = "connect-bad-schema"
  final val ConnectMismatch = "connect-schema-mismatch"
  final val MissingBefore = "missing-before"
  final val MissingAfter = "missing-after"
  final val NullKey = "null-record-key"
  final val NullPrimaryKey = "null-primary-key"
  final val NullRowtime = "null-rowtime"
  final val NotNull = "not-null-violation"
  final val OutOfRange = "value-out-of-range"
  final val Expression = "expression-failed"

  /** Not a bad record: a row behind the watermark. */
  final val Late = "late"

  /** Not a bad record: a result that is too large for its topic. */
  final val TooLarge = "record-too-large"
}

/** The message of a bad record, made one line of at most [[MostBytes]] in UTF-8: it may quote a parser or the
  * record itself.
  */
object ErrorText {
  final val MostBytes = 1024
  private val Cut = "..."

  def apply(text: String): String = {
    val line = if (text == null) "" else text.replaceAll("[\\p{Cntrl}\u2028\u2029]+", " ").trim
    val bytes = line.getBytes(UTF_8)
    if (bytes.length <= MostBytes) line
    else {
      var end = MostBytes - Cut.length
      while ((bytes(end) & 0xc0) == 0x80) end -= 1 // not in the middle of a character
      new String(bytes, 0, end, UTF_8) + Cut
    }
  }
}

/** A record cannot become a row. The data is wrong, not the job: there is no stack trace. */
final class BadRecord(val reason: String, message: String, val inKey: Boolean = false)
    extends Exception(message, null, false, false) {
  def inRecordKey: BadRecord = new BadRecord(reason, s"record key: $getMessage", inKey = true)
}

/** A dead-letter record: the original bytes and headers of a record, and why it was rejected.
  *
  * The headers with the reason follow the original headers and begin with [[FirstHeader]]: whatever is before
  * the last header of that name is original. [[SinkAdmission]] adds headers with the query and the epoch.
  */
object DeadLetter {
  final val FirstHeader = "__connect.errors.topic"
  final val PartitionHeader = "__connect.errors.partition"
  final val MessageHeader = "__connect.errors.exception.message"
  final val ReasonHeader = "rejoin.reason"
  final val TableHeader = "rejoin.table"

  /** The value of a header, which readers may compare: it stays when the class is renamed. */
  private final val ExceptionClass = "org.apache.spark.sql.rejoin.BadRecord"

  val schema: StructType =
    StructType(
      SinkRecord.schema
        .filter(f => Set("topic", "key", "value", "timestamp", "headers")(f.name)))

  /** One per thread: Spark compiles code for each packer. */
  private val packer = ThreadLocal.withInitial(() => new RowPacker(schema))

  /** Packs a rejected record, so that it can pass through the query like a row. */
  def pack(topic: String, record: SourceRecord, table: String, problem: BadRecord): Array[Byte] =
    packed(topic, record.key, record.value, record.timestampMs, headers(record, table, problem))

  /** Packs a record that the query itself has made, such as a late row. */
  def pack(topic: String, value: Array[Byte], timeMs: Option[Long], headers: Seq[(String, String)]): Array[Byte] =
    packed(topic, null, value, timeMs.orNull, arrayOf(Array.empty, headers))

  private def packed(topic: String, key: Array[Byte], value: Array[Byte], timeMs: Any, headers: ArrayData) =
    packer.get()(new GenericInternalRow(Array[Any](UTF8String.fromString(topic), key, value, timeMs, headers)))

  /** A view of what [[pack]] has made, without a copy. */
  def unpack(bytes: Array[Byte]): UnsafeRow = Packed.view(bytes, schema.size)

  private def headers(record: SourceRecord, table: String, problem: BadRecord): ArrayData = {
    val original =
      if (record.headers == null) Array.empty[Any]
      else record.headers.toArray[Any](SourceRecord.HeaderType)
    val added = Seq(
      FirstHeader -> record.topic.toString,
      PartitionHeader -> record.partition.toString,
      "__connect.errors.offset" -> record.offset.toString,
      "__connect.errors.stage" -> (if (problem.inKey) "KEY_CONVERTER" else "VALUE_CONVERTER"),
      "__connect.errors.exception.class.name" -> ExceptionClass,
      MessageHeader -> ErrorText(problem.getMessage),
      ReasonHeader -> problem.reason,
      TableHeader -> table,
      // a topic with message.timestamp.type=LogAppendTime replaces the record's own
      "rejoin.timestamp" -> record.timestampMs.toString)
    arrayOf(original, added)
  }

  private def arrayOf(original: Array[Any], added: Seq[(String, String)]): ArrayData =
    new GenericArrayData(original ++ added.map { case (name, text) =>
      new GenericInternalRow(Array[Any](UTF8String.fromString(name), text.getBytes(UTF_8)))
    })
}

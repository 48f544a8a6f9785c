package org.apache.spark.sql.rejoin.format

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, ArrayData, DateTimeUtils, MapData}
import org.apache.spark.sql.types.{TimestampNTZType, TimestampType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.debezium.DebeziumTypes
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}
import rejoin.core.row.RowKind

/** Reads a table's columns from the value, key and metadata of a record; rejects NULL in NOT NULL columns. */
private[rejoin] final class RecordReader(spec: IngestSpec) {
  private val decoded = new Decoded(spec.decodedTypes)
  private val values = Decoder.forValue(spec)
  private val keyTargets = spec.columnsFrom("key")
  private val keys: RowDecoder =
    spec.keyFormat.filter(_ => keyTargets.nonEmpty).map(Decoder.forKey(spec, _, keyTargets)).orNull
  private val isUpsert = spec.isUpsert
  private val metadata =
    spec.columnsFrom("metadata").flatMap(RecordMetadata(_, spec.timeZone)).toArray
  private val primaryKey = spec.primaryKey.map(spec.ordinal).filter(_ >= 0).toArray
  private val notNull =
    spec.columns.indices.filter(i => !spec.columns(i).nullable && !primaryKey.contains(i)).toArray

  /** The row changes of a record; the result is reused. */
  def read(record: SourceRecord): Decoded = {
    decoded.clear()
    values.decode(record, decoded)
    completed(record)
  }

  /** Whether the record that was read last has more row changes. */
  def hasMore: Boolean = values.hasMore

  /** The next row changes of the same record; the result is reused. */
  def readMore(record: SourceRecord): Decoded = {
    decoded.clear()
    values.decodeMore(decoded)
    completed(record)
  }

  private def completed(record: SourceRecord): Decoded = {
    if (decoded.beforeKind != Decoded.Absent) complete(record, decoded.before, decoded.beforeKind)
    if (decoded.afterKind != Decoded.Absent) complete(record, decoded.after, decoded.afterKind)
    decoded
  }

  /** Whether the problem is a parse error of a format that ignores parse errors. */
  def skips(problem: BadRecord): Boolean =
    if (problem.inKey) spec.keyFormat.exists(Decoder.skipsErrors)
    else Decoder.skipsErrors(spec.valueFormat) && RecordReader.ParseErrors(problem.reason)

  private def complete(record: SourceRecord, row: InternalRow, kind: Byte): Unit = {
    if (keys != null) readKey(record, row)
    var i = 0
    while (i < metadata.length) {
      metadata(i).read(record, row)
      i += 1
    }
    if (isUpsert) requirePrimaryKey(row)
    if (!isUpsert || RowKind.isAdd(kind)) requireNotNull(row)
  }

  private def readKey(record: SourceRecord, row: InternalRow): Unit =
    if (record.key != null)
      try keys.decode(record.key, record, row)
      catch { case bad: BadRecord => throw bad.inRecordKey }
    else if (isUpsert)
      throw new BadRecord(Reason.NullKey, "the record has no key", inKey = true)
    else keyTargets.foreach(target => row.setNullAt(target.ordinal))

  private def requirePrimaryKey(row: InternalRow): Unit = {
    var i = 0
    while (i < primaryKey.length) {
      if (row.isNullAt(primaryKey(i))) throw isNull(Reason.NullPrimaryKey, primaryKey(i))
      i += 1
    }
  }

  private def requireNotNull(row: InternalRow): Unit = {
    var i = 0
    while (i < notNull.length) {
      if (row.isNullAt(notNull(i)) && !decoded.missing.get(notNull(i))) throw isNull(Reason.NotNull, notNull(i))
      i += 1
    }
    if (!isUpsert) requirePrimaryKey(row)
  }

  private def isNull(reason: String, ordinal: Int): BadRecord =
    new BadRecord(reason, s"column ${spec.columns(ordinal).name} is NULL")
}

private object RecordReader {

  /** Problems that `ignore-parse-errors` skips; NULL in a NOT NULL column is none of them. */
  private val ParseErrors = Set(
    Reason.JsonMalformed,
    Reason.JsonField,
    Reason.JsonMissingField,
    Reason.JsonFraming,
    Reason.CsvMalformed,
    Reason.CsvField,
    Reason.ProtobufMalformed,
    Reason.ProtobufFraming,
    Reason.Envelope,
    Reason.Truncate,
    Reason.Message,
    Reason.UnknownOp,
    Reason.Heartbeat,
    Reason.Transaction,
    Reason.SchemaChange,
    Reason.ConnectSchema,
    Reason.MissingBefore,
    Reason.MissingAfter)
}

/** Writes a time into a METADATA column of type BIGINT, TIMESTAMP_LTZ or TIMESTAMP; the last holds the
  * local time in the job's time zone.
  */
private[rejoin] final class MetadataTime(target: FieldTarget, timeZone: String) {
  private val zone = DateTimeUtils.getZoneId(timeZone)

  def write(millis: Long, row: InternalRow): Unit = row.setLong(
    target.ordinal,
    target.dataType match {
      case TimestampType => micros(millis)
      case TimestampNTZType => DebeziumTypes.within(DateTimeUtils.convertTz(micros(millis), ZoneOffset.UTC, zone))
      case _ => millis
    })

  private def micros(millis: Long): Long = DebeziumTypes.within(Math.multiplyExact(millis, 1000L))
}

/** A METADATA column that every record has, whatever its format. */
private[rejoin] trait RecordMetadata {
  def read(record: SourceRecord, row: InternalRow): Unit
}

private[rejoin] object RecordMetadata {
  private val TimestampTypes =
    Array("NoTimestampType", "CreateTime", "LogAppendTime").map(UTF8String.fromString)

  /** None for metadata of the value's format, which its decoder reads. */
  def apply(target: FieldTarget, timeZone: String): Option[RecordMetadata] = {
    val i = target.ordinal
    lazy val time = new MetadataTime(target, timeZone)
    def column(read: RecordMetadata): Option[RecordMetadata] = Some(read)
    target.field match {
      case "topic" => column((record, row) => row.update(i, record.topic.copy()))
      case "partition" => column((record, row) => row.setInt(i, record.partition))
      case "offset" => column((record, row) => row.setLong(i, record.offset))
      case "timestamp" => column((record, row) => time.write(record.timestampMs, row))
      case "timestamp-type" =>
        column((record, row) => row.update(i, TimestampTypes(record.timestampType + 1)))
      case "headers" => column((record, row) => row.update(i, headerMap(record.headers)))
      case format if format.startsWith("value.") => None
      case other => throw new IllegalArgumentException(s"records have no metadata '$other'")
    }
  }

  /** Keeps the last of several headers with the same name, as Flink does. */
  private def headerMap(headers: ArrayData): MapData = {
    val entries = scala.collection.mutable.LinkedHashMap.empty[Any, Any]
    if (headers != null)
      headers.foreach(
        SourceRecord.HeaderType,
        (_, header) => {
          val row = header.asInstanceOf[InternalRow]
          entries(row.getUTF8String(0).copy()) = row.getBinary(1)
        })
    ArrayBasedMapData(entries.keys.toArray[Any], entries.values.toArray[Any])
  }
}

package org.apache.spark.sql.rejoin.sink

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.{DateTimeUtils, GenericArrayData}
import org.apache.spark.sql.types.{LongType, TimestampNTZType}

/** A row has a record timestamp that Kafka has no place for: the query is wrong, not a single record. */
final class RecordTimestampException(message: String) extends RuntimeException(message)

/** Writes the metadata columns of a sink into the timestamp and the headers of its records.
  *
  * As in Flink, a NULL timestamp is the producer's time, and a header whose name or value is NULL is left out.
  *
  * @param offset
  *   number of columns before those of the sink in its rows
  */
private[rejoin] final class WrittenMetadata(sink: RecordSpec, offset: Int) {
  private val timestamp = columnOf(WrittenMetadata.Timestamp)
  private val headers = columnOf(WrittenMetadata.Headers)
  private val isMillis = timestamp >= 0 && sink.schema(timestamp).dataType == LongType
  private val isLocal = timestamp >= 0 && sink.schema(timestamp).dataType == TimestampNTZType
  private val zone = DateTimeUtils.getZoneId(sink.timeZone)

  /** Fills the columns `timestamp` and `headers` of a row of [[SinkRecord]]. */
  def write(row: InternalRow, out: InternalRow): Unit = {
    if (timestamp < 0 || row.isNullAt(timestamp + offset)) out.setNullAt(WrittenMetadata.TimestampAt)
    else out.setLong(WrittenMetadata.TimestampAt, millis(row.getLong(timestamp + offset)))
    if (headers < 0 || row.isNullAt(headers + offset)) out.setNullAt(WrittenMetadata.HeadersAt)
    else out.update(WrittenMetadata.HeadersAt, headersOf(row))
  }

  private def millis(value: Long): Long = {
    val micros = if (isLocal) DateTimeUtils.convertTz(value, zone, ZoneOffset.UTC) else value
    val found = if (isMillis) value else Math.floorDiv(micros, 1000L)
    if (found < 0)
      throw new RecordTimestampException(
        s"sink ${sink.table}: ${sink.schema(timestamp).name} is ${found} ms, and a record of Kafka has no timestamp " +
          "before 1970")
    found
  }

  private def headersOf(row: InternalRow): GenericArrayData = {
    val map = row.getMap(headers + offset)
    val (names, values) = (map.keyArray(), map.valueArray())
    val kept = (0 until map.numElements()).filterNot(i => names.isNullAt(i) || values.isNullAt(i))
    new GenericArrayData(kept.map(i =>
      new GenericInternalRow(Array[Any](names.getUTF8String(i), values.getBinary(i)))).toArray[Any])
  }

  private def columnOf(key: String): Int = sink.metadata.get(key).fold(-1)(sink.schema.fieldIndex)
}

private[rejoin] object WrittenMetadata {
  final val Timestamp = "timestamp"
  final val Headers = "headers"

  /** Places in a row of [[SinkRecord]]. */
  private final val TimestampAt = 4
  private final val HeadersAt = 5
}

package org.apache.spark.sql.rejoin.sink

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, BinaryType, BooleanType, IntegerType, LongType, StringType, StructType}

import rejoin.core.row.Envelope

/** A header of a record on its way to Kafka. */
final case class SinkHeader(key: String, value: Array[Byte])

/** A record on its way to Kafka.
  *
  * @param hash
  *   chooses the partition of a record without a key
  * @param timestamp
  *   milliseconds since 1970; the producer's time if absent
  * @param headers
  *   null for none
  * @param isDeadLetter
  *   whether it is a rejected record or a late row rather than a result
  * @param isRetraction
  *   whether it takes back a result row
  * @param recordMs
  *   timestamp of the newest record behind the result, as in a [[rejoin.core.row.Changelog]]
  */
final case class SinkRecord(
    topic: String,
    key: Array[Byte],
    value: Array[Byte],
    hash: Int,
    timestamp: Option[Long],
    headers: Seq[SinkHeader],
    isDeadLetter: Boolean,
    isRetraction: Boolean,
    recordMs: Long = Envelope.NoTime)

object SinkRecord {
  private val header = new StructType().add("key", StringType).add("value", BinaryType)

  /** The columns of records on their way to the sink. */
  private[rejoin] val schema: StructType = new StructType()
    .add("topic", StringType)
    .add("key", BinaryType)
    .add("value", BinaryType)
    .add("hash", IntegerType, nullable = false)
    .add("timestamp", LongType)
    .add("headers", ArrayType(header))
    .add("isDeadLetter", BooleanType, nullable = false)
    .add("isRetraction", BooleanType, nullable = false)
    .add("recordMs", LongType, nullable = false)

  /** The record in a row of these columns; a copy. */
  private[rejoin] def of(row: InternalRow): SinkRecord =
    SinkRecord(
      row.getUTF8String(0).toString,
      bytes(row, 1),
      bytes(row, 2),
      row.getInt(3),
      Option.when(!row.isNullAt(4))(row.getLong(4)),
      if (row.isNullAt(5)) null else headers(row.getArray(5)),
      row.getBoolean(6),
      row.getBoolean(7),
      row.getLong(8))

  private def headers(found: ArrayData): Seq[SinkHeader] =
    Seq.tabulate(found.numElements()) { i =>
      val header = found.getStruct(i, 2)
      SinkHeader(header.getUTF8String(0).toString, bytes(header, 1))
    }

  private def bytes(row: InternalRow, column: Int): Array[Byte] =
    if (row.isNullAt(column)) null else row.getBinary(column)
}

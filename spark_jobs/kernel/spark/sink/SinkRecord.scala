package org.apache.spark.sql.rejoin.sink

import scala.reflect.classTag

import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders.{BinaryEncoder, IterableEncoder, OptionEncoder,
  PrimitiveBooleanEncoder, PrimitiveIntEncoder, PrimitiveLongEncoder, StringEncoder}

import org.apache.spark.sql.rejoin.columns.ClassEncoder
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
  private val headers =
    IterableEncoder(
      classTag[Seq[SinkHeader]],
      ClassEncoder[SinkHeader]("key" -> StringEncoder, "value" -> BinaryEncoder),
      containsNull = true,
      lenientSerialization = false)

  private[rejoin] val encoder: AgnosticEncoder[SinkRecord] = ClassEncoder(
    "topic" -> StringEncoder,
    "key" -> BinaryEncoder,
    "value" -> BinaryEncoder,
    "hash" -> PrimitiveIntEncoder,
    "timestamp" -> OptionEncoder(PrimitiveLongEncoder),
    "headers" -> headers,
    "isDeadLetter" -> PrimitiveBooleanEncoder,
    "isRetraction" -> PrimitiveBooleanEncoder,
    "recordMs" -> PrimitiveLongEncoder)
}

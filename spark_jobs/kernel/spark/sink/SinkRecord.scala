package org.apache.spark.sql.rejoin.sink

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

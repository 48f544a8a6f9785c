package org.apache.spark.sql.rejoin.format

import java.nio.ByteBuffer

/** What stands in front of a written key or value whose schema is in a registry: Confluent's zero byte and the
  * number that the driver has found for the schema (spark_jobs/formats/sink_schema.py).
  */
private[format] object Framing {

  /** Nothing for a format without a registry. */
  def prefix(format: FormatSpec): Array[Byte] =
    format.options.get("schema-id").fold(Array.empty[Byte]) { id =>
      ByteBuffer.allocate(5).put(0.toByte).putInt(id.toInt).array
    }
}

package org.apache.spark.sql.rejoin.sink

import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder

/** Records in rows that Spark's own encoder has made. */
object SinkRecordRun {
  private val spark = ExpressionEncoder[SinkRecord]()

  private val full = SinkRecord(
    "topic-\u00e9",
    Array[Byte](1, 0, -1),
    Array[Byte](),
    -7,
    Some(5L),
    Seq(SinkHeader("a", Array[Byte](2)), SinkHeader("a", null), SinkHeader("", Array[Byte]())),
    isDeadLetter = true,
    isRetraction = false,
    recordMs = 1L << 40)

  private val tombstone = full.copy(value = null, headers = Nil, isDeadLetter = false, isRetraction = true)

  private val least = SinkRecord("t", null, null, 0, None, null, isDeadLetter = false, isRetraction = false)

  /** Those that are read as something else; and the columns, if they are others. */
  def differing(): String = {
    val write = spark.createSerializer()
    val records = for {
      record <- Seq(full, tombstone, least)
      read = shown(SinkRecord.of(write(record)))
      if read != shown(record)
    } yield s"$read instead of ${shown(record)}"
    val columns = Option.when(SinkRecord.schema != spark.schema)(s"${SinkRecord.schema} instead of ${spark.schema}")
    (records ++ columns).mkString("\n")
  }

  private def shown(record: SinkRecord): String = {
    def bytes(of: Array[Byte]) = Option(of).map(_.toSeq)
    val headers = Option(record.headers).map(_.map(header => header.key -> bytes(header.value)))
    s"${record.copy(key = null, value = null, headers = null)} ${bytes(record.key)} ${bytes(record.value)} $headers"
  }
}

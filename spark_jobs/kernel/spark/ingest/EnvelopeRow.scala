package org.apache.spark.sql.rejoin.ingest

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders.{BinaryEncoder, PrimitiveByteEncoder,
  PrimitiveIntEncoder, PrimitiveLongEncoder}
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecificInternalRow}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.columns.ClassEncoder
import rejoin.core.row.{Changelog, Envelope}

/** What an operator gives as Spark rows. */
private[rejoin] object ChangelogRow {
  val encoder: AgnosticEncoder[Changelog] = ClassEncoder(
    "kind" -> PrimitiveByteEncoder,
    "hash" -> PrimitiveIntEncoder,
    "left" -> BinaryEncoder,
    "right" -> BinaryEncoder,
    "recordMs" -> PrimitiveLongEncoder)
}

/** Envelopes as Spark rows: their schema and the ordinals of its columns. */
private[rejoin] object EnvelopeRow {
  val encoder: AgnosticEncoder[Envelope] = ClassEncoder(
    "group" -> PrimitiveIntEncoder,
    "side" -> PrimitiveByteEncoder,
    "kind" -> PrimitiveByteEncoder,
    "time" -> PrimitiveLongEncoder,
    "source" -> PrimitiveIntEncoder,
    "seq" -> PrimitiveLongEncoder,
    "key" -> BinaryEncoder,
    "row" -> BinaryEncoder,
    "recordMs" -> PrimitiveLongEncoder)
  val schema: StructType = encoder.schema
  final val Group = 0
  final val Side = 1
  final val Kind = 2
  final val Time = 3
  final val Source = 4
  final val Seq = 5
  final val Key = 6
  final val Row = 7
  final val RecordMs = 8

  /** An empty row, which can be filled again and again. */
  def mutable(): SpecificInternalRow = new SpecificInternalRow(schema.map(_.dataType))

  def apply(e: Envelope): InternalRow =
    new GenericInternalRow(Array[Any](e.group, e.side, e.kind, e.time, e.source, e.seq, e.key, e.row, e.recordMs))

  def read(row: InternalRow): Envelope =
    Envelope(
      row.getInt(Group),
      row.getByte(Side),
      row.getByte(Kind),
      row.getLong(Time),
      row.getInt(Source),
      row.getLong(Seq),
      row.getBinary(Key),
      row.getBinary(Row),
      row.getLong(RecordMs))
}

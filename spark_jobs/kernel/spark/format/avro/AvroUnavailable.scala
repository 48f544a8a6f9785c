package org.apache.spark.sql.rejoin.format.avro

import java.nio.ByteBuffer
import java.util
import java.util.UUID

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.debezium.DebeziumTypes

/** Handles values that a Debezium event leaves out: PostgreSQL stores large values apart from the row and
  * does not log them again when they have not changed.
  *
  * @param heals
  *   whether the values are later taken from the row in state; otherwise the record is bad
  */
private[rejoin] final class AvroUnavailable(heals: Boolean) {

  /** Ordinals of the columns that the event leaves out. */
  var missing: util.BitSet = _

  /** Puts steps around `value` that recognise Debezium's placeholders for the writer's type. */
  def wrap(writer: Schema, value: AvroField): AvroField =
    AvroUnavailable.forms(writer).foldLeft(value)(new PlaceholderCheck(_, _))

  private final class PlaceholderCheck(value: AvroField, form: Array[Byte]) extends AvroField {
    private val first = form(0)

    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      if (in.bytes(in.at) == first && in.startsWith(form)) {
        if (!heals) throw DebeziumTypes.Unavailable.problem
        in.advance(form.length)
        row.setNullAt(ordinal)
        missing.set(ordinal)
      } else value.read(in, row, ordinal)
  }
}

private[rejoin] object AvroUnavailable {
  private val Utf8 = DebeziumTypes.Unavailable.Bytes
  private val Text = DebeziumTypes.Unavailable.Text.toString

  /** Debezium's placeholders for a type in binary form: one for each database type that becomes it. */
  private def forms(writer: Schema): Seq[Array[Byte]] =
    placeholders(writer).map(AvroDecoder.encode(writer, _))

  private def placeholders(writer: Schema): Seq[Any] = writer.getType match {
    case STRING => Seq(Text)
    case BYTES if writer.getProp("logicalType") == null => Seq(ByteBuffer.wrap(Utf8))
    case MAP if present(writer.getValueType) == STRING => Seq(util.Map.of(Text, Text))
    case ARRAY =>
      present(writer.getElementType) match {
        case STRING => Seq(util.List.of(Text), util.List.of(UUID.nameUUIDFromBytes(Utf8).toString))
        case BYTES => Seq(util.List.of(ByteBuffer.wrap(Utf8)))
        case INT => Seq(Utf8.toSeq.map(b => Int.box(b.toInt)).asJava)
        case LONG => Seq(Utf8.toSeq.map(b => Long.box(b.toLong)).asJava)
        case _ => Nil
      }
    case _ => Nil
  }

  private def present(element: Schema): Schema.Type =
    if (element.getType != UNION) element.getType
    else element.getTypes.asScala.toSeq.map(_.getType).filter(_ != NULL) match {
      case Seq(one) => one
      case _ => UNION
    }
}

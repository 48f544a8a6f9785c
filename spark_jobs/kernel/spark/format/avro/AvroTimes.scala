package org.apache.spark.sql.rejoin.format.avro

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.TimeText
import org.apache.spark.sql.rejoin.format.debezium.DebeziumTypes

/** The steps that read dates, times and other named types: by the name that Kafka Connect or Debezium
  * gave the type (`connect.name`), by Avro's logical type, or by the default for a type without both.
  */
private[rejoin] object AvroTimes {

  /** None for types that need no special step. */
  def step(writer: Schema, wanted: DataType, isTime: Boolean): Option[AvroField] = {
    val name = Option(writer.getProp("connect.name")).getOrElse("")
    writer.getType match {
      case INT | LONG =>
        val named = Option(DebeziumTypes.fromNumber(name, wanted, isTime))
        named.orElse(bare(writer, wanted, isTime)).map(new Number(_))
      case STRING =>
        Option(DebeziumTypes.fromText(name, wanted, isTime)).map(new Named(_)).orElse(bareText(name, wanted))
      case BYTES if name == DebeziumTypes.Bits && wanted == StringType => Some(new BitText(bits(writer)))
      case _ => None
    }
  }

  /** Numbers without a type name count days, or milliseconds unless a logical type says otherwise. */
  private def bare(writer: Schema, wanted: DataType, isTime: Boolean): Option[DebeziumTypes.FromNumber] =
    (writer.getType, wanted) match {
      case (INT, DateType) => Some(DebeziumTypes.days(wanted))
      case (LONG, TimestampType | TimestampNTZType) => Some(DebeziumTypes.timestamp(nanosPerUnit(writer), wanted))
      case (_, IntegerType) if isTime => Some(DebeziumTypes.timeOfDay(nanosPerUnit(writer), wanted, isTime))
      case _ => None
    }

  private def nanosPerUnit(writer: Schema): Long = {
    val logical = Option(writer.getProp("logicalType")).getOrElse("")
    if (logical.endsWith("-nanos")) 1L else if (logical.endsWith("-micros")) 1000L else 1000000L
  }

  /** Text without a type name is read as an ISO timestamp; a name would mean another type. */
  private def bareText(name: String, wanted: DataType): Option[AvroField] = wanted match {
    case TimestampType if name.isEmpty => Some(new TimestampText(TimeText.parseInstant))
    case TimestampNTZType if name.isEmpty => Some(new TimestampText(TimeText.parseLocal))
    case _ => None
  }

  private def bits(writer: Schema): Int = writer.getObjectProp("connect.parameters") match {
    case parameters: java.util.Map[_, _] if parameters.containsKey("length") => parameters.get("length").toString.toInt
    case _ => 0
  }

  private final class Number(value: DebeziumTypes.FromNumber) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = value.write(in.long(), row, ordinal)
  }

  private final class Named(value: DebeziumTypes.FromText) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = value.write(in.text().toString, row, ordinal)
  }

  private final class TimestampText(micros: String => Long) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      row.setLong(ordinal, DebeziumTypes.within(micros(in.text().toString)))
  }

  private final class BitText(length: Int) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      row.update(ordinal, DebeziumTypes.bitText(in.slice(in.length()), length))
  }
}

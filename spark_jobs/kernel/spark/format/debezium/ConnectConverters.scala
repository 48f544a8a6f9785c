package org.apache.spark.sql.rejoin.format.debezium

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParser, JsonToken}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.json.JsonConverter.{base64, expect, isNumber}
import org.apache.spark.sql.rejoin.format.json.{JsonArray, JsonConverter, JsonFields, JsonMap, JsonOptions,
  JsonStruct}
import org.apache.spark.sql.rejoin.format.{FieldTarget, SqlTypes}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** How JSON values of Kafka Connect's types are read into columns; docs/formats.md has the table. */
private[rejoin] object ConnectConverters {

  /** Reads the columns of a row from this struct; a column that the struct lacks is NULL. */
  def fields(struct: ConnectType, options: JsonOptions, targets: Seq[FieldTarget]): JsonFields =
    new JsonFields(
      options,
      targets,
      target =>
        struct.fields
          .get(target.field)
          .fold(JsonConverter(target.dataType, target.isTime, options))(
            apply(_, target.dataType, target.isTime, options)))

  def apply(source: ConnectType, wanted: DataType, isTime: Boolean, options: JsonOptions): JsonConverter = {
    val plain = options.copy(debezium = None)
    val found = source.kind match {
      case "struct" => struct(source, wanted, options)
      case "array" => array(source, wanted, options)
      case "map" => map(source, wanted, options)
      case "bytes" => bytes(source, wanted, plain)
      case "string" => text(source, wanted, isTime, plain)
      case "int8" | "int16" | "int32" | "int64" => whole(source, wanted, isTime, plain)
      case "float" | "float32" | "double" | "float64" => fraction(source, wanted, plain)
      case "boolean" => Option.when(wanted == BooleanType || wanted == StringType)(JsonConverter(wanted, false, plain))
      case _ => None
    }
    found.getOrElse(mismatch(source, wanted, isTime))
  }

  private def struct(source: ConnectType, wanted: DataType, options: JsonOptions): Option[JsonConverter] =
    wanted match {
      case _ if source.name == DebeziumTypes.VariableScaleDecimal && DebeziumTypes.takesDecimal(wanted) =>
        Some(new VariableScaleDecimal(wanted))
      case row: StructType => Some(new JsonStruct(row, fields(source, options, _)))
      case StringType => Some(JsonConverter(StringType, false, options))
      case _ => None
    }

  private def array(source: ConnectType, wanted: DataType, options: JsonOptions): Option[JsonConverter] =
    wanted match {
      case array: ArrayType =>
        Some(new JsonArray(array, options, apply(source.element, array.elementType, false, options)))
      case StringType => Some(JsonConverter(StringType, false, options))
      case _ => None
    }

  private def map(source: ConnectType, wanted: DataType, options: JsonOptions): Option[JsonConverter] =
    wanted match {
      case map: MapType if map.keyType == StringType =>
        Some(new JsonMap(map, options, apply(source.element, map.valueType, false, options)))
      case StringType => Some(JsonConverter(StringType, false, options))
      case _ => None
    }

  private def bytes(source: ConnectType, wanted: DataType, plain: JsonOptions): Option[JsonConverter] =
    (source.name, wanted) match {
      case (DebeziumTypes.Decimal, _) if DebeziumTypes.takesDecimal(wanted) =>
        Some(new DecimalOfBytes(wanted, source.parameter("scale", 0), plain.refusePlaceholder))
      case (DebeziumTypes.Bits, StringType) => Some(bitText(source.parameter("length", 0)))
      case (_, BinaryType | StringType) => Some(JsonConverter(wanted, false, plain))
      case _ => None
    }

  private def text(
      source: ConnectType,
      wanted: DataType,
      isTime: Boolean,
      plain: JsonOptions): Option[JsonConverter] = wanted match {
    case StringType => Some(JsonConverter(StringType, false, plain))
    case decimal: DecimalType if source.name.isEmpty => Some(new DebeziumDecimal(decimal, isBase64 = false))
    case _ => Option(DebeziumTypes.fromText(source.name, wanted, isTime)).map(namedText)
  }

  private def whole(
      source: ConnectType,
      wanted: DataType,
      isTime: Boolean,
      plain: JsonOptions): Option[JsonConverter] = {
    val named = DebeziumTypes.fromNumber(source.name, wanted, isTime)
    if (named != null) Some(namedNumber(named))
    else
      wanted match {
        case IntegerType if isTime => None
        case ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | StringType =>
          Some(JsonConverter(wanted, false, plain))
        case decimal: DecimalType => Some(new DebeziumDecimal(decimal, isBase64 = false))
        case _ => None
      }
  }

  private def fraction(source: ConnectType, wanted: DataType, plain: JsonOptions): Option[JsonConverter] =
    wanted match {
      case FloatType => Option.when(source.kind.startsWith("float") && source.kind != "float64")(
          JsonConverter(wanted, false, plain))
      case DoubleType | StringType => Some(JsonConverter(wanted, false, plain))
      case decimal: DecimalType => Some(new DebeziumDecimal(decimal, isBase64 = false))
      case _ => None
    }

  private def mismatch(source: ConnectType, wanted: DataType, isTime: Boolean): JsonConverter = {
    val what = if (source.name.isEmpty) source.kind else s"${source.kind} (${source.name})"
    val column = if (isTime) "TIME" else SqlTypes.text(wanted)
    (_, _, _, _) => throw new BadRecord(Reason.ConnectMismatch, s"the record's schema has $what, the table $column")
  }

  private def namedNumber(number: DebeziumTypes.FromNumber): JsonConverter = (parser, token, row, i) => {
    expect(VALUE_NUMBER_INT, parser, token)
    number.write(parser.getLongValue, row, i)
  }

  private def namedText(text: DebeziumTypes.FromText): JsonConverter = (parser, token, row, i) => {
    expect(VALUE_STRING, parser, token)
    text.write(parser.getText, row, i)
  }

  private def bitText(length: Int): JsonConverter = (parser, token, row, i) =>
    row.update(i, DebeziumTypes.bitText(base64(parser, token), length))
}

/** Connect's Decimal: base64 of the unscaled number, or a JSON number under `decimal.format=NUMERIC`. */
private[rejoin] final class DecimalOfBytes(wanted: DataType, scale: Int, refusePlaceholder: Boolean)
    extends JsonConverter {
  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
    if (isNumber(token)) number(parser.getDecimalValue, row, ordinal)
    else DebeziumTypes.writeDecimal(base64(parser, token, refusePlaceholder), scale, wanted, row, ordinal)

  private def number(value: java.math.BigDecimal, row: InternalRow, ordinal: Int): Unit = wanted match {
    case decimal: DecimalType => row.update(ordinal, DebeziumTypes.fitting(value, decimal))
    case DoubleType => row.setDouble(ordinal, value.doubleValue)
    case _ => row.update(ordinal, UTF8String.fromString(value.toString))
  }
}

/** Debezium's NUMERIC without a scale: `{"scale": 4, "value": base64}`. */
private[rejoin] final class VariableScaleDecimal(wanted: DataType) extends JsonConverter {
  private val fields = new JsonFields(
    JsonOptions.Strict,
    Seq(FieldTarget("scale", IntegerType, 0, None), FieldTarget("value", BinaryType, 1, None)))

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    expect(START_OBJECT, parser, token)
    val parts = new SpecificInternalRow(Seq(IntegerType, BinaryType))
    fields.read(parser, parts)
    if (parts.isNullAt(0) || parts.isNullAt(1))
      throw new BadRecord(Reason.JsonField, "a decimal of variable scale needs 'scale' and 'value'")
    DebeziumTypes.writeDecimal(parts.getBinary(1), parts.getInt(0), wanted, row, ordinal)
  }
}

package org.apache.spark.sql.rejoin.format.json

import java.math.{BigDecimal => JavaDecimal}
import java.util.{Base64, Locale}

import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParser, JsonToken}
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.debezium.{DebeziumConverters, DebeziumTypes}
import org.apache.spark.sql.rejoin.format.{FieldTarget, SqlTypes, TimeText}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Reads one JSON value of an expected type, by the rules of Flink's `json` format: numbers may be
  * texts, a text column takes any value, decimals are rounded half up and NULL where they overflow.
  */
abstract class JsonConverter(val dataType: DataType) {

  /** `token` is the parser's; it is no null and, after a success, the end of the value. */
  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit

  protected final def isNumber(token: JsonToken): Boolean =
    token == VALUE_NUMBER_INT || token == VALUE_NUMBER_FLOAT

  protected final def scalar(parser: JsonParser, token: JsonToken): String = {
    if (token.isStructStart) JsonConverter.refuse(parser, token)
    parser.getText.trim
  }

  protected final def expect(wanted: JsonToken, parser: JsonParser, token: JsonToken): Unit =
    if (token != wanted) JsonConverter.refuse(parser, token)
}

object JsonConverter {
  def apply(dataType: DataType, isTime: Boolean, options: JsonOptions): JsonConverter =
    DebeziumConverters(dataType, isTime, options).getOrElse(plain(dataType, isTime, options))

  private def plain(dataType: DataType, isTime: Boolean, options: JsonOptions): JsonConverter =
    dataType match {
      case BooleanType => JsonBoolean
      case ByteType => JsonByte
      case ShortType => JsonShort
      case IntegerType => if (isTime) JsonTime else JsonInt
      case LongType => JsonLong
      case FloatType => JsonFloat
      case DoubleType => JsonDouble
      case decimal: DecimalType => new JsonDecimal(decimal)
      case StringType => new JsonText(options.refusePlaceholder)
      case BinaryType => new JsonBytes(options.refusePlaceholder)
      case DateType => JsonDate
      case TimestampNTZType => new JsonTimestamp(dataType, new TimeText(options.timestampStandard))
      case TimestampType => new JsonTimestamp(dataType, new TimeText(options.timestampStandard))
      case struct: StructType => new JsonStruct(struct, new JsonFields(options, _))
      case array: ArrayType => new JsonArray(array, options, apply(array.elementType, isTime = false, options))
      case map: MapType => new JsonMap(map, options, apply(map.valueType, isTime = false, options))
      case other => throw new IllegalArgumentException(s"JSON formats cannot read ${SqlTypes.text(other)}")
    }

  /** Leaves the parser at the value's end: the rest can be read where errors are ignored. */
  def refuse(parser: JsonParser, token: JsonToken): Nothing = {
    parser.skipChildren()
    throw new BadRecord(Reason.JsonField, s"unexpected ${token.name.toLowerCase(Locale.ROOT)}")
  }

  private object JsonBoolean extends JsonConverter(BooleanType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setBoolean(
        ordinal,
        if (token.isBoolean) token == VALUE_TRUE
        else java.lang.Boolean.parseBoolean(scalar(parser, token)))
  }

  private object JsonByte extends JsonConverter(ByteType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setByte(ordinal, java.lang.Byte.parseByte(scalar(parser, token)))
  }

  private object JsonShort extends JsonConverter(ShortType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setShort(ordinal, java.lang.Short.parseShort(scalar(parser, token)))
  }

  private object JsonInt extends JsonConverter(IntegerType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setInt(
        ordinal,
        if (isNumber(token)) parser.getIntValue else Integer.parseInt(scalar(parser, token)))
  }

  private object JsonLong extends JsonConverter(LongType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setLong(
        ordinal,
        if (isNumber(token)) parser.getLongValue
        else java.lang.Long.parseLong(scalar(parser, token)))
  }

  private object JsonFloat extends JsonConverter(FloatType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setFloat(
        ordinal,
        if (token == VALUE_NUMBER_FLOAT) parser.getFloatValue
        else java.lang.Float.parseFloat(scalar(parser, token)))
  }

  private object JsonDouble extends JsonConverter(DoubleType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setDouble(
        ordinal,
        if (token == VALUE_NUMBER_FLOAT) parser.getDoubleValue
        else java.lang.Double.parseDouble(scalar(parser, token)))
  }

  private final class JsonDecimal(decimal: DecimalType) extends JsonConverter(decimal) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
      val value =
        if (isNumber(token)) parser.getDecimalValue else Decimals.parse(scalar(parser, token))
      row.update(ordinal, Decimals.fit(value, decimal))
    }
  }

  private final class JsonText(refusePlaceholder: Boolean) extends JsonConverter(StringType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
      val text =
        if (token.isStructStart) Json.mapper.readTree[JsonNode](parser).toString
        else parser.getText
      val value = UTF8String.fromString(text)
      if (refusePlaceholder && DebeziumTypes.Unavailable.isText(value)) throw DebeziumTypes.Unavailable.problem
      row.update(ordinal, value)
    }
  }

  private final class JsonBytes(refusePlaceholder: Boolean) extends JsonConverter(BinaryType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
      expect(VALUE_STRING, parser, token)
      val value = Base64.getDecoder.decode(parser.getText)
      if (refusePlaceholder && java.util.Arrays.equals(value, DebeziumTypes.Unavailable.Bytes))
        throw DebeziumTypes.Unavailable.problem
      row.update(ordinal, value)
    }
  }

  private object JsonDate extends JsonConverter(DateType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setInt(ordinal, TimeText.parseDate(scalar(parser, token)))
  }

  private object JsonTime extends JsonConverter(IntegerType) {
    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setInt(ordinal, TimeText.parseTime(scalar(parser, token)))
  }

  private final class JsonTimestamp(dataType: DataType, format: TimeText)
      extends JsonConverter(dataType) {
    private val isZoned = dataType == TimestampType

    def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
      row.setLong(ordinal, format.parseTimestamp(scalar(parser, token), isZoned))
  }
}

/** `fieldsOf` gives the reader of its fields. */
private[rejoin] final class JsonStruct(struct: StructType, fieldsOf: Seq[FieldTarget] => JsonFields)
    extends JsonConverter(struct) {
  private val types = struct.map(_.dataType)
  private val fields = fieldsOf(struct.fields.toSeq.zipWithIndex.map { case (f, i) =>
    FieldTarget(f.name, f.dataType, i, SqlTypes.of(f))
  })

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    expect(START_OBJECT, parser, token)
    val nested = new SpecificInternalRow(types)
    fields.read(parser, nested)
    row.update(ordinal, nested)
  }
}

/** Reads values one by one out of a container, through a row of one column. */
private final class JsonElement(converter: JsonConverter, options: JsonOptions) {
  private val types = Seq(converter.dataType)

  def read(parser: JsonParser, token: JsonToken): Any =
    if (token == VALUE_NULL) null
    else {
      val slot = new SpecificInternalRow(types)
      try converter.read(parser, token, slot, 0)
      catch {
        case e: Exception if JsonFields.isFieldProblem(e) && options.ignoreParseErrors =>
          slot.setNullAt(0)
      }
      slot.get(0, converter.dataType)
    }
}

private[rejoin] final class JsonArray(array: ArrayType, options: JsonOptions, converter: JsonConverter)
    extends JsonConverter(array) {
  private val element = new JsonElement(converter, options)

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    expect(START_ARRAY, parser, token)
    val values = new ArrayBuffer[Any]
    var next = parser.nextToken()
    while (next != END_ARRAY) {
      values += element.read(parser, next)
      next = parser.nextToken()
    }
    if (options.refusePlaceholder && DebeziumTypes.Unavailable.isNumbers(values))
      throw DebeziumTypes.Unavailable.problem
    row.update(ordinal, new GenericArrayData(values.toArray[Any]))
  }
}

private[rejoin] final class JsonMap(map: MapType, options: JsonOptions, converter: JsonConverter)
    extends JsonConverter(map) {
  require(map.keyType == StringType, s"JSON formats read maps with STRING keys, not ${SqlTypes.text(map)}")
  private val element = new JsonElement(converter, options)

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    expect(START_OBJECT, parser, token)
    val entries = scala.collection.mutable.LinkedHashMap.empty[UTF8String, Any]
    while (parser.nextToken() != END_OBJECT) {
      val key = UTF8String.fromString(parser.currentName())
      entries(key) = element.read(parser, parser.nextToken())
    }
    row.update(
      ordinal,
      ArrayBasedMapData(entries.keys.toArray[Any], entries.values.toArray[Any]))
  }
}

/** Decimals as Flink makes them fit a column. */
object Decimals {

  /** As long as Jackson takes a bare number: the time to read one grows with the square of its digits. */
  private final val MostCharacters = 1000

  /** Throws NumberFormatException. */
  def parse(text: String): JavaDecimal =
    if (text.length <= MostCharacters) new JavaDecimal(text)
    else throw new NumberFormatException(s"a number of ${text.length} characters")

  /** Rounded half up to the type's scale; null where it has more digits than the type.
    *
    * Exponents are looked at first: 1e1000000000 has as many digits once it is written out.
    */
  def fit(value: JavaDecimal, decimal: DecimalType): Decimal = {
    val digitsBeforePoint = value.precision.toLong - value.scale
    if (value.signum != 0 && digitsBeforePoint > decimal.precision - decimal.scale) null
    else {
      val scaled = if (value.scale == decimal.scale) value else rescaled(value, digitsBeforePoint, decimal)
      if (scaled.precision > decimal.precision) null
      else Decimal(scaled, decimal.precision, decimal.scale)
    }
  }

  private def rescaled(value: JavaDecimal, digitsBeforePoint: Long, decimal: DecimalType): JavaDecimal =
    if (value.signum == 0 || digitsBeforePoint < -decimal.scale) JavaDecimal.valueOf(0, decimal.scale)
    else value.setScale(decimal.scale, java.math.RoundingMode.HALF_UP)
}

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
  * strings, a text column takes any value, decimals are rounded half up and NULL where they overflow.
  */
abstract class JsonConverter {

  /** Reads the value that begins at `token`, the parser's current one, which is not null. Leaves the parser
    * at the value's end.
    */
  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit
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
      case wanted: DecimalType => decimal(wanted)
      case StringType => text(options.refusePlaceholder)
      case BinaryType => (parser, token, row, i) => row.update(i, base64(parser, token, options.refusePlaceholder))
      case DateType => JsonDate
      case TimestampNTZType | TimestampType => timestamp(dataType == TimestampType, options)
      case struct: StructType => new JsonStruct(struct, new JsonFields(options, _))
      case array: ArrayType => new JsonArray(array, options, apply(array.elementType, isTime = false, options))
      case map: MapType => new JsonMap(map, options, apply(map.valueType, isTime = false, options))
      case other => throw new IllegalArgumentException(s"JSON formats cannot read ${SqlTypes.text(other)}")
    }

  /** Skips the value, so that the record's other fields can be read where errors are ignored, and throws. */
  private def refuse(parser: JsonParser, token: JsonToken): Nothing = {
    parser.skipChildren()
    throw new BadRecord(Reason.JsonField, s"unexpected ${token.name.toLowerCase(Locale.ROOT)}")
  }

  private[rejoin] def expect(wanted: JsonToken, parser: JsonParser, token: JsonToken): Unit =
    if (token != wanted) refuse(parser, token)

  private[rejoin] def isNumber(token: JsonToken): Boolean = token == VALUE_NUMBER_INT || token == VALUE_NUMBER_FLOAT

  private[rejoin] def scalar(parser: JsonParser, token: JsonToken): String = {
    if (token.isStructStart) refuse(parser, token)
    parser.getText.trim
  }

  private[rejoin] def base64(parser: JsonParser, token: JsonToken, refusePlaceholder: Boolean = false): Array[Byte] = {
    expect(VALUE_STRING, parser, token)
    val value = Base64.getDecoder.decode(parser.getText)
    if (refusePlaceholder && java.util.Arrays.equals(value, DebeziumTypes.Unavailable.Bytes))
      throw DebeziumTypes.Unavailable.problem
    value
  }

  private val JsonBoolean: JsonConverter = (parser, token, row, i) => {
    val isTrue = if (token.isBoolean) token == VALUE_TRUE else java.lang.Boolean.parseBoolean(scalar(parser, token))
    row.setBoolean(i, isTrue)
  }

  private val JsonByte: JsonConverter = (parser, token, row, i) => row.setByte(i, scalar(parser, token).toByte)

  private val JsonShort: JsonConverter = (parser, token, row, i) => row.setShort(i, scalar(parser, token).toShort)

  private val JsonInt: JsonConverter = (parser, token, row, i) =>
    row.setInt(i, if (isNumber(token)) parser.getIntValue else scalar(parser, token).toInt)

  private val JsonLong: JsonConverter = (parser, token, row, i) =>
    row.setLong(i, if (isNumber(token)) parser.getLongValue else scalar(parser, token).toLong)

  private val JsonFloat: JsonConverter = (parser, token, row, i) =>
    row.setFloat(i, if (token == VALUE_NUMBER_FLOAT) parser.getFloatValue else scalar(parser, token).toFloat)

  private val JsonDouble: JsonConverter = (parser, token, row, i) =>
    row.setDouble(i, if (token == VALUE_NUMBER_FLOAT) parser.getDoubleValue else scalar(parser, token).toDouble)

  private val JsonDate: JsonConverter = (parser, token, row, i) =>
    row.setInt(i, TimeText.parseDate(scalar(parser, token)))

  private val JsonTime: JsonConverter = (parser, token, row, i) =>
    row.setInt(i, TimeText.parseTime(scalar(parser, token)))

  private def timestamp(isZoned: Boolean, options: JsonOptions): JsonConverter = {
    val format = new TimeText(options.timestampStandard)
    (parser, token, row, i) => row.setLong(i, format.parseTimestamp(scalar(parser, token), isZoned))
  }

  private def decimal(wanted: DecimalType): JsonConverter = (parser, token, row, i) => {
    val value = if (isNumber(token)) parser.getDecimalValue else Decimals.parse(scalar(parser, token))
    row.update(i, Decimals.fit(value, wanted))
  }

  private def text(refusePlaceholder: Boolean): JsonConverter = (parser, token, row, i) => {
    val text = if (token.isStructStart) Json.mapper.readTree[JsonNode](parser).toString else parser.getText
    val value = UTF8String.fromString(text)
    if (refusePlaceholder && DebeziumTypes.Unavailable.isText(value)) throw DebeziumTypes.Unavailable.problem
    row.update(i, value)
  }
}

/** Reads an object into a row, with the reader that `fieldsOf` makes for its fields. */
private[rejoin] final class JsonStruct(struct: StructType, fieldsOf: Seq[FieldTarget] => JsonFields)
    extends JsonConverter {
  private val types = struct.map(_.dataType)
  private val fields = fieldsOf(FieldTarget.fieldsOf(struct))

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    JsonConverter.expect(START_OBJECT, parser, token)
    val nested = new SpecificInternalRow(types)
    fields.read(parser, nested)
    row.update(ordinal, nested)
  }
}

/** Reads the values of an array or map one by one, each through a row of one column. */
private final class JsonElement(converter: JsonConverter, dataType: DataType, options: JsonOptions) {
  private val types = Seq(dataType)

  def read(parser: JsonParser, token: JsonToken): Any =
    if (token == VALUE_NULL) null
    else {
      val slot = new SpecificInternalRow(types)
      try converter.read(parser, token, slot, 0)
      catch {
        case e: Exception if JsonFields.isFieldProblem(e) && options.ignoreParseErrors =>
          slot.setNullAt(0)
      }
      slot.get(0, dataType)
    }
}

private[rejoin] final class JsonArray(array: ArrayType, options: JsonOptions, converter: JsonConverter)
    extends JsonConverter {
  private val element = new JsonElement(converter, array.elementType, options)

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    JsonConverter.expect(START_ARRAY, parser, token)
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
    extends JsonConverter {
  require(map.keyType == StringType, s"JSON formats read maps with STRING keys, not ${SqlTypes.text(map)}")
  private val element = new JsonElement(converter, map.valueType, options)

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit = {
    JsonConverter.expect(START_OBJECT, parser, token)
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

/** Fits decimals into DECIMAL columns as Flink does. */
object Decimals {

  /** Jackson's own limit for a number: the time to parse one grows with the square of its digits. */
  private final val MostCharacters = 1000

  /** A number from its text; throws NumberFormatException if the text is none or too long. */
  def parse(text: String): JavaDecimal =
    if (text.length <= MostCharacters) new JavaDecimal(text)
    else throw new NumberFormatException(s"a number of ${text.length} characters")

  /** Rounded half up to the type's scale; null where it has more digits than the type.
    *
    * Looks at the exponent first: 1e1000000000 written out would have a billion digits.
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

package org.apache.spark.sql.rejoin.format.debezium

import java.math.{BigDecimal => JavaDecimal}
import java.util.Base64

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParser, JsonToken}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.json.{Decimals, JsonConverter, JsonOptions}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** What Debezium's JSON without a schema adds to Flink's: numbers and base64 whose meaning the
  * table's options tell, and infinities that are refused by name.
  */
private[rejoin] object DebeziumConverters {

  /** None for types that are read as in other JSON. */
  def apply(wanted: DataType, isTime: Boolean, options: JsonOptions): Option[JsonConverter] =
    options.debezium.flatMap { spec =>
      val plain = options.copy(debezium = None)
      def texts = JsonConverter(wanted, isTime, plain)
      val nanos = spec.timestampUnit.map(NanosPerUnit)
      wanted match {
        case decimal: DecimalType => Some(new DebeziumDecimal(decimal, spec.decimals == "base64"))
        case DateType => Some(new DebeziumTime(wanted, DebeziumTypes.days(wanted), texts))
        case TimestampType | TimestampNTZType =>
          Some(new DebeziumTime(wanted, nanos.fold(NoUnit)(DebeziumTypes.timestamp(_, wanted)), texts))
        case IntegerType if isTime =>
          Some(new DebeziumTime(wanted, nanos.fold(NoUnit)(DebeziumTypes.timeOfDay(_, wanted, isTime)), texts))
        case _ => None
      }
    }

  private val NanosPerUnit = Map("millis" -> 1000000L, "micros" -> 1000L, "nanos" -> 1L)

  private val NoUnit: DebeziumTypes.OfNumber = (_, _, _) =>
    throw new BadRecord(
      Reason.JsonField,
      "a bare number, and nothing says what it counts: set 'rejoin.debezium.timestamp-unit'")
}

/** A time as a bare number or as the text that `texts` reads. */
private[rejoin] final class DebeziumTime(wanted: DataType, number: DebeziumTypes.OfNumber, texts: JsonConverter)
    extends JsonConverter(wanted) {
  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
    if (token == VALUE_NUMBER_INT) number.write(parser.getLongValue, row, ordinal)
    else {
      if (token == VALUE_STRING && DebeziumTypes.isInfinity(parser.getText)) {
        val isMinus = parser.getText.charAt(0) == '-'
        DebeziumTypes.refuseInfinity(!isMinus, isMinus)
      }
      texts.read(parser, token, row, ordinal)
    }
}

/** A decimal as a number or text, or as base64 of the unscaled number with the column's own scale.
  *
  * Unlike in Flink's JSON, one with too many digits is refused and not NULL: the database has a value.
  */
private[rejoin] final class DebeziumDecimal(decimal: DecimalType, isBase64: Boolean) extends JsonConverter(decimal) {
  private val ofVariableScale = new VariableScaleDecimal(decimal)

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
    if (isNumber(token)) row.update(ordinal, DebeziumTypes.fitting(parser.getDecimalValue, decimal))
    else if (!isBase64) row.update(ordinal, DebeziumTypes.fitting(ofText(scalar(parser, token)), decimal))
    else if (token == START_OBJECT) ofVariableScale.read(parser, token, row, ordinal)
    else {
      expect(VALUE_STRING, parser, token)
      DebeziumTypes.writeDecimal(Base64.getDecoder.decode(parser.getText), decimal.scale, decimal, row, ordinal)
    }

  private def ofText(text: String): JavaDecimal =
    try Decimals.parse(text)
    catch {
      case _: NumberFormatException =>
        throw new BadRecord(
          Reason.JsonField,
          s"'${text.take(40)}' is no number; for base64 set 'rejoin.debezium.decimals' = 'base64'")
    }
}

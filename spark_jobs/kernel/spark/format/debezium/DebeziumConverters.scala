package org.apache.spark.sql.rejoin.format.debezium

import java.math.{BigDecimal => JavaDecimal}

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParser, JsonToken}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.json.JsonConverter.{base64, isNumber, scalar}
import org.apache.spark.sql.rejoin.format.json.{Decimals, JsonConverter, JsonOptions}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Readers for Debezium's JSON without a schema, where Flink's JSON rules do not do: the table's options
  * give the meaning of numbers and base64, and infinities are rejected for a reason of their own.
  */
private[rejoin] object DebeziumConverters {

  /** None for types that are read as in any JSON. */
  def apply(wanted: DataType, isTime: Boolean, options: JsonOptions): Option[JsonConverter] =
    options.debezium.flatMap { spec =>
      val plain = options.copy(debezium = None)
      def texts = JsonConverter(wanted, isTime, plain)
      val nanos = spec.timestampUnit.map(NanosPerUnit)
      wanted match {
        case decimal: DecimalType => Some(new DebeziumDecimal(decimal, spec.decimals == "base64"))
        case DateType => Some(new DebeziumTime(DebeziumTypes.days(wanted), texts))
        case TimestampType | TimestampNTZType =>
          Some(new DebeziumTime(nanos.fold(NoUnit)(DebeziumTypes.timestamp(_, wanted)), texts))
        case IntegerType if isTime =>
          Some(new DebeziumTime(nanos.fold(NoUnit)(DebeziumTypes.timeOfDay(_, wanted, isTime)), texts))
        case _ => None
      }
    }

  private val NanosPerUnit = Map("millis" -> 1000000L, "micros" -> 1000L, "nanos" -> 1L)

  private val NoUnit: DebeziumTypes.FromNumber = (_, _, _) =>
    throw new BadRecord(
      Reason.JsonField,
      "a number whose unit is unknown: set 'rejoin.debezium.timestamp-unit'")
}

/** Reads a date or time from a number, or from text with the reader `texts`. */
private[rejoin] final class DebeziumTime(number: DebeziumTypes.FromNumber, texts: JsonConverter) extends JsonConverter {
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

/** Reads a decimal from a number or text, or from base64 of the unscaled number with the column's scale.
  *
  * Unlike in Flink's JSON, a decimal with too many digits is rejected instead of NULL: the database has a value.
  */
private[rejoin] final class DebeziumDecimal(decimal: DecimalType, isBase64: Boolean) extends JsonConverter {
  private val ofVariableScale = new VariableScaleDecimal(decimal)

  def read(parser: JsonParser, token: JsonToken, row: InternalRow, ordinal: Int): Unit =
    if (isNumber(token)) row.update(ordinal, DebeziumTypes.fitting(parser.getDecimalValue, decimal))
    else if (!isBase64) row.update(ordinal, DebeziumTypes.fitting(ofText(scalar(parser, token)), decimal))
    else if (token == START_OBJECT) ofVariableScale.read(parser, token, row, ordinal)
    else DebeziumTypes.writeDecimal(base64(parser, token), decimal.scale, decimal, row, ordinal)

  private def ofText(text: String): JavaDecimal =
    try Decimals.parse(text)
    catch {
      case _: NumberFormatException =>
        throw new BadRecord(
          Reason.JsonField,
          s"'${text.take(40)}' is no number; for base64 set 'rejoin.debezium.decimals' = 'base64'")
    }
}

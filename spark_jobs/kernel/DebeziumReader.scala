package org.apache.spark.sql.rejoin

import com.fasterxml.jackson.core.{JsonParser, JsonToken}
import com.fasterxml.jackson.core.JsonToken._

import org.apache.spark.sql.catalyst.InternalRow

/** Debezium's change events as JSON, with or without Kafka Connect's schema around them.
  *
  * {{{
  * {"before": row, "after": row, "source": {"ts_ms": ..}, "op": "c|r|u|d|t|m", "ts_ms": ..}
  * {"schema": .., "payload": {the same}}
  * }}}
  *
  * Tombstones repeat a deletion and say nothing.
  */
final class DebeziumJsonDecoder(spec: IngestSpec, targets: Seq[FieldTarget]) extends ValueDecoder {
  private val options = JsonOptions(spec.valueFormat).copy(refusePlaceholder = true)
  private val afterFields = new JsonFields(options, targets)
  private val keyColumns =
    targets.filter(t => spec.primaryKey.contains(spec.columns(t.ordinal).name))
  private val beforeFields =
    new JsonFields(options.copy(refusePlaceholder = false), if (spec.isUpsert) keyColumns else targets)
  private val event = new DebeziumEvent(spec)
  private var isPayloadNull = false

  override def decode(record: SourceRecord, into: Decoded): Unit = if (record.value != null) {
    isPayloadNull = false
    event.clear()
    Json.readObject(record.value)(readEnvelope(_, into))
    if (!isPayloadNull) event.changes(into)
  }

  private def readEnvelope(parser: JsonParser, into: Decoded): Unit = {
    var token = parser.nextToken()
    while (token == FIELD_NAME) {
      val name = parser.currentName()
      val value = parser.nextToken()
      name match {
        case "before" => event.hasBefore = read(parser, beforeFields, into.before)
        case "after" => event.hasAfter = read(parser, afterFields, into.after)
        case "op" => event.op = parser.getText
        case "ts_ms" =>
          if (value == VALUE_NUMBER_INT) event.source.handledAt(parser.getLongValue) else parser.skipChildren()
        case "source" => readSource(parser)
        case "payload" =>
          if (value == START_OBJECT) readEnvelope(parser, into)
          else isPayloadNull = value == VALUE_NULL
        case _ => parser.skipChildren()
      }
      token = parser.nextToken()
    }
    if (token != END_OBJECT) throw new BadRecord(Reason.JsonMalformed, "the object does not end")
  }

  private def read(parser: JsonParser, fields: JsonFields, row: InternalRow): Boolean = {
    val isRow = parser.currentToken() == START_OBJECT
    if (isRow) fields.read(parser, row) else parser.skipChildren()
    isRow
  }

  /** The parser is at the value of `source`; leaves it at the value's end. */
  private def readSource(parser: JsonParser): Unit =
    if (!event.source.isWanted || parser.currentToken() != START_OBJECT) parser.skipChildren()
    else
      while (parser.nextToken() == FIELD_NAME) readProperty(parser, parser.currentName(), parser.nextToken())

  private def readProperty(parser: JsonParser, name: String, value: JsonToken): Unit =
    if (value.isStructStart) parser.skipChildren()
    else if (value == VALUE_NUMBER_INT) event.source.number(name, parser.getLongValue)
    else event.source.text(name, if (value == VALUE_NULL) null else parser.getText)
}

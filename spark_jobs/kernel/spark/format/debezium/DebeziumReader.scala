package org.apache.spark.sql.rejoin.format.debezium

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParser, JsonToken}

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.json.{Json, JsonFields, JsonOptions}
import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, SourceRecord, ValueDecoder}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}

/** Debezium's change events as JSON, with or without Kafka Connect's schema around them.
  *
  * {{{
  * {"before": row, "after": row, "source": {"ts_ms": ..}, "op": "c|r|u|d|t|m", "ts_ms": ..}
  * {"schema": .., "payload": {the same}}
  * }}}
  *
  * With `schema-include` the schema decides how each value is read, and a record without one is
  * rejected; otherwise schemas are skipped. So are tombstones, which only repeat a deletion, and
  * `"payload": null`, which older converters write for them.
  */
final class DebeziumJsonDecoder(spec: IngestSpec, targets: Seq[FieldTarget]) extends ValueDecoder {
  private val afterOptions =
    JsonOptions(spec.valueFormat).copy(refusePlaceholder = true, debezium = Some(spec.debezium))
  private val beforeOptions = afterOptions.copy(refusePlaceholder = false)
  private val event = new DebeziumEvent(spec)
  private val beforeTargets = event.beforeTargets(targets)
  private val bare = new EnvelopeJson(
    event,
    new JsonFields(beforeOptions, beforeTargets),
    new JsonFields(afterOptions, targets))
  private val wrapped = new ConnectJson(compile)
  private val needsSchema = spec.valueFormat.flag("schema-include")
  private var hasPayload = false

  override def decode(record: SourceRecord, into: Decoded): Unit = if (record.value != null) {
    event.clear()
    if (needsSchema) hasPayload = wrapped.read(record.value)(readEnvelope(_, _, into))
    else {
      Json.readObject(record.value)(readEnvelope(bare, _, into))
      hasPayload = !bare.isPayloadNull
    }
    if (hasPayload) {
      if (event.op == null) throw OtherRecords.problem(OtherRecords.fieldNames(record.value))
      event.changes(into)
    }
  }

  private def readEnvelope(envelope: EnvelopeJson, parser: JsonParser, into: Decoded): Unit = {
    envelope.isPayloadNull = false
    envelope.afterFields.missing = if (spec.debezium.heals) into.missing else null
    envelope.read(parser, into)
  }

  private def compile(schema: ConnectType): EnvelopeJson = {
    def row(name: String): ConnectType = schema.fields.getOrElse(name, DebeziumJsonDecoder.NoRow)
    new EnvelopeJson(
      event,
      ConnectConverters.fields(row("before"), beforeOptions, beforeTargets),
      ConnectConverters.fields(row("after"), afterOptions, targets))
  }
}

private object DebeziumJsonDecoder {
  private val NoRow = ConnectType("struct", "", Map.empty, Map.empty, null)
}

/** Reads Debezium's envelope: its rows with the given readers, the other fields into the event. */
private final class EnvelopeJson(event: DebeziumEvent, beforeFields: JsonFields, val afterFields: JsonFields) {
  var isPayloadNull = false

  def read(parser: JsonParser, into: Decoded): Unit = {
    var token = parser.nextToken()
    while (token == FIELD_NAME) {
      val name = parser.currentName()
      val value = parser.nextToken()
      name match {
        case "before" => event.hasBefore = read(parser, beforeFields, into.before)
        case "after" => event.hasAfter = read(parser, afterFields, into.after)
        case "op" => if (value.isScalarValue) event.op = parser.getText else parser.skipChildren()
        case "ts_ms" =>
          if (value == VALUE_NUMBER_INT) event.source.handledAt(parser.getLongValue) else parser.skipChildren()
        case "source" => readSource(parser)
        case "updateDescription" => // MongoDB's connector alone has it, in each event
          event.isOfDocument = true
          parser.skipChildren()
        case "payload" =>
          if (value == START_OBJECT) read(parser, into)
          else isPayloadNull = value == VALUE_NULL
        case _ => parser.skipChildren()
      }
      token = parser.nextToken()
    }
    if (token != END_OBJECT) throw new BadRecord(Reason.JsonMalformed, "the object does not end")
  }

  private def read(parser: JsonParser, fields: JsonFields, row: InternalRow): Boolean = {
    val isRow = parser.currentToken() == START_OBJECT
    if (isRow) fields.read(parser, row)
    else {
      if (parser.currentToken() == VALUE_STRING) event.isOfDocument = true
      parser.skipChildren()
    }
    isRow
  }

  /** Reads `source`, at whose value the parser is, up to the value's end. */
  private def readSource(parser: JsonParser): Unit =
    if (!event.source.isWanted || parser.currentToken() != START_OBJECT) parser.skipChildren()
    else
      while (parser.nextToken() == FIELD_NAME) readProperty(parser, parser.currentName(), parser.nextToken())

  private def readProperty(parser: JsonParser, name: String, value: JsonToken): Unit =
    if (value.isStructStart) parser.skipChildren()
    else if (value == VALUE_NUMBER_INT) event.source.number(name, parser.getLongValue)
    else event.source.text(name, if (value == VALUE_NULL) null else parser.getText)
}

/** Debezium records that are not row changes, recognised by the names of their fields. */
private[rejoin] object OtherRecords {
  private val TransactionFields = Seq("status", "id", "event_count", "data_collections")

  /** The problem of a value that has these fields and no `op`. */
  def problem(names: collection.Set[String]): BadRecord = {
    val known = problemOf(names)
    if (known == null) new BadRecord(Reason.Envelope, "no 'op': not an event of Debezium") else known
  }

  /** The same; null if the fields may be those of a row. */
  def problemOf(names: collection.Set[String]): BadRecord =
    if (TransactionFields.forall(names))
      new BadRecord(Reason.Transaction, "the begin or end of a transaction is no row")
    else if (names.size == 1 && names("ts_ms")) new BadRecord(Reason.Heartbeat, "a heartbeat is no row")
    else if (names("ddl") && names("databaseName"))
      new BadRecord(Reason.SchemaChange, "a change of the database's schema is no row")
    else if (names("op") && names("message") && names("source"))
      new BadRecord(Reason.Message, "a logical message (op m) is no row")
    else null

  /** The names of a JSON object's fields, or of its payload's where it has a schema. */
  def fieldNames(value: Array[Byte]): collection.Set[String] = {
    val names = scala.collection.mutable.Set.empty[String]
    Json.readObject(value)(addNames(_, names))
    names
  }

  private def addNames(parser: JsonParser, names: scala.collection.mutable.Set[String]): Unit =
    while (parser.nextToken() == FIELD_NAME) {
      val name = parser.currentName()
      if (parser.nextToken() == START_OBJECT && name == "payload") addNames(parser, names)
      else {
        if (name != "schema") names += name
        parser.skipChildren()
      }
    }
}

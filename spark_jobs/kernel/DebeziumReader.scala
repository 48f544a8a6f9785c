package org.apache.spark.sql.rejoin

import com.fasterxml.jackson.core.JsonParser
import com.fasterxml.jackson.core.JsonToken._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData
import org.apache.spark.unsafe.types.UTF8String

/** Debezium's change events as JSON, with or without Kafka Connect's schema around them.
  *
  * {{{
  * {"before": row, "after": row, "source": {"ts_ms": ..}, "op": "c|r|u|d|t|m", "ts_ms": ..}
  * {"schema": .., "payload": {the same}}
  * }}}
  *
  * A table with a primary key reads upserts: the row after, or a deletion by the key columns of the
  * row before, whose other columns a database may have left empty. A table without one reads full
  * retractions, which need the complete row before. Tombstones repeat a deletion and say nothing.
  */
final class DebeziumDecoder(spec: IngestSpec, targets: Seq[FieldTarget]) extends ValueDecoder {
  private val isUpsert = spec.isUpsert
  private val options = JsonOptions(spec.valueFormat).copy(refusePlaceholder = true)
  private val afterFields = new JsonFields(options, targets)
  private val keyColumns =
    targets.filter(t => spec.primaryKey.contains(spec.columns(t.ordinal).name))
  private val beforeFields =
    new JsonFields(options.copy(refusePlaceholder = false), if (isUpsert) keyColumns else targets)
  private val metadata = new DebeziumMetadata(spec.columnsFrom("metadata"), spec.timeZone)
  private var hasBefore, hasAfter, isPayloadNull = false
  private var op: String = _

  override def decode(value: Array[Byte], into: Decoded): Unit = if (value != null) {
    hasBefore = false
    hasAfter = false
    isPayloadNull = false
    op = null
    metadata.clear()
    Json.readObject(value)(readEnvelope(_, into))
    if (!isPayloadNull) changes(into)
  }

  private def readEnvelope(parser: JsonParser, into: Decoded): Unit = {
    var token = parser.nextToken()
    while (token == FIELD_NAME) {
      val name = parser.currentName()
      val value = parser.nextToken()
      name match {
        case "before" => hasBefore = read(parser, beforeFields, into.before)
        case "after" => hasAfter = read(parser, afterFields, into.after)
        case "op" => op = parser.getText
        case "ts_ms" => metadata.handledAt(parser)
        case "source" => metadata.source(parser)
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

  private def changes(into: Decoded): Unit = op match {
    case "c" | "r" => add(into, if (isUpsert) RowKind.UpdateAfter else RowKind.Insert)
    case "u" =>
      if (!isUpsert) remove(into, RowKind.UpdateBefore)
      add(into, RowKind.UpdateAfter)
    case "d" => remove(into, RowKind.Delete)
    case "t" => throw new BadRecord(Reason.Truncate, "the table was truncated (op t)")
    case "m" => throw new BadRecord(Reason.Message, "a logical message (op m) is no row")
    case null => throw new BadRecord(Reason.Envelope, "no 'op': not an event of Debezium")
    case other => throw new BadRecord(Reason.UnknownOp, s"unknown op '$other'")
  }

  private def add(into: Decoded, kind: Byte): Unit = {
    if (!hasAfter) throw new BadRecord(Reason.MissingAfter, s"op $op without the row after")
    into.afterKind = kind
    metadata.write(into.after)
  }

  private def remove(into: Decoded, kind: Byte): Unit = {
    if (!hasBefore)
      throw new BadRecord(
        Reason.MissingBefore,
        s"op $op without the row before: set REPLICA IDENTITY FULL, or declare a PRIMARY KEY")
    into.beforeKind = kind
    metadata.write(into.before)
  }
}

/** What a Debezium event says about itself, for METADATA columns. */
private final class DebeziumMetadata(targets: Seq[FieldTarget], timeZone: String) {
  private val wanted = targets.filter(t => DebeziumMetadata.Keys.contains(t.field)).toArray
  private val times = wanted.map(new MetadataTime(_, timeZone))
  private val wantsProperties = wanted.exists(_.field == DebeziumMetadata.Properties)
  private var handledMs, changedMs: java.lang.Long = _
  private var database, schema, table: String = _
  private val properties = new java.util.LinkedHashMap[String, String]

  def clear(): Unit = {
    handledMs = null
    changedMs = null
    database = null
    schema = null
    table = null
    if (wantsProperties) properties.clear()
  }

  def handledAt(parser: JsonParser): Unit = handledMs = number(parser)

  /** The parser is at the value of `source`; leaves it at the value's end. */
  def source(parser: JsonParser): Unit =
    if (wanted.isEmpty || parser.currentToken() != START_OBJECT) parser.skipChildren()
    else
      while (parser.nextToken() == FIELD_NAME) {
        val name = parser.currentName()
        val value = parser.nextToken()
        name match {
          case "ts_ms" => changedMs = number(parser)
          case "db" => database = text(parser)
          case "schema" => schema = text(parser)
          case "table" => table = text(parser)
          case _ => ()
        }
        if (value.isStructStart) parser.skipChildren()
        else if (wantsProperties) properties.put(name, text(parser))
      }

  private def number(parser: JsonParser): java.lang.Long =
    if (parser.currentToken() == VALUE_NUMBER_INT) parser.getLongValue
    else {
      parser.skipChildren()
      null
    }

  private def text(parser: JsonParser): String =
    if (parser.currentToken() == VALUE_NULL) null else parser.getText

  def write(row: InternalRow): Unit = {
    var i = 0
    while (i < wanted.length) {
      write(row, wanted(i).ordinal, i)
      i += 1
    }
  }

  private def write(row: InternalRow, ordinal: Int, i: Int): Unit = wanted(i).field match {
    case DebeziumMetadata.ChangedAt => time(changedMs, row, i)
    case DebeziumMetadata.HandledAt => time(handledMs, row, i)
    case DebeziumMetadata.Database => row.update(ordinal, UTF8String.fromString(database))
    case DebeziumMetadata.Schema => row.update(ordinal, UTF8String.fromString(schema))
    case DebeziumMetadata.Table => row.update(ordinal, UTF8String.fromString(table))
    case DebeziumMetadata.Properties => row.update(ordinal, propertyMap)
  }

  private def propertyMap: ArrayBasedMapData =
    ArrayBasedMapData(
      properties.keySet.toArray.map(k => UTF8String.fromString(k.asInstanceOf[String])),
      properties.values.toArray.map(v => UTF8String.fromString(v.asInstanceOf[String])))

  private def time(ms: java.lang.Long, row: InternalRow, i: Int): Unit =
    if (ms == null) row.setNullAt(wanted(i).ordinal) else times(i).write(ms, row)
}

object DebeziumMetadata {
  final val ChangedAt = "value.source.timestamp"
  final val HandledAt = "value.ingestion-timestamp"
  final val Database = "value.source.database"
  final val Schema = "value.source.schema"
  final val Table = "value.source.table"
  final val Properties = "value.source.properties"
  private[rejoin] val Keys = Set(ChangedAt, HandledAt, Database, Schema, Table, Properties)
}

/** `{"op": "+I|-U|+U|-D", "data": {row}}`: a complete changelog, one record for each row. */
final class ChangelogJsonDecoder(format: FormatSpec, targets: Seq[FieldTarget])
    extends ValueDecoder {
  private val fields = new JsonFields(JsonOptions(format), targets)
  private var op: String = _
  private var hasData = false

  override def decode(value: Array[Byte], into: Decoded): Unit = if (value != null) {
    op = null
    hasData = false
    Json.readObject(value)(read(_, into.after))
    if (!hasData) throw new BadRecord(Reason.MissingAfter, "no 'data'")
    into.afterKind = kind
  }

  private def read(parser: JsonParser, row: InternalRow): Unit =
    while (parser.nextToken() == FIELD_NAME) {
      val name = parser.currentName()
      val value = parser.nextToken()
      if (name == "data" && value == START_OBJECT) {
        fields.read(parser, row)
        hasData = true
      } else if (name == "op") op = parser.getText
      else parser.skipChildren()
    }

  private def kind: Byte =
    try RowKind.parse(op)
    catch {
      case _: IllegalArgumentException =>
        throw new BadRecord(Reason.UnknownOp, s"unknown op '$op'")
    }
}

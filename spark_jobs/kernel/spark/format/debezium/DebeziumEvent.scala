package org.apache.spark.sql.rejoin.format.debezium

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, MetadataTime}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}
import rejoin.core.row.RowKind

/** One change event of Debezium in any encoding: a reader fills it, then `changes` gives the row changes.
  *
  * A table with a primary key reads upserts: the row after the change, or a deletion by the key columns
  * of the row before it, whose other columns the database may leave empty. A table without a primary
  * key, or with complete rows before (`fullBefore`), reads full retractions.
  */
private[rejoin] final class DebeziumEvent(spec: IngestSpec) {
  val source = new DebeziumSource(spec)
  var op: String = _
  var hasBefore, hasAfter: Boolean = _

  /** Whether it is MongoDB's, whose rows are documents as text. */
  var isOfDocument: Boolean = _

  /** The targets to read from the row before a change. */
  def beforeTargets(targets: Seq[FieldTarget]): Seq[FieldTarget] =
    if (spec.isUpsert) targets.filter(t => spec.isOfKey(t.ordinal)) else targets

  def clear(): Unit = {
    op = null
    hasBefore = false
    hasAfter = false
    isOfDocument = false
    source.clear()
  }

  def changes(into: Decoded): Unit = op match {
    case _ if isOfDocument =>
      throw new BadRecord(
        Reason.Document,
        "a change of a document, as of MongoDB: the connector's transform ExtractNewDocumentState makes rows of them")
    case "c" | "r" => add(into, if (spec.isUpsert) RowKind.UpdateAfter else RowKind.Insert)
    case "u" =>
      if (!spec.isUpsert) remove(into, RowKind.UpdateBefore)
      add(into, RowKind.UpdateAfter)
    case "d" => remove(into, RowKind.Delete)
    case "t" if spec.debezium.retractsOnTruncate => truncate(into)
    case "t" => throw new BadRecord(Reason.Truncate, "the table was truncated (op t)")
    case "m" => throw new BadRecord(Reason.Message, "a logical message (op m) is no row")
    case null => throw new BadRecord(Reason.Envelope, "no 'op': not an event of Debezium")
    case other => throw new BadRecord(Reason.UnknownOp, s"unknown op '$other'")
  }

  private def truncate(into: Decoded): Unit = {
    into.truncates = true
    source.writePosition(into)
  }

  private def add(into: Decoded, kind: Byte): Unit = {
    if (!hasAfter) throw new BadRecord(Reason.MissingAfter, s"op $op without the row after")
    into.afterKind = kind
    source.write(into.after)
    source.writePosition(into)
  }

  private def remove(into: Decoded, kind: Byte): Unit = {
    if (!hasBefore)
      throw new BadRecord(
        Reason.MissingBefore,
        s"op $op without the row before: set REPLICA IDENTITY FULL, or declare a PRIMARY KEY")
    into.beforeKind = kind
    source.write(into.before)
    source.writePosition(into)
  }
}

/** The origin of an event (`source`, `ts_ms`), for METADATA columns and positions. */
private[rejoin] final class DebeziumSource(spec: IngestSpec) {
  private val wanted = spec.columnsFrom("metadata").filter(t => DebeziumSource.Keys.contains(t.field)).toArray
  private val times = wanted.map(new MetadataTime(_, spec.timeZone))
  private val wantsProperties = wanted.exists(_.field == DebeziumSource.Properties)

  private val position = if (spec.debezium.positions) new LogPosition else null

  /** Whether any field of `source` is used. */
  val isWanted: Boolean = wanted.nonEmpty || spec.debezium.positions

  /** Whether this field of `source` is used. */
  def wants(name: String): Boolean = wantsProperties ||
    wanted.exists(_.field == DebeziumSource.KeyOf.getOrElse(name, "")) ||
    (position != null && LogPosition.Fields(name))

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
    if (position != null) position.clear()
  }

  /** Takes the event's own `ts_ms`. */
  def handledAt(ms: Long): Unit = handledMs = ms

  /** Takes a number field of `source`. */
  def number(name: String, value: Long): Unit = {
    if (name == "ts_ms") changedMs = value
    if (position != null) position.number(name, value)
    if (wantsProperties) properties.put(name, value.toString)
  }

  /** Takes a text field of `source`, which may be null. */
  def text(name: String, value: String): Unit = {
    name match {
      case "db" => database = value
      case "schema" => schema = value
      case "table" => table = value
      case _ => ()
    }
    if (wantsProperties) properties.put(name, value)
    if (position != null) position.text(name, value)
  }

  /** Writes the change's position in the database's log, if rows of the table carry it. */
  def writePosition(into: Decoded): Unit = if (position != null) position.write(into)

  def write(row: InternalRow): Unit = {
    var i = 0
    while (i < wanted.length) {
      write(row, wanted(i).ordinal, i)
      i += 1
    }
  }

  private def write(row: InternalRow, ordinal: Int, i: Int): Unit = wanted(i).field match {
    case DebeziumSource.ChangedAt => time(changedMs, row, i)
    case DebeziumSource.HandledAt => time(handledMs, row, i)
    case DebeziumSource.Database => row.update(ordinal, UTF8String.fromString(database))
    case DebeziumSource.Schema => row.update(ordinal, UTF8String.fromString(schema))
    case DebeziumSource.Table => row.update(ordinal, UTF8String.fromString(table))
    case DebeziumSource.Properties => row.update(ordinal, propertyMap)
  }

  private def propertyMap: ArrayBasedMapData =
    ArrayBasedMapData(
      properties.keySet.toArray.map(k => UTF8String.fromString(k.asInstanceOf[String])),
      properties.values.toArray.map(v => UTF8String.fromString(v.asInstanceOf[String])))

  private def time(ms: java.lang.Long, row: InternalRow, i: Int): Unit =
    if (ms == null) row.setNullAt(wanted(i).ordinal) else times(i).write(ms, row)
}

object DebeziumSource {
  final val ChangedAt = "value.source.timestamp"
  final val HandledAt = "value.ingestion-timestamp"
  final val Database = "value.source.database"
  final val Schema = "value.source.schema"
  final val Table = "value.source.table"
  final val Properties = "value.source.properties"
  private val KeyOf = Map("ts_ms" -> ChangedAt, "db" -> Database, "schema" -> Schema, "table" -> Table)
  private[rejoin] val Keys = Set(ChangedAt, HandledAt, Database, Schema, Table, Properties)
}

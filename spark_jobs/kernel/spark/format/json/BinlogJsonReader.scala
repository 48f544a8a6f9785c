package org.apache.spark.sql.rejoin.format.json

import java.util.regex.Pattern

import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParser, JsonToken}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.types.{ArrayType, DataType, IntegerType, LongType, MapType, StringType}

import org.apache.spark.sql.rejoin.format.debezium.DebeziumTypes
import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, FormatSpec, MetadataTime, SourceRecord, ValueDecoder}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}
import rejoin.core.row.RowKind

/** What Canal and Maxwell, which both read MySQL's binlog, call the same things.
  *
  * @param isArray
  *   whether `data` and `old` are arrays, so that one record changes several rows
  * @param passedOver
  *   types of records that are skipped as Flink skips them
  * @param metadata
  *   the top-level fields that metadata columns read, by key
  * @param tsMs
  *   the milliseconds in a unit of the times
  */
final case class BinlogDialect(
    insert: String,
    update: String,
    delete: String,
    isArray: Boolean,
    passedOver: Set[String],
    metadata: Map[String, String],
    tsMs: Long)

object BinlogDialect {
  private val Source = Map("value.database" -> "database", "value.table" -> "table")

  val Canal: BinlogDialect = BinlogDialect(
    "INSERT",
    "UPDATE",
    "DELETE",
    isArray = true,
    passedOver = Set("CREATE"),
    Source ++ Map(
      "value.sql-type" -> "sqlType",
      "value.pk-names" -> "pkNames",
      "value.ingestion-timestamp" -> "ts",
      "value.event-timestamp" -> "es"),
    tsMs = 1)

  val Maxwell: BinlogDialect = BinlogDialect(
    "insert",
    "update",
    "delete",
    isArray = false,
    passedOver = Set.empty,
    Source ++ Map("value.primary-key-columns" -> "primary_key_columns", "value.ingestion-timestamp" -> "ts"),
    tsMs = 1000)
}

/** `{"type": .., "data": rows, "old": the fields that an update changed, as they were}`: a complete changelog.
  *
  * `type` may follow the rows, and rows of tables that the options leave out may not fit the columns: a record
  * is read twice, first without its rows.
  */
final class BinlogJsonDecoder(spec: IngestSpec, targets: Seq[FieldTarget], dialect: BinlogDialect)
    extends ValueDecoder {
  private val head = new BinlogHead(spec, dialect)
  private val tables = new BinlogFilter(spec.valueFormat)
  private val data = new BinlogRows("data", spec, targets, dialect)
  private val old = new BinlogRows("old", spec, targets, dialect)
  private var kind: Byte = _
  private var at = 0

  override def decode(record: SourceRecord, into: Decoded): Unit = {
    data.clear()
    old.clear()
    at = 0
    if (record.value != null && record.value.nonEmpty) {
      head.read(record.value)
      if (tables.accepts(head) && !dialect.passedOver(head.op)) readRows(record.value)
    }
    if (hasMore) decodeMore(into)
  }

  override def hasMore: Boolean = at < data.size

  override def decodeMore(into: Decoded): Unit = {
    kind match {
      case RowKind.Insert =>
        put(data, into.after)
        into.afterKind = kind
      case RowKind.Delete =>
        put(data, into.before)
        into.beforeKind = kind
      case _ =>
        put(data, into.after)
        into.afterKind = RowKind.UpdateAfter
        if (!spec.isUpsert) {
          putBefore(into.before)
          into.beforeKind = RowKind.UpdateBefore
        }
    }
    at += 1
  }

  private def readRows(value: Array[Byte]): Unit = {
    kind = kindOf(head.op)
    Json.readObject(value) { parser =>
      while (parser.nextToken() == FIELD_NAME) {
        val name = parser.currentName()
        val token = parser.nextToken()
        if (name == "data") data.read(parser, token)
        else if (name == "old" && kind == RowKind.UpdateAfter) old.read(parser, token)
        else parser.skipChildren()
      }
    }
    if (!data.isThere) throw new BadRecord(Reason.MissingAfter, "no 'data'")
    if (kind == RowKind.UpdateAfter && old.size < data.size)
      throw new BadRecord(Reason.MissingBefore, "an update without 'old' for each row")
  }

  private def kindOf(op: String): Byte =
    if (op == dialect.insert) RowKind.Insert
    else if (op == dialect.update) RowKind.UpdateAfter
    else if (op == dialect.delete) RowKind.Delete
    else throw new BadRecord(Reason.UnknownOp, s"unknown type '$op'")

  private def put(rows: BinlogRows, into: InternalRow): Unit = {
    for (i <- targets.indices) rows.copy(at, i, into)
    head.write(into)
  }

  /** The fields that `old` does not name have not changed. */
  private def putBefore(into: InternalRow): Unit = {
    for (i <- targets.indices) (if (old.has(at, i)) old else data).copy(at, i, into)
    head.write(into)
  }
}

/** The rows in `data` or in `old` of one record. */
private final class BinlogRows(name: String, spec: IngestSpec, targets: Seq[FieldTarget], dialect: BinlogDialect) {
  private val fields = new JsonFields(JsonOptions(spec.valueFormat), targets)
  private val types = spec.decodedTypes
  private val ordinals = targets.map(_.ordinal).toArray
  private val rows = new ArrayBuffer[InternalRow]
  private val found = new ArrayBuffer[Array[Boolean]]
  private var count = 0
  private var isPresent = false

  /** Whether the record has them. */
  def isThere: Boolean = isPresent

  def size: Int = count

  def clear(): Unit = {
    count = 0
    isPresent = false
  }

  /** Whether a row names the field of a target. */
  def has(row: Int, target: Int): Boolean = found(row)(target)

  /** Copies the column of a target. */
  def copy(row: Int, target: Int, into: InternalRow): Unit = {
    val i = ordinals(target)
    if (rows(row).isNullAt(i)) into.setNullAt(i) else into.update(i, rows(row).get(i, types(i)))
  }

  /** Reads the value that begins at `token`, up to its end. */
  def read(parser: JsonParser, token: JsonToken): Unit = {
    clear()
    if (token != VALUE_NULL) {
      if (dialect.isArray) readArray(parser, token) else add(parser, token)
      isPresent = true
    }
  }

  private def readArray(parser: JsonParser, token: JsonToken): Unit = {
    if (token != START_ARRAY) throw new BadRecord(Reason.JsonField, s"'$name' is no array")
    var next = parser.nextToken()
    while (next != END_ARRAY) {
      add(parser, next)
      next = parser.nextToken()
    }
  }

  private def add(parser: JsonParser, token: JsonToken): Unit = {
    if (token != START_OBJECT) throw new BadRecord(Reason.JsonField, s"a row in '$name' is no object")
    if (count == rows.size) {
      rows += new SpecificInternalRow(types)
      found += new Array[Boolean](ordinals.length)
    }
    fields.read(parser, rows(count))
    fields.copyFound(found(count))
    count += 1
  }
}

/** The fields of a record beside its rows: `type`, the names of database and table, metadata. */
private final class BinlogHead(spec: IngestSpec, dialect: BinlogDialect) {
  private val columns = spec.columnsFrom("metadata").filter(t => dialect.metadata.contains(t.field))
  private val names = (BinlogHead.Texts ++ columns.map(t => dialect.metadata(t.field))).distinct
  private val types = names.map(BinlogHead.typeOf)
  private val row = new SpecificInternalRow(types)
  private val found = new Array[Boolean](names.size)
  private val fields = new JsonFields(
    JsonOptions(spec.valueFormat),
    names.indices.map(i => FieldTarget(names(i), types(i), i, None)))
  private val writers = columns.map(writer).toArray

  def read(value: Array[Byte]): Unit = {
    Json.readObject(value)(fields.read(_, row))
    fields.copyFound(found)
  }

  def op: String = text("type")

  /** The text of a field; `null` if it is null, as in Flink. */
  def text(name: String): String = {
    val i = names.indexOf(name)
    if (row.isNullAt(i)) "null" else row.getUTF8String(i).toString
  }

  def has(name: String): Boolean = found(names.indexOf(name))

  /** Writes the metadata columns. */
  def write(into: InternalRow): Unit = writers.foreach(_(into))

  private def writer(target: FieldTarget): InternalRow => Unit = {
    val name = dialect.metadata(target.field)
    val i = names.indexOf(name)
    lazy val time = new MetadataTime(target, spec.timeZone)
    into =>
      if (row.isNullAt(i)) into.setNullAt(target.ordinal)
      else if (types(i) == LongType)
        time.write(DebeziumTypes.within(Math.multiplyExact(row.getLong(i), dialect.tsMs)), into)
      else into.update(target.ordinal, row.get(i, types(i)))
  }
}

private object BinlogHead {
  private val Texts = Seq("type", "database", "table")

  private def typeOf(name: String): DataType = name match {
    case "ts" | "es" => LongType
    case "sqlType" => MapType(StringType, IntegerType)
    case "pkNames" | "primary_key_columns" => ArrayType(StringType)
    case _ => StringType
  }
}

/** Which records are of the tables that `database.include` and `table.include` name. */
private final class BinlogFilter(format: FormatSpec) {
  private val patterns = Seq("database", "table").flatMap { field =>
    format.options.get(s"$field.include").map(field -> Pattern.compile(_))
  }

  def accepts(head: BinlogHead): Boolean = patterns.forall { case (field, pattern) =>
    if (!head.has(field)) throw new BadRecord(Reason.JsonMissingField, s"no '$field', which '$field.include' is about")
    pattern.matcher(head.text(field)).matches()
  }
}

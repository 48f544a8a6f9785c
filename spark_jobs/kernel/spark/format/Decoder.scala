package org.apache.spark.sql.rejoin.format

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.avro.{AvroDecoder, AvroUnavailable, DebeziumAvroDecoder, PlainAvroDecoder}
import org.apache.spark.sql.rejoin.format.csv.CsvDecoder
import org.apache.spark.sql.rejoin.format.debezium.{AddedFields, ConnectRowDecoder, DebeziumJsonDecoder, OtherRecords,
  UnwrappedDecoder}
import org.apache.spark.sql.rejoin.format.json.{BinlogDialect, BinlogJsonDecoder, ChangelogJsonDecoder,
  FramedJsonDecoder, JsonDecoder, JsonOptions}
import org.apache.spark.sql.rejoin.format.protobuf.ProtobufDecoder
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}
import rejoin.core.row.{RowKind, SourcePosition}

/** A Kafka record of the source. One object is filled again for each record of a task. */
final class SourceRecord {
  var topic: UTF8String = _
  var partition: Int = _
  var offset: Long = _
  var timestampMs: Long = _
  var timestampType: Int = _
  var key: Array[Byte] = _
  var value: Array[Byte] = _

  /** Array of (key, value); null for none. */
  var headers: ArrayData = _

  def at: String = s"$topic[$partition]@$offset"
}

object SourceRecord {
  val HeaderType: StructType = new StructType().add("key", StringType).add("value", BinaryType)
}

/** A field of a format, and the column of the decoded row that it is read into.
  *
  * @param sqlType
  *   the type as Flink SQL writes it, where it is known
  */
final case class FieldTarget(field: String, dataType: DataType, ordinal: Int, sqlType: Option[String]) {
  val isTime: Boolean = SqlTypes.isTime(sqlType)

  /** The type as messages show it. */
  def typeText: String = SqlTypes.text(dataType, sqlType)
}

object FieldTarget {

  /** The fields of a struct, each read into the column of its place in the struct. */
  def fieldsOf(struct: StructType): Seq[FieldTarget] =
    struct.fields.toSeq.zipWithIndex.map { case (f, i) => FieldTarget(f.name, f.dataType, i, SqlTypes.of(f)) }
}

/** The row changes of one record: the row before the change, the row after it, or both.
  *
  * Reused for each record; columns that no decoder writes stay NULL.
  */
final class Decoded(types: Seq[DataType]) {
  val before = new SpecificInternalRow(types)
  val after = new SpecificInternalRow(types)

  /** A row kind, or [[Decoded.Absent]]. */
  var beforeKind: Byte = Decoded.Absent
  var afterKind: Byte = Decoded.Absent

  /** Ordinals of columns of `after` whose values the event leaves out; they are NULL there. */
  val missing = new java.util.BitSet

  val position = new SourcePosition

  /** Whether the position belongs to one change of one row, as PostgreSQL's `lsn` does. */
  var isOneChange = false

  /** Whether the event truncates the table. */
  var truncates = false

  def clear(): Unit = {
    beforeKind = Decoded.Absent
    afterKind = Decoded.Absent
    missing.clear()
    position.clear()
    isOneChange = false
    truncates = false
  }
}

object Decoded {
  final val Absent: Byte = -1
}

/** Decodes bytes into the columns of a row, and writes NULL into columns for which they have no value.
  *
  * One instance per task. Throws [[BadRecord]] for bytes that it cannot read.
  */
trait RowDecoder {

  /** `bytes` is the key or the value of `record`, whose headers may say how it is encoded. */
  def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit
}

/** Decodes the value of a record, which may be null, into row changes. */
trait ValueDecoder {
  def decode(record: SourceRecord, into: Decoded): Unit

  /** Whether the last record has more row changes, which [[decodeMore]] gives. */
  def hasMore: Boolean = false

  def decodeMore(into: Decoded): Unit = ()
}

object Decoder {

  /** A decoder for the key or for a value that is a plain row. */
  def forRow(format: FormatSpec, targets: Seq[FieldTarget], isKey: Boolean): RowDecoder = format.name match {
    case "json" => new JsonDecoder(JsonOptions(format), targets)
    case "json-registry" => new FramedJsonDecoder(format, targets, isKey)
    case "csv" => new CsvDecoder(format, targets)
    case "avro" => new PlainAvroDecoder(format, targets)
    case "avro-confluent" => new AvroDecoder(format, targets, isKey)
    case "protobuf" | "proto-registry" => new ProtobufDecoder(format, targets)
    case "raw" => RawDecoder(format, targets)
    case other => throw new IllegalArgumentException(s"format '$other' cannot hold plain rows")
  }

  def forValue(spec: IngestSpec): ValueDecoder = {
    val targets = spec.columnsFrom("value")
    spec.valueFormat.name match {
      case "debezium-json" => new DebeziumJsonDecoder(spec, targets)
      case "debezium-avro-confluent" => new DebeziumAvroDecoder(spec, targets)
      case "changelog-json" => new ChangelogJsonDecoder(spec.valueFormat, targets, spec.isUpsert)
      case "canal-json" => new BinlogJsonDecoder(spec, targets, BinlogDialect.Canal)
      case "maxwell-json" => new BinlogJsonDecoder(spec, targets, BinlogDialect.Maxwell)
      case _ if spec.debezium.unwrapped => unwrapped(spec, targets)
      case _ if spec.isUpsert => new UpsertDecoder(forRow(spec.valueFormat, targets, isKey = false))
      case name => new PlainDecoder(forRow(spec.valueFormat, targets, isKey = false), nullIsRow = name == "raw")
    }
  }

  /** A decoder for record keys. Debezium's JSON may have a schema in keys as well as in values. */
  def forKey(spec: IngestSpec, format: FormatSpec, targets: Seq[FieldTarget]): RowDecoder =
    if (format.name == "json" && spec.isDebezium)
      new ConnectRowDecoder(JsonOptions(format).copy(debezium = Some(spec.debezium)), targets)
    else forRow(format, targets, isKey = true)

  private def unwrapped(spec: IngestSpec, targets: Seq[FieldTarget]): ValueDecoder = {
    val all = targets ++ AddedFields.targets(spec)
    val keyAndAdded = all.filter(t => t.ordinal >= spec.columns.size || spec.isOfKey(t.ordinal) ||
      AddedFields.contains(t.field))
    if (spec.valueFormat.name == "json") {
      val options = JsonOptions(spec.valueFormat).copy(debezium = Some(spec.debezium))
      val rows = new ConnectRowDecoder(options.copy(refusePlaceholder = true), all)
      new UnwrappedDecoder(
        spec,
        rows,
        new ConnectRowDecoder(options, keyAndAdded),
        missing => if (spec.debezium.heals) rows.missing = missing,
        value => OtherRecords.problemOf(OtherRecords.fieldNames(value)))
    } else {
      val unavailable = new AvroUnavailable(spec.debezium.heals)
      new UnwrappedDecoder(
        spec,
        new AvroDecoder(spec.valueFormat, all, isKey = false, unavailable),
        new AvroDecoder(spec.valueFormat, keyAndAdded, isKey = false),
        unavailable.missing = _,
        _ => null)
    }
  }

  /** Whether the format's `ignore-parse-errors` skips records that it cannot parse. */
  def skipsErrors(format: FormatSpec): Boolean = format.flag("ignore-parse-errors")
}

/** Every value is an inserted row. A null value is no row, except in formats that can read it. */
final class PlainDecoder(rows: RowDecoder, nullIsRow: Boolean) extends ValueDecoder {
  override def decode(record: SourceRecord, into: Decoded): Unit =
    if (record.value != null || nullIsRow) {
      rows.decode(record.value, record, into.after)
      into.afterKind = RowKind.Insert
    }
}

/** A value is the current row of its key; a null value (tombstone) deletes it. */
final class UpsertDecoder(rows: RowDecoder) extends ValueDecoder {
  override def decode(record: SourceRecord, into: Decoded): Unit =
    if (record.value == null) into.beforeKind = RowKind.Delete
    else {
      rows.decode(record.value, record, into.after)
      into.afterKind = RowKind.UpdateAfter
    }
}

/** The whole value as one column, as in Flink's `raw` format. */
final class RawDecoder(dataType: DataType, ordinal: Int, order: ByteOrder) extends RowDecoder {
  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit =
    if (bytes == null) row.setNullAt(ordinal)
    else
      dataType match {
        case StringType => row.update(ordinal, UTF8String.fromBytes(bytes))
        case BinaryType => row.update(ordinal, bytes)
        case _ => number(sized(bytes), row)
      }

  private def sized(bytes: Array[Byte]): ByteBuffer =
    if (bytes.length == dataType.defaultSize) ByteBuffer.wrap(bytes).order(order)
    else
      throw new BadRecord(
        Reason.RawLength,
        s"${bytes.length} bytes where ${SqlTypes.text(dataType)} takes ${dataType.defaultSize}")

  private def number(bytes: ByteBuffer, row: InternalRow): Unit = dataType match {
    case BooleanType => row.setBoolean(ordinal, bytes.get() != 0)
    case ByteType => row.setByte(ordinal, bytes.get())
    case ShortType => row.setShort(ordinal, bytes.getShort())
    case IntegerType => row.setInt(ordinal, bytes.getInt())
    case LongType => row.setLong(ordinal, bytes.getLong())
    case FloatType => row.setFloat(ordinal, bytes.getFloat())
    case DoubleType => row.setDouble(ordinal, bytes.getDouble())
    case other => throw new IllegalArgumentException(s"format 'raw' cannot hold ${SqlTypes.text(other)}")
  }
}

/** For a query that needs no column of the value. */
object NothingDecoder extends RowDecoder {
  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = ()
}

object RawDecoder {
  def apply(format: FormatSpec, targets: Seq[FieldTarget]): RowDecoder = targets match {
    case Seq() => NothingDecoder
    case Seq(target) => new RawDecoder(target.dataType, target.ordinal, order(format))
    case _ => throw new IllegalArgumentException("format 'raw' holds exactly one column")
  }

  def order(format: FormatSpec): ByteOrder =
    if (format.options.get("endianness").contains("little-endian")) ByteOrder.LITTLE_ENDIAN
    else ByteOrder.BIG_ENDIAN
}

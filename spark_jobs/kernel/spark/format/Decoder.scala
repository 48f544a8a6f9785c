package org.apache.spark.sql.rejoin.format

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.avro.{AvroDecoder, AvroUnavailable, DebeziumAvroDecoder, PlainAvroDecoder}
import org.apache.spark.sql.rejoin.format.debezium.{ConnectRowDecoder, DebeziumJsonDecoder, OtherRecords,
  UnwrappedDecoder, UnwrappedMarks}
import org.apache.spark.sql.rejoin.format.json.{ChangelogJsonDecoder, JsonDecoder, JsonOptions}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}
import rejoin.core.row.{Envelope, RowKind}

/** A Kafka record as the source gives it; one object serves a whole task. */
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

/** Where a field of a format goes: a column of the decoded row.
  *
  * @param sqlType
  *   Flink's text of the type, where it is known
  */
final case class FieldTarget(field: String, dataType: DataType, ordinal: Int, sqlType: Option[String]) {
  val isTime: Boolean = SqlTypes.isTime(sqlType)

  /** The type for people. */
  def typeText: String = SqlTypes.text(dataType, sqlType)
}

/** The row changes of one record: what leaves, then what arrives. Reused from record to record.
  *
  * Columns that no decoder writes stay NULL.
  */
final class Decoded(types: Seq[DataType]) {
  val before = new SpecificInternalRow(types)
  val after = new SpecificInternalRow(types)

  /** A row kind, or [[Decoded.Absent]]. */
  var beforeKind: Byte = Decoded.Absent
  var afterKind: Byte = Decoded.Absent

  /** Ordinals of columns of `after` whose values the event leaves out; they are NULL there. */
  val missing = new java.util.BitSet

  /** Where the change stands in the database's log and when it was made; NoTime where unknown. */
  var position: Long = Envelope.NoTime
  var positionMs: Long = Envelope.NoTime

  /** Whether the position is that of one change of one row alone: PostgreSQL's `lsn`. */
  var isOneChange = false

  /** The event empties the table. */
  var truncates = false

  def clear(): Unit = {
    beforeKind = Decoded.Absent
    afterKind = Decoded.Absent
    missing.clear()
    position = Envelope.NoTime
    positionMs = Envelope.NoTime
    isOneChange = false
    truncates = false
  }
}

object Decoded {
  final val Absent: Byte = -1
}

/** Bytes to the columns of a row. Writes each of its columns, NULL where there is nothing.
  *
  * An instance serves one task; what it cannot read is a [[BadRecord]].
  */
trait RowDecoder {

  /** `bytes` is the key or the value of `record`, whose headers may say how it is encoded. */
  def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit
}

/** The value of a record, which may be null, to row changes. */
trait ValueDecoder {
  def decode(record: SourceRecord, into: Decoded): Unit
}

object Decoder {

  /** A decoder for the key or for a value that is a plain row. */
  def ofRow(format: FormatSpec, targets: Seq[FieldTarget], isKey: Boolean): RowDecoder = format.name match {
    case "json" => new JsonDecoder(JsonOptions(format), targets)
    case "avro" => new PlainAvroDecoder(format, targets)
    case "avro-confluent" => new AvroDecoder(format, targets, isKey)
    case "raw" => RawDecoder(format, targets)
    case other => throw new IllegalArgumentException(s"'$other' is no format of plain rows")
  }

  def ofValue(spec: IngestSpec): ValueDecoder = {
    val targets = spec.columnsFrom("value")
    spec.valueFormat.name match {
      case "debezium-json" => new DebeziumJsonDecoder(spec, targets)
      case "debezium-avro-confluent" => new DebeziumAvroDecoder(spec, targets)
      case "changelog-json" => new ChangelogJsonDecoder(spec.valueFormat, targets)
      case _ if spec.debezium.unwrapped => ofUnwrapped(spec, targets)
      case _ if spec.isUpsert => new UpsertDecoder(ofRow(spec.valueFormat, targets, isKey = false))
      case name => new PlainDecoder(ofRow(spec.valueFormat, targets, isKey = false), nullIsRow = name == "raw")
    }
  }

  /** A decoder for record keys. Debezium's JSON may have a schema in keys as well as in values. */
  def ofKey(spec: IngestSpec, format: FormatSpec, targets: Seq[FieldTarget]): RowDecoder =
    if (format.name == "json" && spec.isDebezium)
      new ConnectRowDecoder(JsonOptions(format).copy(debezium = Some(spec.debezium)), targets)
    else ofRow(format, targets, isKey = true)

  private def ofUnwrapped(spec: IngestSpec, targets: Seq[FieldTarget]): ValueDecoder = {
    val all = targets ++ UnwrappedMarks.targets(spec)
    val keyAndMarks = all.filter(t => t.ordinal >= spec.columns.size || spec.isOfKey(t.ordinal) ||
      UnwrappedMarks.isMark(t.field))
    if (spec.valueFormat.name == "json") {
      val options = JsonOptions(spec.valueFormat).copy(debezium = Some(spec.debezium))
      val rows = new ConnectRowDecoder(options.copy(refusePlaceholder = true), all)
      new UnwrappedDecoder(
        spec,
        rows,
        new ConnectRowDecoder(options, keyAndMarks),
        missing => if (spec.debezium.heals) rows.missing = missing,
        value => OtherRecords.problemOf(OtherRecords.fieldNames(value)))
    } else {
      val unavailable = new AvroUnavailable(spec.debezium.heals)
      new UnwrappedDecoder(
        spec,
        new AvroDecoder(spec.valueFormat, all, isKey = false, unavailable),
        new AvroDecoder(spec.valueFormat, keyAndMarks, isKey = false),
        unavailable.missing = _,
        _ => null)
    }
  }

  /** Whether the format's own option says that what it cannot parse is skipped. */
  def skipsErrors(format: FormatSpec): Boolean = format.flag("ignore-parse-errors")
}

/** Every value is an inserted row; a null value is none, but for formats that can read it. */
final class PlainDecoder(rows: RowDecoder, nullIsRow: Boolean) extends ValueDecoder {
  override def decode(record: SourceRecord, into: Decoded): Unit =
    if (record.value != null || nullIsRow) {
      rows.decode(record.value, record, into.after)
      into.afterKind = RowKind.Insert
    }
}

/** A value is the present row of its key, a null value (tombstone) the deletion of it. */
final class UpsertDecoder(rows: RowDecoder) extends ValueDecoder {
  override def decode(record: SourceRecord, into: Decoded): Unit =
    if (record.value == null) into.beforeKind = RowKind.Delete
    else {
      rows.decode(record.value, record, into.after)
      into.afterKind = RowKind.UpdateAfter
    }
}

/** The whole value as one column, as Flink's `raw` format has it. */
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

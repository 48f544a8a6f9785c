package org.apache.spark.sql.rejoin.format

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.avro.{AvroEncoder, DebeziumAvroEncoder}
import org.apache.spark.sql.rejoin.format.csv.CsvEncoder
import org.apache.spark.sql.rejoin.format.json.{JsonObjectWriter, JsonWriterOptions}
import org.apache.spark.sql.rejoin.format.protobuf.ProtobufEncoder
import org.apache.spark.sql.rejoin.sink.RecordSpec
import rejoin.core.row.RowKind

/** Encodes columns of a row. One instance per task. */
abstract class RowEncoder {
  def encode(row: SpecializedGetters, out: ByteSink): Unit
}

object RowEncoder {

  /** For a key or a plain value: the columns at `ordinals`, named as in `struct`. */
  def apply(format: FormatSpec, ordinals: Seq[Int], struct: StructType): RowEncoder =
    format.name match {
      case "json" =>
        val fields = new JsonObjectWriter(JsonWriterOptions(format), ordinals, struct)
        fields.write(_, _)
      case "json-registry" =>
        val prefix = Framing.prefix(format)
        val fields = new JsonObjectWriter(JsonWriterOptions(format), ordinals, struct)
        (row, out) => fields.write(row, out.write(prefix))
      case "csv" => new CsvEncoder(format, ordinals, struct)
      case "avro" | "avro-confluent" => new AvroEncoder(format, ordinals, struct)
      case "protobuf" | "proto-registry" => new ProtobufEncoder(format, ordinals, struct)
      case "raw" => raw(format, ordinals, struct)
      case other => throw new IllegalArgumentException(s"format '$other' cannot hold plain rows")
    }

  private def raw(format: FormatSpec, ordinals: Seq[Int], struct: StructType): RowEncoder = {
    require(struct.size == 1, "format 'raw' holds exactly one column")
    val i = ordinals.head
    val dataType = struct.head.dataType
    dataType match {
      case StringType => (row, out) => out.write(row.getUTF8String(i))
      case BinaryType => (row, out) => out.write(row.getBinary(i))
      case _ =>
        val order = RawDecoder.order(format)
        (row, out) => out.write(number(row, i, dataType, order))
    }
  }

  private def number(
      row: SpecializedGetters,
      i: Int,
      dataType: DataType,
      order: ByteOrder): Array[Byte] = {
    val bytes = ByteBuffer.allocate(dataType.defaultSize).order(order)
    dataType match {
      case BooleanType => bytes.put((if (row.getBoolean(i)) 1 else 0).toByte)
      case ByteType => bytes.put(row.getByte(i))
      case ShortType => bytes.putShort(row.getShort(i))
      case IntegerType => bytes.putInt(row.getInt(i))
      case LongType => bytes.putLong(row.getLong(i))
      case FloatType => bytes.putFloat(row.getFloat(i))
      case DoubleType => bytes.putDouble(row.getDouble(i))
      case other => throw new IllegalArgumentException(s"format 'raw' cannot hold ${SqlTypes.text(other)}")
    }
    bytes.array
  }
}

/** Encodes rows of a sink as the keys and values of its records. One instance per task.
  *
  * @param offset
  *   number of columns before those of the sink in the rows that it encodes
  */
final class RecordEncoder(sink: RecordSpec, offset: Int) {
  private val keys = sink.keyFormat
    .filter(_ => sink.keyFields.nonEmpty)
    .map(RowEncoder(_, sink.keyOrdinals.map(_ + offset), sink.keySchema))
  private val values = ValueEncoder(sink, sink.valueOrdinals.map(_ + offset))
  private val notNull =
    sink.schema.indices.filterNot(sink.schema(_).nullable).map(_ + offset).toArray
  private val rawColumn =
    if (sink.valueFormat.name == "raw") sink.valueOrdinals.head + offset else -1
  private val rawKey =
    if (keys.nonEmpty && sink.keyFormat.exists(_.name == "raw")) sink.keyOrdinals.head + offset
    else -1
  private val buffer = new ByteSink

  /** The record key, or null for none. */
  def key(row: InternalRow): Array[Byte] =
    if (keys.isEmpty || rawKey >= 0 && row.isNullAt(rawKey)) null
    else {
      keys.get.encode(row, buffer.reset())
      buffer.result()
    }

  /** The record value; null is a tombstone. */
  def value(kind: Byte, row: InternalRow): Array[Byte] = {
    requireNotNull(row)
    if (rawColumn >= 0 && row.isNullAt(rawColumn)) null
    else if (values.encode(kind, row, buffer.reset())) buffer.result()
    else null
  }

  private def requireNotNull(row: InternalRow): Unit = {
    var i = 0
    while (i < notNull.length) {
      if (row.isNullAt(notNull(i)))
        throw new NullValueException(
          s"sink ${sink.table}: a row has NULL in the NOT NULL column ${sink.schema(notNull(i) - offset).name}")
      i += 1
    }
  }
}

/** A result with NULL in a NOT NULL column of its sink: the query is wrong, not a single record. */
final class NullValueException(message: String) extends RuntimeException(message)

/** Encodes a row and its kind as a record value. */
private[rejoin] abstract class ValueEncoder {

  /** Returns false if the value is a tombstone. */
  def encode(kind: Byte, row: InternalRow, out: ByteSink): Boolean
}

private[rejoin] object ValueEncoder {
  def apply(sink: RecordSpec, ordinals: Seq[Int]): ValueEncoder = {
    lazy val fields =
      new JsonObjectWriter(JsonWriterOptions(sink.valueFormat), ordinals, sink.valueSchema)
    sink.valueFormat.name match {
      case "debezium-json" => debezium(fields)
      case "debezium-avro-confluent" => new DebeziumAvroEncoder(sink.valueFormat, ordinals, sink.valueSchema)
      case "changelog-json" => changelogJson(fields)
      case "canal-json" => enclosed(fields, """{"data":[""", """],"type":"INSERT"}""", """],"type":"DELETE"}""")
      case "maxwell-json" => enclosed(fields, """{"data":""", ""","type":"insert"}""", ""","type":"delete"}""")
      case _ =>
        val rows = RowEncoder(sink.valueFormat, ordinals, sink.valueSchema)
        sink.mode match {
          case "upsert" => upserted(rows)
          case "append" => appended(sink, rows)
          case other =>
            throw new IllegalArgumentException(
              s"sink ${sink.table}: format ${sink.valueFormat.name} cannot carry $other rows")
        }
    }
  }

  private def upserted(rows: RowEncoder): ValueEncoder = (kind, row, out) =>
    RowKind.isAdd(kind) && {
      rows.encode(row, out)
      true
    }

  private def appended(sink: RecordSpec, rows: RowEncoder): ValueEncoder = (kind, row, out) => {
    if (!RowKind.isAdd(kind))
      throw new IllegalStateException(
        s"sink ${sink.table} takes insertions only, but got ${RowKind.name(kind)}")
    rows.encode(row, out)
    true
  }

  /** Debezium's envelope as Flink writes it: an update is two records, never one with op `u`. */
  private def debezium(fields: JsonObjectWriter): ValueEncoder = {
    val beforeAdd = """{"before":null,"after":""".getBytes(UTF_8)
    val afterAdd = ""","op":"c"}""".getBytes(UTF_8)
    val beforeRemove = """{"before":""".getBytes(UTF_8)
    val afterRemove = ""","after":null,"op":"d"}""".getBytes(UTF_8)
    (kind, row, out) => {
      val isAdd = RowKind.isAdd(kind)
      fields.write(row, out.write(if (isAdd) beforeAdd else beforeRemove))
      out.write(if (isAdd) afterAdd else afterRemove)
      true
    }
  }

  /** A row between texts that say whether it is added or removed; an update is two records. */
  private def enclosed(fields: JsonObjectWriter, before: String, added: String, removed: String): ValueEncoder = {
    val head = before.getBytes(UTF_8)
    val addEnd = added.getBytes(UTF_8)
    val removeEnd = removed.getBytes(UTF_8)
    (kind, row, out) => {
      fields.write(row, out.write(head))
      out.write(if (RowKind.isAdd(kind)) addEnd else removeEnd)
      true
    }
  }

  private def changelogJson(fields: JsonObjectWriter): ValueEncoder = {
    val heads = (0 to RowKind.Delete.toInt).map { kind =>
      s"""{"op":"${RowKind.name(kind.toByte)}","data":""".getBytes(UTF_8)
    }
    (kind, row, out) => {
      fields.write(row, out.write(heads(kind.toInt)))
      out.byte('}')
      true
    }
  }
}

package org.apache.spark.sql.rejoin.format.avro

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.{ByteSink, FormatSpec, Framing, RowEncoder, SqlTypes, ValueEncoder}
import rejoin.core.row.RowKind

/** Encodes rows as Avro, with the schema id in front if the schema is in a registry.
  *
  * The driver has made and registered the schema (spark_jobs/formats/sink_schema.py), and has set the
  * format's options `schema` and `schema-id`.
  */
final class AvroEncoder(format: FormatSpec, ordinals: Seq[Int], struct: StructType) extends RowEncoder {
  private val prefix = Framing.prefix(format)
  private val fields = AvroEncoder.record(AvroDecoder.schema(format), ordinals, struct)

  override def encode(row: SpecializedGetters, out: ByteSink): Unit = {
    out.write(prefix)
    fields.write(row, out)
  }
}

/** Encodes rows in Debezium's envelope as Flink writes it: an update is two records, never one with op `u`. */
private[rejoin] final class DebeziumAvroEncoder(format: FormatSpec, ordinals: Seq[Int], struct: StructType)
    extends ValueEncoder {
  private val prefix = Framing.prefix(format)
  private val root = AvroEncoder.nullable(AvroDecoder.schema(format), "the envelope")
  private val parts = root.value.getFields.asScala.map(part).toArray

  override def encode(kind: Byte, row: InternalRow, out: ByteSink): Boolean = {
    root.present(out.write(prefix))
    val isAdd = RowKind.isAdd(kind)
    var i = 0
    while (i < parts.length) {
      parts(i)(isAdd, row, out)
      i += 1
    }
    true
  }

  private type Part = (Boolean, InternalRow, ByteSink) => Unit

  private def part(field: Schema.Field): Part = {
    val slot = AvroEncoder.nullable(field.schema, field.name)
    field.name match {
      case "before" | "after" =>
        val fields = AvroEncoder.record(slot.value, ordinals, struct)
        val ofAdd = field.name == "after"
        (isAdd, row, out) => if (isAdd == ofAdd) fields.write(row, slot.present(out)) else slot.absent(out)
      case "op" => (isAdd, _, out) => slot.present(out).signed(1).byte(if (isAdd) 'c' else 'd')
      case _ => (_, _, out) => slot.absent(out)
    }
  }
}

/** Writes one value of a row as Avro; `ordinal` may hold NULL. */
private[rejoin] abstract class AvroValueWriter {
  def write(row: SpecializedGetters, ordinal: Int, out: ByteSink): Unit
}

private[rejoin] final class AvroRecordWriter(values: Array[AvroValueWriter], ordinals: Array[Int]) {
  def write(row: SpecializedGetters, out: ByteSink): Unit = {
    var i = 0
    while (i < values.length) {
      values(i).write(row, ordinals(i), out)
      i += 1
    }
  }
}

/** A type that may be nullable; a branch is -1 if it is absent or the type is no union. */
private[rejoin] final class AvroNullable(val value: Schema, valueAt: Int, nullAt: Int, name: String) {
  def present(out: ByteSink): ByteSink = if (valueAt >= 0) out.signed(valueAt.toLong) else out

  def absent(out: ByteSink): Unit =
    if (nullAt >= 0) out.signed(nullAt.toLong)
    else throw new IllegalArgumentException(s"'$name' is NULL, which its Avro type forbids")
}

private[rejoin] object AvroEncoder {

  def nullable(schema: Schema, name: String): AvroNullable =
    if (schema.getType != UNION) new AvroNullable(schema, -1, -1, name)
    else {
      val branches = schema.getTypes.asScala.toSeq
      val nullAt = branches.indexWhere(_.getType == NULL)
      val valueAt = branches.indexWhere(_.getType != NULL)
      require(branches.size <= 2 && valueAt >= 0, s"'$name': neither a type nor a nullable one")
      new AvroNullable(branches(valueAt), valueAt, nullAt, name)
    }

  def record(schema: Schema, ordinals: Seq[Int], struct: StructType): AvroRecordWriter = {
    require(schema.getType == RECORD, s"a row cannot be written as ${schema.getType.getName}")
    val written = schema.getFields.asScala.toSeq.map { field =>
      struct.fieldNames.indexOf(field.name) match {
        case -1 => throw new IllegalArgumentException(s"Avro field '${field.name}' is no column")
        case i => value(field.schema, struct(i).dataType, field.name) -> ordinals(i)
      }
    }
    val lost = struct.fieldNames.filter(schema.getField(_) == null)
    require(lost.isEmpty, s"the Avro schema has no field for ${lost.mkString(", ")}")
    new AvroRecordWriter(written.map(_._1).toArray, written.map(_._2).toArray)
  }

  private def value(schema: Schema, dataType: DataType, name: String): AvroValueWriter =
    if (schema.getType != UNION) present(schema, dataType, name)
    else {
      val slot = nullable(schema, name)
      val inner = present(slot.value, dataType, name)
      (row, i, out) => if (row.isNullAt(i)) slot.absent(out) else inner.write(row, i, slot.present(out))
    }

  private def present(schema: Schema, dataType: DataType, name: String): AvroValueWriter =
    (dataType, schema.getType) match {
      case (BooleanType, BOOLEAN) => (row, i, out) => out.byte(if (row.getBoolean(i)) 1 else 0)
      case (ByteType, INT | LONG) => (row, i, out) => out.signed(row.getByte(i).toLong)
      case (ShortType, INT | LONG) => (row, i, out) => out.signed(row.getShort(i).toLong)
      case (IntegerType | DateType, INT | LONG) => (row, i, out) => out.signed(row.getInt(i).toLong)
      case (LongType, LONG) => (row, i, out) => out.signed(row.getLong(i))
      case (FloatType, FLOAT) =>
        (row, i, out) => out.int32LittleEndian(java.lang.Float.floatToIntBits(row.getFloat(i)))
      case (DoubleType, DOUBLE) =>
        (row, i, out) => out.int64LittleEndian(java.lang.Double.doubleToLongBits(row.getDouble(i)))
      case (StringType, STRING) =>
        (row, i, out) => {
          val text = row.getUTF8String(i)
          out.signed(text.numBytes.toLong).write(text)
        }
      case (BinaryType, BYTES) =>
        (row, i, out) => {
          val bytes = row.getBinary(i)
          out.signed(bytes.length.toLong).write(bytes)
        }
      case (TimestampNTZType | TimestampType, LONG) =>
        val isMicros = Option(schema.getProp("logicalType")).exists(_.endsWith("-micros"))
        if (isMicros) (row, i, out) => out.signed(row.getLong(i))
        else (row, i, out) => out.signed(Math.floorDiv(row.getLong(i), 1000L))
      case (d: DecimalType, BYTES) => decimal(d, schema)
      case (struct: StructType, RECORD) =>
        val fields = record(schema, struct.indices, struct)
        (row, i, out) => fields.write(row.getStruct(i, struct.size), out)
      case (array: ArrayType, ARRAY) => items(schema, array, name)
      case (map: MapType, MAP) => entries(schema, map, name)
      case _ =>
        throw new IllegalArgumentException(
          s"'$name': ${SqlTypes.text(dataType)} cannot be written as Avro ${schema.getType.getName}")
    }

  private def decimal(d: DecimalType, schema: Schema): AvroValueWriter = {
    val scale = Option(schema.getObjectProp("scale")).fold(0)(_.toString.toInt)
    (row, i, out) => {
      val value = row.getDecimal(i, d.precision, d.scale).toJavaBigDecimal.setScale(scale)
      val bytes = value.unscaledValue.toByteArray
      out.signed(bytes.length.toLong).write(bytes)
    }
  }

  private def items(schema: Schema, array: ArrayType, name: String): AvroValueWriter = {
    val element = value(schema.getElementType, array.elementType, name)
    (row, i, out) => {
      val items = row.getArray(i)
      if (items.numElements() > 0) out.signed(items.numElements().toLong)
      for (at <- 0 until items.numElements()) element.write(items, at, out)
      out.byte(0)
    }
  }

  private def entries(schema: Schema, map: MapType, name: String): AvroValueWriter = {
    val element = value(schema.getValueType, map.valueType, name)
    (row, i, out) => {
      val entries = row.getMap(i)
      val keys = entries.keyArray()
      if (entries.numElements() > 0) out.signed(entries.numElements().toLong)
      for (at <- 0 until entries.numElements()) {
        val key = keys.getUTF8String(at)
        out.signed(key.numBytes.toLong).write(key)
        element.write(entries.valueArray(), at, out)
      }
      out.byte(0)
    }
  }
}

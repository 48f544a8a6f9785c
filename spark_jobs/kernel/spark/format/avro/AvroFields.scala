package org.apache.spark.sql.rejoin.format.avro

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.SqlTypes
import org.apache.spark.sql.rejoin.format.debezium.DebeziumTypes
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** The steps that each read one Avro value into one column. */
private[rejoin] object AvroFields {

  val Null: AvroField = (_, row, i) => row.setNullAt(i)
  val Bool: AvroField = (in, row, i) => row.setBoolean(i, in.boolean())
  val TinyInt: AvroField = (in, row, i) => {
    val value = in.int()
    if (value.toByte != value) DebeziumTypes.outOfRange(s"$value is no TINYINT")
    row.setByte(i, value.toByte)
  }
  val SmallInt: AvroField = (in, row, i) => {
    val value = in.int()
    if (value.toShort != value) DebeziumTypes.outOfRange(s"$value is no SMALLINT")
    row.setShort(i, value.toShort)
  }
  val Int: AvroField = (in, row, i) => row.setInt(i, in.int())
  val Long: AvroField = (in, row, i) => row.setLong(i, in.long())
  val Float: AvroField = (in, row, i) => row.setFloat(i, in.float())
  val Double: AvroField = (in, row, i) => row.setDouble(i, in.double())
  val LongAsFloat: AvroField = (in, row, i) => row.setFloat(i, in.long().toFloat)
  val LongAsDouble: AvroField = (in, row, i) => row.setDouble(i, in.long().toDouble)
  val FloatAsDouble: AvroField = (in, row, i) => row.setDouble(i, in.float().toDouble)

  /** A view of the record's own bytes. */
  val Text: AvroField = (in, row, i) => row.update(i, in.text())
  val Binary: AvroField = (in, row, i) => row.update(i, in.slice(in.length()))

  final class Enumerated(symbols: Seq[String]) extends AvroField {
    private val texts = symbols.map(UTF8String.fromString).toArray

    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      row.update(ordinal, texts(in.int()))
  }

  final class FixedBinary(size: Int) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      row.update(ordinal, in.slice(size))
  }

  /** A decimal as its unscaled number in big-endian two's complement. */
  final class DecimalBytes(wanted: DataType, scale: Int, size: Int) extends AvroField {
    private val decimal = wanted match {
      case d: DecimalType => d
      case _ => null
    }
    private val most =
      if (decimal == null || scale != decimal.scale || decimal.precision > 18) 0L
      else math.pow(10, decimal.precision).toLong

    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      val length = if (size >= 0) size else in.length()
      if (most > 0 && length > 0 && length <= 8) {
        val unscaled = small(in, length)
        if (unscaled >= most || unscaled <= -most)
          DebeziumTypes.outOfRange(s"a value has too many digits for ${SqlTypes.text(wanted)}")
        row.update(ordinal, Decimal.createUnsafe(unscaled, decimal.precision, decimal.scale))
      } else DebeziumTypes.writeDecimal(in.slice(length), scale, wanted, row, ordinal)
    }

    private def small(in: AvroInput, length: Int): Long = {
      val from = in.at
      in.advance(length)
      var value = in.bytes(from).toLong
      var i = 1
      while (i < length) {
        value = value << 8 | (in.bytes(from + i) & 0xff)
        i += 1
      }
      value
    }
  }

  /** Debezium's form of NUMERIC without a scale: a record {scale: int, value: bytes}. */
  final class DecimalOfAnyScale(wanted: DataType) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      val scale = in.int()
      DebeziumTypes.writeDecimal(in.slice(in.length()), scale, wanted, row, ordinal)
    }
  }

  final class Nullable(nullBranch: Int, value: AvroField) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      val branch = in.long()
      if (branch == nullBranch) row.setNullAt(ordinal)
      else if (branch == 1 - nullBranch) value.read(in, row, ordinal)
      else AvroInput.fail(s"branch $branch of a union of two")
    }
  }

  final class Union(branches: Array[AvroField]) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      branches(in.int()).read(in, row, ordinal)
  }

  /** A branch of a union that does not fit the column: only records with this branch are bad. */
  final class Refused(message: String) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      throw new BadRecord(Reason.AvroMismatch, message)
  }

  /** A column that the writer lacks: the default in the table's schema. */
  final class Default(value: AvroField, encoded: Array[Byte]) extends AvroField {
    private val own = new AvroInput

    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      value.read(own.open(encoded, 0), row, ordinal)
  }

  final class Nested(record: AvroRecordReader, struct: StructType) extends AvroField {
    private val types = struct.map(_.dataType)

    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      val nested = new SpecificInternalRow(types)
      record.read(in, nested)
      row.update(ordinal, nested)
    }
  }

  final class Items(element: AvroField, array: ArrayType) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      val values = new ArrayBuffer[Any]
      foreachItem(in)(() => values += single(element, in, array.elementType))
      row.update(ordinal, new GenericArrayData(values.toArray[Any]))
    }
  }

  final class Entries(value: AvroField, map: MapType) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      val keys, values = new ArrayBuffer[Any]
      foreachItem(in) { () =>
        keys += UTF8String.fromBytes(in.slice(in.length()))
        values += single(value, in, map.valueType)
      }
      row.update(ordinal, ArrayBasedMapData(keys.toArray[Any], values.toArray[Any]))
    }
  }

  def foreachItem(in: AvroInput)(readItem: () => Unit): Unit = {
    var left = in.block()
    while (left > 0) {
      while (left > 0) {
        readItem()
        left -= 1
      }
      left = in.block()
    }
  }

  private def single(element: AvroField, in: AvroInput, dataType: DataType): Any = {
    val slot = new SpecificInternalRow(Seq(dataType))
    element.read(in, slot, 0)
    slot.get(0, dataType)
  }
}

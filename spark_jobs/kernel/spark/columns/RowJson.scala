package org.apache.spark.sql.rejoin.columns

import java.time.{LocalDate, LocalDateTime, ZoneOffset}
import java.util.Base64

import org.json4s._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, ArrayData, DateTimeUtils, GenericArrayData, MapData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.SqlTypes

/** Row values as the JSON that tests write and read (docs/scenarios.md): DECIMAL as string,
  * TIMESTAMP as "2020-08-15T00:01:00.000", DATE as "2020-08-15", BYTES as base64, ROW and ARRAY as
  * arrays, MAP as object.
  */
object RowJson {

  /** Packs JSON arrays of values. */
  final class Packer(schema: StructType) {
    private val project = UnsafeProjection.create(schema)

    def apply(values: JArray): Array[Byte] = Packed(project(row(values, schema)))
  }

  /** A value of JSON as Spark holds it. */
  def read(json: JValue, dataType: DataType): Any = value(json, dataType)

  private def row(values: JArray, schema: StructType): InternalRow = {
    require(values.arr.size == schema.size, s"${values.arr.size} values for ${schema.size} columns")
    new GenericInternalRow(values.arr.zip(schema.fields).map { case (v, f) => value(v, f.dataType) }.toArray[Any])
  }

  private def value(json: JValue, dataType: DataType): Any = (json, dataType) match {
    case (JNull, _) => null
    case (JBool(b), BooleanType) => b
    case (JInt(n), ByteType) => n.toByte
    case (JInt(n), ShortType) => n.toShort
    case (JInt(n), IntegerType) => n.toInt
    case (JInt(n), LongType) => n.toLong
    case (JInt(n), FloatType) => n.toFloat
    case (JDouble(n), FloatType) => n.toFloat
    case (JInt(n), DoubleType) => n.toDouble
    case (JDouble(n), DoubleType) => n
    case (JString(s), d: DecimalType) => Decimal(BigDecimal(s), d.precision, d.scale)
    case (JInt(n), d: DecimalType) => Decimal(BigDecimal(n), d.precision, d.scale)
    case (JString(s), StringType) => UTF8String.fromString(s)
    case (JString(s), BinaryType) => Base64.getDecoder.decode(s)
    case (JString(s), DateType) => LocalDate.parse(s).toEpochDay.toInt
    case (JString(s), TimestampNTZType | TimestampType) =>
      micros(LocalDateTime.parse(s.stripSuffix("Z").replace(' ', 'T')))
    case (JInt(ms), TimestampNTZType | TimestampType) => ms.toLong * 1000
    case (values: JArray, s: StructType) => row(values, s)
    case (JArray(values), ArrayType(element, _)) => new GenericArrayData(values.map(value(_, element)).toArray[Any])
    case (JObject(fields), MapType(StringType, element, _)) =>
      ArrayBasedMapData(
        fields.map(f => UTF8String.fromString(f._1)).toArray[Any],
        fields.map(f => value(f._2, element)).toArray[Any])
    case _ => throw new IllegalArgumentException(s"$json is no value of ${SqlTypes.text(dataType)}")
  }

  /** The values of a row. */
  def write(row: InternalRow, schema: StructType): JArray =
    JArray(schema.fields.toList.zipWithIndex.map { case (field, i) =>
      json(row.get(i, field.dataType), field.dataType)
    })

  private def json(value: Any, dataType: DataType): JValue = (value, dataType) match {
    case (null, _) => JNull
    case (b: Boolean, _) => JBool(b)
    case (us: Long, TimestampNTZType | TimestampType) => JString(iso(us))
    case (days: Int, DateType) => JString(LocalDate.ofEpochDay(days.toLong).toString)
    case (d: Decimal, _) => JString(d.toJavaBigDecimal.toPlainString)
    case (f: Float, _) => JDouble(f.toDouble)
    case (d: Double, _) => JDouble(d)
    case (bytes: Array[Byte], _) => JString(Base64.getEncoder.encodeToString(bytes))
    case (nested: InternalRow, s: StructType) => write(nested, s)
    case (items: ArrayData, ArrayType(element, _)) => JArray(items.toSeq[Any](element).map(json(_, element)).toList)
    case (map: MapData, MapType(key, element, _)) =>
      val keys = map.keyArray().toSeq[Any](key).map(_.toString)
      JObject(keys.zip(map.valueArray().toSeq[Any](element)).map { case (k, v) => k -> json(v, element) }.toList)
    case (n: Number, _) => JInt(n.longValue)
    case (other, _) => JString(other.toString)
  }

  private def micros(time: LocalDateTime): Long = DateTimeUtils.instantToMicros(time.toInstant(ZoneOffset.UTC))

  private def iso(micros: Long): String = {
    val text = DateTimeUtils.microsToLocalDateTime(micros)
    val pattern = if (micros % 1000 == 0) "uuuu-MM-dd'T'HH:mm:ss.SSS" else "uuuu-MM-dd'T'HH:mm:ss.SSSSSS"
    text.format(java.time.format.DateTimeFormatter.ofPattern(pattern))
  }
}

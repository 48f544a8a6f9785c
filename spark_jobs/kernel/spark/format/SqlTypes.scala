package org.apache.spark.sql.rejoin.format

import org.apache.spark.sql.types._

/** What Flink's SQL types say beyond Spark's. */
object SqlTypes {

  /** Name of the field metadata that holds the type as Flink SQL writes it. */
  final val Key = "sqlType"

  def of(field: StructField): Option[String] =
    Option.when(field.metadata.contains(Key))(field.metadata.getString(Key))

  /** A TIME column is an integer in Spark: the millisecond of the day. */
  def isTime(sqlType: Option[String]): Boolean =
    sqlType.exists(t => t.startsWith("TIME") && !t.startsWith("TIMESTAMP"))

  /** The type as messages show it: as it was declared. */
  def text(dataType: DataType, declared: Option[String]): String =
    declared.fold(text(dataType))(_.stripSuffix(" NOT NULL"))

  /** The SQL type in Flink's notation, as far as Spark's type shows it. */
  def text(dataType: DataType): String =
    dataType match {
      case TimestampNTZType => "TIMESTAMP"
      case TimestampType => "TIMESTAMP_LTZ"
      case BinaryType => "BYTES"
      case decimal: DecimalType => s"DECIMAL(${decimal.precision}, ${decimal.scale})"
      case row: StructType => row.map(f => s"${name(f.name)} ${text(f.dataType, of(f))}").mkString("ROW<", ", ", ">")
      case array: ArrayType => s"ARRAY<${text(array.elementType)}>"
      case map: MapType => s"MAP<${text(map.keyType)}, ${text(map.valueType)}>"
      case other => other.sql
    }

  private def name(field: String): String =
    if (field.matches("[A-Za-z_][A-Za-z0-9_]*")) field else s"`${field.replace("`", "``")}`"
}

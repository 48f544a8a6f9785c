package org.apache.spark.sql.rejoin.format.avro

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._
import org.apache.avro.generic.GenericData

import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.avro.AvroFields._
import org.apache.spark.sql.rejoin.format.debezium.DebeziumTypes
import org.apache.spark.sql.rejoin.format.{FieldTarget, SqlTypes}

/** Resolves a writer schema against the table's columns, by name, as Avro's schema resolution does.
  *
  * A column that the writer lacks takes its default from the table's `schema` option, else NULL. Numbers
  * are promoted; dates and times are read by their logical type, or by the name that Kafka Connect
  * or Debezium gave the type.
  */
final class AvroCompiler(declared: Option[Schema], wrap: AvroCompiler.Wrap = AvroCompiler.NoWrap) {
  import AvroCompiler._

  /** The reader of a key or value; messages name the schema by `id`. */
  def compile(writer: Schema, id: String, targets: Seq[FieldTarget]): AvroRecordReader =
    try
      if (writer.getType == RECORD) record(writer, targets, declared, wrap)
      else single(writer, targets)
    catch {
      case mismatch: Mismatch => new AvroRefusal(s"schema $id: ${mismatch.getMessage}")
    }

  /** The reader of a row, with `wrap` around the step of each column. */
  def row(writer: Schema, targets: Seq[FieldTarget], reader: Option[Schema], wrap: Wrap): AvroRecordReader =
    record(writer, targets, reader, wrap)

  private def record(
      writer: Schema,
      targets: Seq[FieldTarget],
      reader: Option[Schema],
      wrap: Wrap): AvroRecordSteps = {
    val byName = targets.groupBy(target => writerName(writer, target.field, reader))
    val read = writer.getFields.asScala.toSeq.map { f =>
      byName.get(f.name) match {
        case Some(Seq(target)) =>
          fieldNamed(f.name)(field(f.schema, target.dataType, target.isTime, wrap)) -> target.ordinal
        case Some(_) => throw new Mismatch(s"'${f.name}' is read twice")
        case None => AvroSkips.of(f.schema) -> -1
      }
    }
    val missing = byName.filter { case (name, _) => writer.getField(name) == null }.values.flatten.map { target =>
      absent(target, reader.flatMap(r => Option(r.getField(target.field)))) -> target.ordinal
    }
    val steps = AvroSkips.merge(read) ++ missing
    new AvroRecordSteps(steps.map(_._1).toArray, steps.map(_._2).toArray)
  }

  /** The writer's name of a column: the column's own, or else an alias in the declared schema. */
  private def writerName(writer: Schema, column: String, reader: Option[Schema]): String =
    if (writer.getField(column) != null) column
    else {
      val declared = reader.flatMap(r => Option(r.getField(column)))
      declared.flatMap(_.aliases.asScala.find(writer.getField(_) != null)).getOrElse(column)
    }

  /** A key that is a single value instead of a record fits a table with one key column. */
  private def single(writer: Schema, targets: Seq[FieldTarget]): AvroRecordSteps = targets match {
    case Seq() => new AvroRecordSteps(Array.empty, Array.empty)
    case Seq(target) =>
      val step = fieldNamed(target.field)(field(writer, target.dataType, target.isTime))
      new AvroRecordSteps(Array(step), Array(target.ordinal))
    case _ => throw new Mismatch(s"a bare ${writer.getType.getName} for ${targets.size} columns")
  }

  private def fieldNamed(name: String)(compiled: => AvroField): AvroField =
    try compiled
    catch { case mismatch: Mismatch => throw new Mismatch(s"'$name': ${mismatch.getMessage}") }

  private def absent(target: FieldTarget, declared: Option[Schema.Field]): AvroField =
    declared match {
      case Some(f) if f.hasDefaultValue =>
        new Default(
          field(f.schema, target.dataType, target.isTime),
          AvroDecoder.encode(f.schema, GenericData.get.getDefaultValue(f)))
      case _ => Null
    }

  private def field(
      writer: Schema,
      wanted: DataType,
      isTime: Boolean,
      wrap: Wrap = NoWrap): AvroField =
    if (writer.getType == UNION) union(writer, wanted, isTime, wrap)
    else if (writer.getType == NULL) Null
    else
      wrap(
        writer,
        AvroTimes.step(writer, wanted, isTime).getOrElse(wanted match {
          case struct: StructType => structField(writer, struct)
          case array: ArrayType => arrayField(writer, array)
          case map: MapType => mapField(writer, map)
          case _ if isDecimal(writer) && DebeziumTypes.takesDecimal(wanted) => decimalField(writer, wanted)
          case _ => plainField(writer, wanted, isTime)
        }))

  private def union(
      writer: Schema,
      wanted: DataType,
      isTime: Boolean,
      wrap: Wrap): AvroField = {
    val branches = writer.getTypes.asScala.toSeq
    val compiled = branches.map { branch =>
      try Right(field(branch, wanted, isTime, wrap))
      catch { case mismatch: Mismatch => Left(mismatch) }
    }
    if (!branches.zip(compiled).exists { case (b, c) => b.getType != NULL && c.isRight })
      compiled.collectFirst { case Left(mismatch) => throw mismatch }
    branches.map(_.getType) match {
      case Seq(NULL, _) => new Nullable(0, compiled(1).toOption.get)
      case Seq(_, NULL) => new Nullable(1, compiled.head.toOption.get)
      case _ => new Union(compiled.map(_.fold(m => new Refused(m.getMessage), identity)).toArray)
    }
  }

  private def plainField(writer: Schema, wanted: DataType, isTime: Boolean): AvroField =
    (writer.getType, wanted) match {
      case (BOOLEAN, BooleanType) => Bool
      case (INT, ByteType) => TinyInt
      case (INT, ShortType) => SmallInt
      case (INT, IntegerType) if !isTime => Int
      case (INT | LONG, LongType) => Long
      case (INT | LONG, FloatType) => LongAsFloat
      case (FLOAT, FloatType) => Float
      case (INT | LONG, DoubleType) => LongAsDouble
      case (FLOAT, DoubleType) => FloatAsDouble
      case (DOUBLE, DoubleType) => Double
      case (STRING | BYTES, StringType) => Text
      case (ENUM, StringType) => new Enumerated(writer.getEnumSymbols.asScala.toSeq)
      case (STRING | BYTES, BinaryType) => Binary
      case (FIXED, BinaryType) => new FixedBinary(writer.getFixedSize)
      case _ => mismatch(writer, if (isTime) "TIME" else SqlTypes.text(wanted))
    }

  private def isDecimal(writer: Schema): Boolean =
    writer.getProp("logicalType") == "decimal" ||
      writer.getType == RECORD && writer.getName == "VariableScaleDecimal"

  private def decimalField(writer: Schema, wanted: DataType): AvroField = {
    val scale = Option(writer.getObjectProp("scale")).fold(0)(_.toString.toInt)
    writer.getType match {
      case RECORD => new DecimalOfAnyScale(wanted)
      case FIXED => new DecimalBytes(wanted, scale, writer.getFixedSize)
      case _ => new DecimalBytes(wanted, scale, size = -1)
    }
  }

  private def structField(writer: Schema, wanted: StructType): AvroField =
    if (writer.getType != RECORD) mismatch(writer, SqlTypes.text(wanted))
    else new Nested(record(writer, FieldTarget.fieldsOf(wanted), None, NoWrap), wanted)

  private def arrayField(writer: Schema, wanted: ArrayType): AvroField =
    if (writer.getType != ARRAY) mismatch(writer, SqlTypes.text(wanted))
    else new Items(field(writer.getElementType, wanted.elementType, isTime = false), wanted)

  private def mapField(writer: Schema, wanted: MapType): AvroField =
    if (writer.getType != MAP || wanted.keyType != StringType) mismatch(writer, SqlTypes.text(wanted))
    else new Entries(field(writer.getValueType, wanted.valueType, isTime = false), wanted)

  private def mismatch(writer: Schema, wanted: String): Nothing =
    throw new Mismatch(s"the writer has ${describe(writer)}, the table $wanted")

  private def describe(writer: Schema): String = {
    val name = Option(writer.getProp("logicalType")).orElse(Option(writer.getProp("connect.name")))
    writer.getType.getName + name.fold("")(n => s" ($n)")
  }
}

private[rejoin] object AvroCompiler {

  /** A writer's type that cannot be read into the column; becomes an [[AvroRefusal]]. */
  final class Mismatch(message: String) extends Exception(message, null, false, false)

  /** Puts another step around the step of a column, given the writer's type. */
  type Wrap = (Schema, AvroField) => AvroField

  val NoWrap: Wrap = (_, step) => step
}

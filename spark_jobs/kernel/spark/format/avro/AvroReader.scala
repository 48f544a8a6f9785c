package org.apache.spark.sql.rejoin.format.avro

import java.io.ByteArrayOutputStream

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.generic.GenericDatumWriter
import org.apache.avro.io.EncoderFactory

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.debezium.OtherRecords
import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec, RowDecoder, SourceRecord}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Decodes Avro records that carry the id of their writer schema.
  *
  * Each writer schema is compiled once per task into steps that read its binary form straight into the
  * row, without Avro objects in between.
  *
  * @param unavailable
  *   handles values that Debezium leaves out; null where no value is a placeholder
  */
final class AvroDecoder(
    format: FormatSpec,
    targets: Seq[FieldTarget],
    isKey: Boolean,
    unavailable: AvroUnavailable = null)
    extends RowDecoder {
  private val wrap: AvroCompiler.Wrap =
    if (unavailable == null) AvroCompiler.NoWrap else unavailable.wrap(_, _)
  private val compiler = new AvroCompiler(AvroDecoder.declared(format), wrap)
  private val readers = new ReadersBySchemaId[AvroRecordReader](format, isKey, compiled)
  private val input = new AvroInput

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    val reader = readers.of(bytes, record)
    try reader.read(input.open(bytes, readers.bodyAt), row)
    catch { case _: ArrayIndexOutOfBoundsException => AvroDecoder.endsEarly(readers.idText) }
  }

  /** A topic of Debezium's rows may also have records that are not rows. */
  private def compiled(schema: Schema, id: String): AvroRecordReader = {
    val problem =
      if (unavailable == null || schema.getType != Schema.Type.RECORD) null
      else OtherRecords.problemOf(AvroDecoder.fieldNames(schema))
    if (problem == null) compiler.compile(schema, id, targets) else new AvroNoRow(problem)
  }
}

/** Decodes Avro without a registry: every record has the schema that follows from the table's columns. */
final class PlainAvroDecoder(format: FormatSpec, targets: Seq[FieldTarget]) extends RowDecoder {
  private val reader = new AvroCompiler(None).compile(AvroDecoder.schema(format), "of the table", targets)
  private val input = new AvroInput

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    try reader.read(input.open(bytes, 0), row)
    catch { case _: ArrayIndexOutOfBoundsException => AvroDecoder.endsEarly("of the table") }
    if (input.at < bytes.length)
      AvroInput.fail(s"${bytes.length - input.at} bytes are left over: the writer has another schema than the table")
  }
}

object AvroDecoder {
  def declared(format: FormatSpec): Option[Schema] = format.options.get("schema").map(new Schema.Parser().parse(_))

  /** The schema of a format that cannot do without one; the planner has set it. */
  def schema(format: FormatSpec): Schema =
    declared(format).getOrElse(throw new IllegalArgumentException(s"format ${format.name} has no schema"))

  /** The record type of a nullable record. */
  def recordOf(schema: Schema): Option[Schema] =
    if (schema.getType == Schema.Type.UNION) schema.getTypes.asScala.find(_.getType == Schema.Type.RECORD)
    else Option.when(schema.getType == Schema.Type.RECORD)(schema)

  def encode(schema: Schema, value: Any): Array[Byte] = {
    val out = new ByteArrayOutputStream
    val encoder = EncoderFactory.get.binaryEncoder(out, null)
    new GenericDatumWriter[Any](schema).write(value, encoder)
    encoder.flush()
    out.toByteArray
  }

  def fieldNames(record: Schema): Set[String] = record.getFields.asScala.map(_.name).toSet

  def endsEarly(id: String): Nothing =
    throw new BadRecord(Reason.AvroMalformed, s"not Avro of schema $id: the record ends early")
}

/** Reads a record of one writer schema into the columns of a row. */
sealed trait AvroRecordReader {
  def read(in: AvroInput, row: InternalRow): Unit
}

/** Reads or skips the writer's fields in their order, then sets the columns that the writer lacks. */
final class AvroRecordSteps(steps: Array[AvroField], ordinals: Array[Int])
    extends AvroRecordReader {
  override def read(in: AvroInput, row: InternalRow): Unit = {
    var i = 0
    while (i < steps.length) {
      steps(i).read(in, row, ordinals(i))
      i += 1
    }
  }
}

/** A writer schema that does not fit the table: each of its records is bad. */
final class AvroRefusal(val message: String) extends AvroRecordReader {
  override def read(in: AvroInput, row: InternalRow): Unit =
    throw new BadRecord(Reason.AvroMismatch, message)
}

/** A writer schema whose records are not rows. */
final class AvroNoRow(problem: BadRecord) extends AvroRecordReader {
  override def read(in: AvroInput, row: InternalRow): Unit = throw problem
}

/** One step over binary Avro; steps that only skip data ignore `ordinal`. */
abstract class AvroField {
  def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit
}

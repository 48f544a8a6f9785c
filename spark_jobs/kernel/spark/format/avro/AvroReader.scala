package org.apache.spark.sql.rejoin.format.avro

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.debezium.OtherRecords
import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec, RowDecoder, SourceRecord}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Avro whose records name the schema that they are written with.
  *
  * Each writer schema is compiled once per task into steps over its binary form; no Avro object is
  * ever made of a record.
  *
  * @param unavailable
  *   what becomes of values that Debezium leaves out; null where no value stands for such
  */
final class AvroDecoder(
    format: FormatSpec,
    targets: Seq[FieldTarget],
    isKey: Boolean,
    unavailable: AvroUnavailable = null)
    extends RowDecoder {
  private val watch: AvroCompiler.Watch =
    if (unavailable == null) AvroCompiler.Unwatched else unavailable.watch(_, _)
  private val compiler = new AvroCompiler(AvroDecoder.declared(format), watch)
  private val writers = new AvroWriters[AvroRecordReader](format, isKey, compiled)
  private val input = new AvroInput

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    val reader = writers.of(bytes, record)
    try reader.read(input.open(bytes, writers.bodyAt), row)
    catch { case _: ArrayIndexOutOfBoundsException => AvroDecoder.endsEarly(writers.idText) }
  }

  /** Debezium's rows may stand beside records of its own that are none. */
  private def compiled(schema: Schema, id: String): AvroRecordReader = {
    val problem =
      if (unavailable == null || schema.getType != Schema.Type.RECORD) null
      else OtherRecords.problemOf(AvroDecoder.fieldNames(schema))
    if (problem == null) compiler.compile(schema, id, targets) else new AvroNoRow(problem)
  }
}

/** Avro without a registry: every record is written with the schema that the table's columns make. */
final class PlainAvroDecoder(format: FormatSpec, targets: Seq[FieldTarget]) extends RowDecoder {
  private val schema = AvroDecoder
    .declared(format)
    .getOrElse(throw new IllegalArgumentException("format 'avro' comes without its schema"))
  private val reader = new AvroCompiler(None).compile(schema, "of the table", targets)
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

  def fieldNames(record: Schema): Set[String] = record.getFields.asScala.map(_.name).toSet

  def endsEarly(id: String): Nothing =
    throw new BadRecord(Reason.AvroMalformed, s"not Avro of schema $id: the record ends early")
}

/** Reads a record of one writer schema into the columns of a row. */
sealed trait AvroRecordReader {
  def read(in: AvroInput, row: InternalRow): Unit
}

/** The writer's fields in order, each read into its column or passed over; then what it lacks. */
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

/** A writer schema whose records are no rows. */
final class AvroNoRow(problem: BadRecord) extends AvroRecordReader {
  override def read(in: AvroInput, row: InternalRow): Unit = throw problem
}

/** One step over binary Avro; `ordinal` is of no meaning to steps that only pass over data. */
abstract class AvroField {
  def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit
}

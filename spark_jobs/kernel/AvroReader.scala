package org.apache.spark.sql.rejoin

import java.util

import org.apache.avro.Schema

import org.apache.spark.sql.catalyst.InternalRow

/** Avro with a registry's schema id in front: a zero byte, the id as four bytes, the record.
  *
  * Each writer schema is compiled once per task into steps over its binary form; no Avro object is
  * ever made of a record.
  */
final class AvroDecoder(format: FormatSpec, targets: Seq[FieldTarget]) extends RowDecoder {
  private val registry = Registry.of(format.options)
  private val readerSchema = format.options.get("schema").map(new Schema.Parser().parse(_))
  private val readers = new util.HashMap[Int, AvroRecordReader]
  private val input = new AvroInput
  private var lastId = -1
  private var lastReader: AvroRecordReader = _

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    val id = AvroDecoder.schemaId(bytes)
    if (id != lastId) {
      lastReader = reader(id)
      lastId = id
    }
    try lastReader.read(input.open(bytes, AvroDecoder.PrefixSize), row)
    catch {
      case _: ArrayIndexOutOfBoundsException =>
        throw new BadRecord(
          Reason.AvroMalformed,
          s"not Avro of schema $id: the record ends early")
    }
  }

  private def reader(id: Int): AvroRecordReader = {
    val known = readers.get(id)
    if (known != null) known
    else {
      val compiled = AvroCompiler.compile(registry.schema(id), id, targets, readerSchema)
      readers.put(id, compiled)
      compiled
    }
  }
}

object AvroDecoder {
  final val PrefixSize = 5

  def schemaId(bytes: Array[Byte]): Int = {
    if (bytes.length < PrefixSize) refuse(s"${bytes.length} bytes cannot hold a schema id")
    bytes(0) match {
      case 0 => ()
      case 3 => refuse("starts with byte 3, AWS Glue's framing, which is not supported")
      case other => refuse(s"starts with byte $other, not with 0 and a schema id")
    }
    val id = (bytes(1) & 0xff) << 24 | (bytes(2) & 0xff) << 16 |
      (bytes(3) & 0xff) << 8 | (bytes(4) & 0xff)
    if (id == 0)
      refuse("schema id 0: likely Apicurio's own 8-byte id; use its Default4ByteIdHandler")
    id
  }

  private def refuse(message: String): Nothing = throw new BadRecord(Reason.AvroFraming, message)
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
final class AvroRefusal(message: String) extends AvroRecordReader {
  override def read(in: AvroInput, row: InternalRow): Unit =
    throw new BadRecord(Reason.AvroMismatch, message)
}

/** One step over binary Avro; `ordinal` is of no meaning to steps that only pass over data. */
abstract class AvroField {
  def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit
}

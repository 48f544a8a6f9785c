package org.apache.spark.sql.rejoin.format.protobuf

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.avro.PrefixedId
import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec, RowDecoder, SourceRecord}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Decodes an encoded message as a row, by the field numbers that the planner has found in the descriptor file.
  *
  * With `proto-registry` a schema id and the place of the message in its file come first, as Confluent's
  * serializer writes them.
  */
private[format] final class ProtobufDecoder(format: FormatSpec, targets: Seq[FieldTarget]) extends RowDecoder {
  private implicit val formats: Formats = DefaultFormats
  private val layout = parse(format.options("layout"))
  private val places = (layout \ "places").extract[Seq[Seq[Int]]]
  private val ids = if (format.name == "proto-registry") new PrefixedId else null
  private val message = {
    val columns = (layout \ "columns").children.map(node => (node \ "name").extract[String] -> node).toMap
    new MessageReader(targets.map { target =>
      val (number, reader) =
        MessageReader.field(columns(target.field), target.dataType, format.flag("read-default-values"))
      (number, reader, target.ordinal)
    })
  }

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    val in = new ProtobufInput(bytes, 0, bytes.length)
    if (ids != null) readFrame(in, record)
    message.read(in, row, isAgain = false)
  }

  private def readFrame(in: ProtobufInput, record: SourceRecord): Unit = {
    try ids.read(in.bytes, record)
    catch {
      case bad: BadRecord if bad.reason == Reason.AvroFraming =>
        throw new BadRecord(Reason.ProtobufFraming, bad.getMessage)
    }
    in.at = ids.bodyAt
    val found = placeOf(in)
    if (!places.contains(found))
      throw new BadRecord(
        Reason.ProtobufFraming,
        s"the message at ${found.mkString(".")} of its file, the table reads the one at ${places.head.mkString(".")}")
  }

  /** A single zero stands for the first message of the file. */
  private def placeOf(in: ProtobufInput): Seq[Int] = {
    val count = in.zigzag()
    if (count < 0 || count > in.end - in.at) ProtobufInput.malformed(s"a place of $count numbers")
    if (count == 0) ProtobufDecoder.First else Seq.fill(count.toInt)(in.zigzag().toInt)
  }
}

private object ProtobufDecoder {
  private val First = Seq(0)
}

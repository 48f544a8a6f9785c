package org.apache.spark.sql.rejoin.format.avro

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.rejoin.format.debezium.DebeziumEvent
import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, SourceRecord, ValueDecoder}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}

/** Debezium's change events as Avro with a registry, and those that Flink writes.
  *
  * The writer's envelope is compiled into steps that read `before` and `after` into the rows, and `op`,
  * `ts_ms` and the fields of `source` that are used into the [[DebeziumEvent]]; the rest is skipped.
  */
final class DebeziumAvroDecoder(spec: IngestSpec, targets: Seq[FieldTarget]) extends ValueDecoder {
  private val event = new DebeziumEvent(spec)
  private val unavailable = new AvroUnavailable(spec.debezium.heals)
  private val compiler = new AvroEnvelopes(spec, targets, event, unavailable)
  private val readers = new ReadersBySchemaId[AvroStep](spec.valueFormat, isKey = false, compiler.compile(_, _))
  private val input = new AvroInput

  override def decode(record: SourceRecord, into: Decoded): Unit = if (record.value != null) {
    event.clear()
    unavailable.missing = into.missing
    val envelope = readers.of(record.value, record)
    try envelope.read(input.open(record.value, readers.bodyAt), into)
    catch { case _: ArrayIndexOutOfBoundsException => AvroDecoder.endsEarly(readers.idText) }
    event.changes(into)
  }
}

/** One step over Debezium's envelope. */
private[rejoin] abstract class AvroStep {
  def read(in: AvroInput, into: Decoded): Unit
}

/** Compiles envelopes of one table into steps that fill its `event`. */
private final class AvroEnvelopes(
    spec: IngestSpec,
    targets: Seq[FieldTarget],
    event: DebeziumEvent,
    unavailable: AvroUnavailable) {
  import AvroEnvelopes._

  private val declared = AvroDecoder.declared(spec.valueFormat).flatMap(AvroDecoder.recordOf)
  private val compiler = new AvroCompiler(None)

  private val beforeTargets = event.beforeTargets(targets)

  def compile(writer: Schema, id: String): AvroStep =
    try
      step(writer) {
        case record if record.getType == RECORD && record.getField("op") == null => (_, _) => throw notAnEvent(record)
        case record if record.getType == RECORD =>
          new Steps(record.getFields.asScala.map(f => named(f.name)(part(f.name, f.schema))).toArray)
        case other => skip(other)
      }
    catch {
      case mismatch: AvroCompiler.Mismatch =>
        (_, _) => throw new BadRecord(Reason.AvroMismatch, s"schema $id: ${mismatch.getMessage}")
    }

  private def part(name: String, writer: Schema): AvroStep = step(writer)(present =>
    (name, present.getType) match {
      case ("before", RECORD) => before(present)
      case ("after", RECORD) => after(present)
      case ("source", RECORD) if event.source.isWanted =>
        new Steps(present.getFields.asScala.map(f => step(f.schema)(sourceField(f.name, _))).toArray)
      case ("op", STRING) => (in, _) => event.op = op(in)
      case ("ts_ms", LONG) => (in, _) => event.source.handledAt(in.long())
      case _ => skip(present)
    })

  private def before(writer: Schema): AvroStep = {
    val reader = compiler.row(writer, beforeTargets, rowOf("before"), AvroCompiler.NoWrap)
    (in, into) => {
      reader.read(in, into.before)
      event.hasBefore = true
    }
  }

  private def after(writer: Schema): AvroStep = {
    val reader = compiler.row(writer, targets, rowOf("after"), unavailable.wrap(_, _))
    (in, into) => {
      reader.read(in, into.after)
      event.hasAfter = true
    }
  }

  /** A row's schema in the table's own `schema` option, for its defaults and aliases. */
  private def rowOf(name: String): Option[Schema] =
    declared.flatMap(d => Option(d.getField(name))).flatMap(f => AvroDecoder.recordOf(f.schema))

  private def sourceField(name: String, writer: Schema): AvroStep =
    if (!event.source.wants(name)) skip(writer)
    else
      writer.getType match {
        case INT | LONG => (in, _) => event.source.number(name, in.long())
        case STRING => (in, _) => event.source.text(name, in.text().toString)
        case NULL => (_, _) => event.source.text(name, null)
        case BOOLEAN => (in, _) => event.source.text(name, in.boolean().toString)
        case _ => skip(writer)
      }

  private def op(in: AvroInput): String = {
    val text = in.text()
    val known = if (text.numBytes == 1) Ops.indexOf(text.getByte(0).toInt) else -1
    if (known >= 0) OpTexts(known) else text.toString
  }

  /** The step over a type; over a union, a step for each of its branches. */
  private def step(writer: Schema)(one: Schema => AvroStep): AvroStep =
    if (writer.getType == UNION) new Branches(writer.getTypes.asScala.map(one).toArray) else one(writer)
}

private object AvroEnvelopes {
  private val Ops = "crudtm"
  private val OpTexts = Ops.map(_.toString).toArray

  private def notAnEvent(record: Schema): BadRecord = record.getName match {
    case "Heartbeat" => new BadRecord(Reason.Heartbeat, "a heartbeat is no row")
    case "TransactionMetadataValue" => new BadRecord(Reason.Transaction, "a transaction's mark is no row")
    case other => new BadRecord(Reason.Envelope, s"'$other' has no 'op': not an event of Debezium")
  }

  private def named(name: String)(compiled: => AvroStep): AvroStep =
    try compiled
    catch { case m: AvroCompiler.Mismatch => throw new AvroCompiler.Mismatch(s"'$name'.${m.getMessage}") }

  private def skip(writer: Schema): AvroStep = {
    val skipped = AvroSkips.of(writer)
    (in, _) => skipped.read(in, null: InternalRow, -1)
  }

  private final class Steps(steps: Array[AvroStep]) extends AvroStep {
    override def read(in: AvroInput, into: Decoded): Unit = {
      var i = 0
      while (i < steps.length) {
        steps(i).read(in, into)
        i += 1
      }
    }
  }

  private final class Branches(branches: Array[AvroStep]) extends AvroStep {
    override def read(in: AvroInput, into: Decoded): Unit = branches(in.int()).read(in, into)
  }
}

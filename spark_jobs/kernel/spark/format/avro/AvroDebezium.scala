package org.apache.spark.sql.rejoin.format.avro

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.debezium.DebeziumEvent
import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, SourceRecord, ValueDecoder}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}

/** Debezium's change events as Avro with a registry, and those that Flink writes.
  *
  * The writer's envelope is compiled into steps: `before` and `after` into the rows, `op`, `ts_ms` and
  * what is wanted of `source` into the [[DebeziumEvent]]; the rest is passed over.
  */
final class DebeziumAvroDecoder(spec: IngestSpec, targets: Seq[FieldTarget]) extends ValueDecoder {
  private val event = new DebeziumEvent(spec)
  private val unavailable = new AvroUnavailable(spec.debezium.heals)
  private val compiler = new AvroEnvelopes(spec, targets, event, unavailable)
  private val writers = new AvroWriters[AvroStep](spec.valueFormat, isKey = false, compiler.compile(_, _))
  private val input = new AvroInput

  override def decode(record: SourceRecord, into: Decoded): Unit = if (record.value != null) {
    event.clear()
    unavailable.missing = into.missing
    val envelope = writers.of(record.value, record)
    try envelope.read(input.open(record.value, writers.bodyAt), into)
    catch { case _: ArrayIndexOutOfBoundsException => AvroDecoder.endsEarly(writers.idText) }
    event.changes(into)
  }
}

/** One step over an envelope. */
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

  private val declared = AvroDecoder.declared(spec.valueFormat).flatMap(present)
  private val compiler = new AvroCompiler(None)

  /** The row before may be empty beside the key, so that an upsert table reads no more of it. */
  private val beforeTargets =
    if (spec.isUpsert) targets.filter(t => spec.primaryKey.contains(spec.columns(t.ordinal).name)) else targets

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
    val reader = compiler.row(writer, beforeTargets, rowOf("before"), AvroCompiler.Unwatched)
    (in, into) => {
      reader.read(in, into.before)
      event.hasBefore = true
    }
  }

  private def after(writer: Schema): AvroStep = {
    val reader = compiler.row(writer, targets, rowOf("after"), unavailable.watch(_, _))
    (in, into) => {
      reader.read(in, into.after)
      event.hasAfter = true
    }
  }

  /** The row in the envelope of the table's own `schema`, for its defaults and aliases. */
  private def rowOf(name: String): Option[Schema] =
    declared.flatMap(d => Option(d.getField(name))).flatMap(f => present(f.schema))

  private def sourceField(name: String, writer: Schema): AvroStep =
    if (!event.source.wants(name)) skip(writer)
    else
      writer.getType match {
        case INT | LONG => (in, _) => event.source.number(name, in.long())
        case STRING => (in, _) => event.source.text(name, text(in))
        case NULL => (_, _) => event.source.text(name, null)
        case BOOLEAN => (in, _) => event.source.text(name, in.boolean().toString)
        case _ => skip(writer)
      }

  private def op(in: AvroInput): String = {
    val length = in.length()
    val first = if (length == 1) in.bytes(in.at).toInt else 0
    val known = Ops.indexOf(first)
    if (known >= 0) {
      in.advance(1)
      OpTexts(known)
    } else {
      val text = UTF8String.fromBytes(in.bytes, in.at, length).toString
      in.advance(length)
      text
    }
  }

  /** A step over a type, or over the branches of a union of it. */
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

  /** What is not NULL of a nullable record. */
  private def present(schema: Schema): Option[Schema] =
    if (schema.getType == UNION) schema.getTypes.asScala.find(_.getType == RECORD)
    else Option.when(schema.getType == RECORD)(schema)

  private def named(name: String)(compiled: => AvroStep): AvroStep =
    try compiled
    catch { case m: AvroCompiler.Mismatch => throw new AvroCompiler.Mismatch(s"'$name'.${m.getMessage}") }

  private def text(in: AvroInput): String = {
    val length = in.length()
    val from = in.at
    in.advance(length)
    new String(in.bytes, from, length, java.nio.charset.StandardCharsets.UTF_8)
  }

  private def skip(writer: Schema): AvroStep = {
    val passed = AvroSkips.of(writer)
    (in, _) => passed.read(in, null: InternalRow, -1)
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

package org.apache.spark.sql.rejoin.format.avro

import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, render}

import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec}

/** Whether records of a registered schema would become rows of a table, by the rules of its decoder. */
object AvroFit {

  /** `{"problem": text or null, "absent": columns that would be NULL}` for the schema with an id. */
  def json(spec: IngestSpec, isKey: Boolean, id: Long): String = {
    val format = if (isKey) spec.keyFormat.get else spec.valueFormat
    val targets = spec.columnsFrom(if (isKey) "key" else "value")
    val fit =
      try of(format, targets, Registry.of(format.options).byId(id), id)
      catch { case bad: BadRecord => Left(bad.getMessage) }
    val absent = fit.getOrElse(Nil)
    val refused = absent.filterNot(isNullable(spec, _)).map(column => s"'$column' is NOT NULL and not in the schema")
    compact(render(("problem" -> fit.left.toOption.orElse(refused.headOption)) ~ ("absent" -> absent)))
  }

  private def of(
      format: FormatSpec,
      targets: Seq[FieldTarget],
      schema: Schema,
      id: Long): Either[String, Seq[String]] = {
    val declared = AvroDecoder.declared(format)
    if (format.name != "debezium-avro-confluent") row(schema, targets, declared, id)
    else
      rowOf(schema) match {
        case Some(after) => row(after, targets, declared.flatMap(rowOf), id)
        case None => Left(s"schema $id is no envelope of Debezium: it has no record 'after'")
      }
  }

  private def row(
      writer: Schema,
      targets: Seq[FieldTarget],
      declared: Option[Schema],
      id: Long): Either[String, Seq[String]] =
    new AvroCompiler(declared).compile(writer, id.toString, targets) match {
      case refusal: AvroRefusal => Left(refusal.message)
      case _ => Right(if (writer.getType == Schema.Type.RECORD) absent(writer, targets, declared) else Nil)
    }

  private def absent(writer: Schema, targets: Seq[FieldTarget], declared: Option[Schema]): Seq[String] =
    targets.map(_.field).filter { column =>
      val own = declared.flatMap(d => Option(d.getField(column)))
      val names = column +: own.toSeq.flatMap(_.aliases.asScala)
      !names.exists(writer.getField(_) != null) && !own.exists(_.hasDefaultValue)
    }

  private def rowOf(envelope: Schema): Option[Schema] =
    AvroDecoder
      .recordOf(envelope)
      .flatMap(e => Option(e.getField("after")))
      .flatMap(f => AvroDecoder.recordOf(f.schema))

  private def isNullable(spec: IngestSpec, field: String): Boolean =
    spec.columns.find(_.field == field).forall(c => c.nullable && !spec.primaryKey.contains(c.name))
}

package org.apache.spark.sql.rejoin.sink

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.format.FormatSpec
import org.apache.spark.sql.rejoin.ingest.IngestSpec
import org.apache.spark.sql.rejoin.run.OperatorNode

/** How rows become records of one topic.
  *
  * @param mode
  *   `append`, `upsert` (key and value or tombstone) or `retract` (the value says what it is)
  * @param schema
  *   the sink's columns, in order
  */
final case class RecordSpec(
    table: String,
    topic: String,
    mode: String,
    keyFormat: Option[FormatSpec],
    valueFormat: FormatSpec,
    keyFields: Seq[String],
    keyPrefix: String,
    valueIncludesKey: Boolean,
    schema: StructType) {

  /** Ordinals of the columns in the record key. */
  def keyOrdinals: Seq[Int] = keyFields.map(schema.fieldIndex)

  def valueOrdinals: Seq[Int] =
    if (valueIncludesKey) schema.indices else schema.indices.diff(keyOrdinals)

  /** The record key as a format sees it. */
  def keySchema: StructType =
    StructType(keyOrdinals.map(i => schema(i).copy(name = schema(i).name.stripPrefix(keyPrefix))))

  def valueSchema: StructType = StructType(valueOrdinals.map(schema(_)))

  override def toString: String = s"topic $topic"
}

/** The planner's JSON for a query's end: the SELECT list, and the sink where there is one.
  *
  * @param left
  *   schema of the packed left rows
  * @param right
  *   of the packed right rows; empty where the query has no join
  */
final case class EmitSpec(
    select: Seq[(String, String)],
    schema: StructType,
    left: StructType,
    right: StructType,
    timeZone: String,
    sink: Option[RecordSpec]) {

  /** What the SELECT list is bound to; all columns are nullable, as padding makes them. */
  def joined: StructType = OperatorNode.joined((left, right))
}

object EmitSpec {
  private implicit val formats: Formats = DefaultFormats

  /** Reads a sink and the number of the input whose rows are written. */
  def read(json: String, input: Int): EmitSpec = {
    val root = parse(json)
    read(root, (root \ "inputs")(input))
  }

  /** Reads one `project` of a `kafka-sink` or of a query without a sink. */
  def read(root: JValue, project: JValue): EmitSpec = {
    val (left, right) = sides(project \ "input")
    EmitSpec(
      select = (project \ "select").children.map { s =>
        (s \ "name").extract[String] -> (s \ "expr").extract[String]
      },
      schema = OperatorNode.schema(project \ "schema"),
      left = left,
      right = right,
      timeZone = (project \ "timeZone").extract[String],
      sink = Option.when((root \ "kind").extract[String] == "kafka-sink")(record(root)))
  }

  def record(node: JValue): RecordSpec =
    RecordSpec(
      table = (node \ "table").extract[String],
      topic = (node \ "topic").extract[String],
      mode = (node \ "mode").extract[String],
      keyFormat = IngestSpec.present(node \ "keyFormat").map(IngestSpec.format),
      valueFormat = IngestSpec.format(node \ "valueFormat"),
      keyFields = (node \ "keyFields").extract[Seq[String]],
      keyPrefix = (node \ "keyPrefix").extract[String],
      valueIncludesKey = (node \ "valueIncludesKey").extract[Boolean],
      schema = OperatorNode.schema(node \ "schema"))

  private def sides(input: JValue): (StructType, StructType) =
    if ((input \ "kind").extract[String] == "kafka-scan") OperatorNode.schema(input \ "schema") -> StructType(Nil)
    else OperatorNode.read(input).emitted
}

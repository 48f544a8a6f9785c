package org.apache.spark.sql.rejoin.sink

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.types.{DataType, StructField, StructType}

import org.apache.spark.sql.rejoin.format.FormatSpec
import org.apache.spark.sql.rejoin.ingest.IngestSpec
import org.apache.spark.sql.rejoin.run.OperatorNode

/** How rows are written as records of one topic.
  *
  * @param mode
  *   `append`, `upsert` (key, and value or tombstone) or `retract` (the value holds the row kind)
  * @param schema
  *   the sink's columns, in order
  * @param metadata
  *   the columns that are no part of key or value, by the metadata that they become
  * @param timeZone
  *   the one of a TIMESTAMP that becomes the record's
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
    schema: StructType,
    metadata: Map[String, String],
    timeZone: String) {

  /** Ordinals of the columns in the record key. */
  def keyOrdinals: Seq[Int] = keyFields.map(schema.fieldIndex)

  def valueOrdinals: Seq[Int] = {
    val stored = schema.indices.diff(metadata.values.map(schema.fieldIndex).toSeq)
    if (valueIncludesKey) stored else stored.diff(keyOrdinals)
  }

  /** The record key's columns, under their names in the format. */
  def keySchema: StructType =
    StructType(keyOrdinals.map(i => schema(i).copy(name = schema(i).name.stripPrefix(keyPrefix))))

  def valueSchema: StructType = StructType(valueOrdinals.map(schema(_)))

  override def toString: String = s"topic $topic"
}

/** The planner's JSON for the end of a query: the SELECT list, and the sink if there is one.
  *
  * @param left
  *   schema of the packed left rows
  * @param right
  *   schema of the packed right rows; empty if the query has no join
  * @param computed
  *   columns that Python computes, each of the columns before it
  * @param where
  *   which rows are written, where Python has to compute it
  */
final case class EmitSpec(
    select: Seq[(String, String)],
    schema: StructType,
    left: StructType,
    right: StructType,
    timeZone: String,
    sink: Option[RecordSpec],
    computed: Seq[PythonColumn] = Nil,
    where: Option[String] = None) {

  /** The schema to which the SELECT list is bound; all columns are nullable, because of padding. */
  def joined: StructType = before(computed.size)

  /** The columns that the arguments of a column of Python's may read. */
  def before(column: Int): StructType =
    StructType(OperatorNode.joined((left, right)) ++ computed.take(column).map(c => StructField(c.name, c.dataType)))

  /** How many columns the packed rows have. */
  def packed: Int = left.size + right.size

  /** Whether a retraction is a record without a value, for which nothing has to be computed. */
  def writesTombstones: Boolean = sink.exists(_.mode == "upsert")
}

/** A column that Python computes of `arguments`, which have the types `argumentTypes`. */
final case class PythonColumn(name: String, arguments: Seq[String], argumentTypes: StructType, dataType: DataType)

object EmitSpec {
  private implicit val formats: Formats = DefaultFormats

  /** Reads a sink with one of its inputs. */
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
      sink = Option.when((root \ "kind").extract[String] == "kafka-sink")(record(root, project)),
      computed = (project \ "computed").children.map(column),
      where = OperatorNode.present(project \ "where").map(_.extract[String]))
  }

  private def column(node: JValue): PythonColumn = {
    val field = OperatorNode.schema(node \ "schema").head
    PythonColumn(
      field.name,
      (node \ "arguments").extract[Seq[String]],
      OperatorNode.schema(node \ "argumentTypes"),
      field.dataType)
  }

  private def record(node: JValue, project: JValue): RecordSpec =
    RecordSpec(
      table = (node \ "table").extract[String],
      topic = (node \ "topic").extract[String],
      mode = (node \ "mode").extract[String],
      keyFormat = IngestSpec.present(node \ "keyFormat").map(IngestSpec.format),
      valueFormat = IngestSpec.format(node \ "valueFormat"),
      keyFields = (node \ "keyFields").extract[Seq[String]],
      keyPrefix = (node \ "keyPrefix").extract[String],
      valueIncludesKey = (node \ "valueIncludesKey").extract[Boolean],
      schema = OperatorNode.schema(node \ "schema"),
      metadata = (node \ "metadata").children
        .map(m => (m \ "key").extract[String] -> (m \ "column").extract[String])
        .toMap,
      timeZone = (project \ "timeZone").extract[String])

  private def sides(input: JValue): (StructType, StructType) =
    if ((input \ "kind").extract[String] == "kafka-scan") OperatorNode.schema(input \ "schema") -> StructType(Nil)
    else OperatorNode.read(input).emitted
}

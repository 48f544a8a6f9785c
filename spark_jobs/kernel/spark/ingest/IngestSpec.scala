package org.apache.spark.sql.rejoin.ingest

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JNothing, JNull, JValue}

import org.apache.spark.sql.types._

import org.apache.spark.sql.rejoin.format.debezium.AddedFields
import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec}
import org.apache.spark.sql.rejoin.run.OperatorNode

/** A column that is read from a record.
  *
  * @param from
  *   `value`, `key` or `metadata`
  * @param field
  *   name inside the format, or key of the metadata
  * @param sqlType
  *   the type as Flink SQL writes it; distinguishes TIME from INT, which Spark does not
  */
final case class ScanColumn(
    name: String,
    dataType: DataType,
    nullable: Boolean,
    from: String,
    field: String,
    sqlType: Option[String])

/** How a table's Debezium events are read (`Debezium` of spark_jobs/plan/nodes/parts.py).
  *
  * @param unwrapped
  *   whether values are rows made by ExtractNewRecordState
  * @param fullBefore
  *   whether the row before a change is complete
  * @param heals
  *   whether a value that the event leaves out is taken from the row in state
  * @param positions
  *   whether rows carry their source position
  * @param followsKeys
  *   whether rows of a changed primary key are marked as moved
  * @param timestampUnit
  *   the unit of a number in a TIMESTAMP or TIME column, where no schema says it
  * @param decimals
  *   `base64`: a text in a DECIMAL column is an unscaled number in base64, where no schema says it
  */
final case class DebeziumSpec(
    unwrapped: Boolean,
    fullBefore: Boolean,
    heals: Boolean,
    positions: Boolean,
    followsKeys: Boolean,
    retractsOnTruncate: Boolean,
    timestampUnit: Option[String],
    decimals: String)

object DebeziumSpec {

  /** For a table that Debezium does not write. */
  val None: DebeziumSpec = DebeziumSpec(false, false, false, false, false, false, scala.None, "text")
}

/** The planner's JSON for reading one table (`kafka-scan` of spark_jobs/plan/nodes/physical.py).
  *
  * @param topics
  *   topic name to its index in the plan-wide list
  * @param filter
  *   condition over the columns; a row of an upsert table that fails it is a deletion of its key
  * @param key
  *   expressions of the key by which rows are grouped
  * @param dropNullKeys
  *   positions in the key: a row with a NULL there can neither match nor be padded
  * @param row
  *   expressions of the columns that are kept
  * @param chunked
  *   whether a stateful operator takes the rows: they are packed in chunks ([[ChunkWriter]])
  * @param realTime
  *   whether rows leave at once, and marks among them
  * @param steps
  *   whether they wait for a barrier instead, and marks come with it
  * @param rejectLimit
  *   the share of bad records at which the job stops; None for no limit
  */
final case class IngestSpec(
    table: String,
    side: Byte,
    topics: Map[String, Int],
    groups: Int,
    changelog: String,
    keyFormat: Option[FormatSpec],
    valueFormat: FormatSpec,
    columns: Seq[ScanColumn],
    primaryKey: Seq[String],
    filter: Option[String],
    rowtime: Option[String],
    watermark: Option[String],
    key: Seq[String],
    dropNullKeys: Seq[Int],
    row: Seq[String],
    schema: StructType,
    marks: Boolean,
    onError: String,
    deadLetterTopic: Option[String],
    timeZone: String,
    chunked: Boolean,
    realTime: Boolean,
    steps: Boolean,
    debezium: DebeziumSpec,
    rejectLimit: Option[RejectLimit]) {

  def isUpsert: Boolean = changelog == "upsert"

  /** Whether Debezium wrote the records. */
  def isDebezium: Boolean = debezium.unwrapped || valueFormat.name.startsWith("debezium-")

  /** Types of a decoded row: the columns, then the fields that only the decoder uses. */
  def decodedTypes: Seq[DataType] =
    columns.map(_.dataType) ++ (if (debezium.unwrapped) AddedFields.types else Nil)

  /** The schema to which expressions are bound. All columns are nullable: a deletion has only its key. */
  def columnSchema: StructType =
    StructType(columns.map(c => StructField(c.name, c.dataType, nullable = true)))

  /** Whether a column is part of the primary key. */
  def isOfKey(ordinal: Int): Boolean = primaryKey.contains(columns(ordinal).name)

  def ordinal(column: String): Int = columns.indexWhere(_.name == column)

  def columnsFrom(origin: String): Seq[FieldTarget] =
    columns.zipWithIndex.collect {
      case (c, i) if c.from == origin =>
        FieldTarget(c.field, c.dataType, i, c.sqlType)
    }
}

object IngestSpec {
  private implicit val formats: Formats = DefaultFormats

  def read(json: String, chunked: Boolean, realTime: Boolean, steps: Boolean): IngestSpec =
    read(parse(json), chunked, realTime, steps)

  def read(node: JValue, chunked: Boolean, realTime: Boolean = false, steps: Boolean = false): IngestSpec = {
    def text(name: String): Option[String] = present(node \ name).map(_.extract[String])
    def expressions(name: String): Seq[String] =
      (node \ name).children.map(e => (e \ "expr").extract[String])
    IngestSpec(
      table = (node \ "table").extract[String],
      side = (node \ "side").extract[Int].toByte,
      topics = (node \ "topics").children.map(topic).toMap,
      groups = (node \ "groups").extract[Int],
      changelog = (node \ "changelog").extract[String],
      keyFormat = present(node \ "keyFormat").map(format),
      valueFormat = format(node \ "valueFormat"),
      columns = (node \ "columns").children.map(column),
      primaryKey = (node \ "primaryKey").extract[Seq[String]],
      filter = text("filter"),
      rowtime = text("rowtime"),
      watermark = text("watermark"),
      key = (node \ "key").extract[Seq[String]],
      dropNullKeys = (node \ "dropNullKeys").extract[Seq[Int]],
      row = expressions("row"),
      schema = OperatorNode.schema(node \ "schema"),
      marks = (node \ "marks").extract[Boolean],
      onError = (node \ "onError").extract[String],
      deadLetterTopic = text("deadLetterTopic"),
      timeZone = (node \ "timeZone").extract[String],
      chunked = chunked,
      realTime = realTime,
      steps = steps,
      debezium = present(node \ "debezium").fold(DebeziumSpec.None)(_.extract[DebeziumSpec]),
      rejectLimit = present(node \ "rejectLimit").map(_.extract[RejectLimit]))
  }

  def format(node: JValue): FormatSpec =
    FormatSpec(
      (node \ "name").extract[String],
      (node \ "options").extract[Map[String, String]])

  private def topic(node: JValue): (String, Int) =
    (node \ "name").extract[String] -> (node \ "index").extract[Int]

  private def column(node: JValue): ScanColumn =
    ScanColumn(
      (node \ "name").extract[String],
      DataType.fromJson(compact(render(node \ "type"))),
      (node \ "nullable").extract[Boolean],
      (node \ "from").extract[String],
      (node \ "field").extract[String],
      present(node \ "sqlType").map(_.extract[String]))

  private[rejoin] def present(node: JValue): Option[JValue] = node match {
    case JNothing | JNull => None
    case value => Some(value)
  }
}

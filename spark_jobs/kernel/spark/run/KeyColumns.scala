package org.apache.spark.sql.rejoin.run

import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.types.{StructField, StructType}

import org.apache.spark.sql.rejoin.columns.Expressions
import org.apache.spark.sql.rejoin.ingest.IngestSpec

/** The columns of an operator's join key, for people: named after what the first input is keyed by. */
object KeyColumns {
  private implicit val formats: Formats = DefaultFormats

  /** @param operator
    *   a stateful node with its inputs
    */
  def of(operator: JValue): StructType = {
    val input = (operator \ "inputs").children.head
    val texts = (input \ "key").extract[Seq[String]]
    val names = texts.map(text => if (isColumn(text)) text.drop(1).dropRight(1).replace("``", "`") else text)
    val columns = declared(operator).getOrElse(bound(texts, input))
    StructType(columns.fields.zip(names).map { case (column, name) => column.copy(name = name, nullable = true) })
  }

  private def isColumn(text: String): Boolean = text.matches("`([^`]|``)+`")

  /** What the planner says of the key where two inputs have to agree on it. */
  private def declared(operator: JValue): Option[StructType] =
    Option(operator \ "key").collect { case key: org.json4s.JObject => OperatorNode.schema(key) }

  private def bound(texts: Seq[String], input: JValue): StructType = {
    val columns =
      if ((input \ "kind").extract[String] == "kafka-scan") IngestSpec.read(input, chunked = false).columnSchema
      else {
        val (left, right) = OperatorNode.read(input \ "input").emitted
        OperatorNode.joined((left, right))
      }
    val zone = (input \ "timeZone").extract[String]
    StructType(Expressions.bind(texts, columns, zone).map(key => StructField("", key.dataType)))
  }
}

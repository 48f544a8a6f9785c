package org.apache.spark.sql.rejoin.lookup

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import org.apache.spark.sql.rejoin.columns.Expressions
import org.apache.spark.sql.rejoin.run.OperatorNode

/** A table in a database, and how rows of it are looked up: `Lookup` of spark_jobs/plan/nodes/parts.py.
  *
  * @param id
  *   all of it as text: lookups that are alike share their connections and their cache
  * @param columns
  *   what is read of the table, by the names in SQL
  * @param key
  *   ordinals in `columns` of what the join key is compared with
  * @param row
  *   what goes on of a row that passes `filter`
  */
final case class LookupSpec(
    id: String,
    operator: String,
    table: String,
    columns: Seq[LookupColumn],
    key: Seq[Int],
    filter: Option[Expression],
    row: Seq[Expression],
    properties: Map[String, String],
    maxRetryTimeoutMs: Long,
    maxRetries: Int,
    cache: Option[CacheSpec],
    timeZone: String)

/** A column as SQL declares it; `dataType` is Spark's type of it. */
final case class LookupColumn(name: String, dataType: DataType, sqlType: String, nullable: Boolean) {
  def field: StructField = StructField(name, dataType, nullable)

  /** Whether its integers are milliseconds of a day. */
  def isTime: Boolean = sqlType.startsWith("TIME(")
}

/** No limit where there is none. */
final case class CacheSpec(
    maxRows: Option[Long],
    expireAfterWriteMs: Option[Long],
    expireAfterAccessMs: Option[Long],
    missingKeys: Boolean)

object LookupSpec {
  private implicit val formats: Formats = DefaultFormats

  /** Of a node `lookup-join`; to be called on the driver. */
  def read(json: String): LookupSpec = {
    val node = parse(json)
    val lookup = node \ "lookup"
    val columns = (lookup \ "columns").children.map { column =>
      LookupColumn(
        (column \ "name").extract[String],
        DataType.fromJson(compact(render(column \ "type"))),
        (column \ "sqlType").extract[String],
        (column \ "nullable").extract[Boolean])
    }
    val timeZone = (lookup \ "timeZone").extract[String]
    val texts = (lookup \ "row").children.map(named => (named \ "expr").extract[String])
    val nullable = StructType(columns.map(_.field.copy(nullable = true)))
    LookupSpec(
      compact(render(lookup)),
      (node \ "id").extract[String],
      (lookup \ "table").extract[String],
      columns,
      (lookup \ "key").extract[Seq[Int]],
      OperatorNode.present(lookup \ "filter").map { text =>
        Expressions.bind(Seq(text.extract[String]), nullable, timeZone).head
      },
      Expressions.bindAs(texts, nullable, OperatorNode.schema(node \ "right" \ "schema"), timeZone),
      (lookup \ "properties").extract[Map[String, String]],
      (lookup \ "maxRetryTimeoutMs").extract[Long],
      (lookup \ "maxRetries").extract[Int],
      OperatorNode.present(lookup \ "cache").map(cacheOf),
      timeZone)
  }

  private def cacheOf(node: JValue): CacheSpec = {
    def number(name: String): Option[Long] = OperatorNode.present(node \ name).map(_.extract[Long])
    CacheSpec(
      number("maxRows"),
      number("expireAfterWriteMs"),
      number("expireAfterAccessMs"),
      (node \ "missingKeys").extract[Boolean])
  }
}

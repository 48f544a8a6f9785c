package org.apache.spark.sql.rejoin.run

import org.json4s.jackson.JsonMethods.{compact, render}

import org.apache.spark.sql.rejoin.columns.{JoinedBytes, RowJson}

/** The message of ON CONFLICT DO ERROR: which rows are left for one key of the sink. */
final class KeyViolation(node: OperatorNode) {
  private val schema = node.emitted._1

  def apply(rows: Iterable[Array[Byte]]): String = {
    val keys = node.output.pairBy.getOrElse(Nil).map(_.stripPrefix("`").stripSuffix("`"))
    val found = rows.take(5).map(text(_, schema.fieldNames.toSeq)).mkString(", ")
    s"Primary key constraint violation: ${rows.size} rows for the sink's key ${text(rows.head, keys)}: $found. " +
      "ON CONFLICT DO NOTHING keeps the first, ON CONFLICT DO DEDUPLICATE shows the last."
  }

  /** Some columns of a row as [name=value, ...]. */
  private def text(row: Array[Byte], names: Seq[String]): String = {
    val values = RowJson.write(new JoinedBytes(schema.size, 0)(row, null), schema).arr
    val columns = schema.fieldNames.toSeq.zip(values).filter { case (name, _) => names.contains(name) }
    columns.map { case (name, value) => s"$name=${compact(render(value))}" }.mkString("[", ", ", "]")
  }
}

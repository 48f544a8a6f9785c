package org.apache.spark.sql.rejoin.lookup

import java.sql.{Connection, PreparedStatement, ResultSet, SQLException}

import scala.util.Using

import org.json4s.JArray
import org.json4s.JsonAST.JValue
import org.json4s.jackson.JsonMethods.{compact, render}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** MariaDB, and MySQL by the same driver. One query answers a list of keys, which it is given as a JSON text:
  * {{{
  * SELECT p.n, t.* FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k0 BIGINT PATH '$[0]')) AS p
  * STRAIGHT_JOIN t ON t.a = p.k0
  * }}}
  * `WHERE a IN (?, ...)` would not say which of the keys a row is equal to: a collation may take 'abc' for 'ABC'.
  */
object MariaDb extends Dialect {
  def database: String = "MariaDB or MySQL"
  def driver: String = "org.mariadb.jdbc.Driver"

  def url(written: String): String = written.replaceFirst("^jdbc:mysql:", "jdbc:mariadb:")

  /** Statements are prepared by the server: only then the digits of a FLOAT are complete. */
  def login(seconds: Int): Map[String, String] =
    Map("connectTimeout" -> (seconds * 1000L).toString, "tcpKeepAlive" -> "true", "useServerPrepStmts" -> "true")

  def prepare(connection: Connection): Unit =
    Using.resource(connection.createStatement()) { statement =>
      statement.execute("SET SESSION TRANSACTION READ ONLY")
      statement.execute("SET time_zone = '+00:00'")
    }

  /** Users who have too many connections: the class of both is that of syntax. */
  private val Busy = Set(1203, 1226)

  def isLasting(e: SQLException): Boolean = Dialect.isLasting(e) && !Busy(e.getErrorCode)

  def columns(table: String, connection: Connection): Seq[StoredColumn] =
    Using.resource(connection.createStatement()) { statement =>
      val rows = statement.executeQuery(s"SHOW FULL COLUMNS FROM ${quoted(table)}")
      Iterator.continually(rows).takeWhile(_.next()).map { row =>
        val shown = row.getString("Type")
        val collation = Option(row.getString("Collation")).getOrElse("")
        StoredColumn(row.getString("Field"), shown, MariaDbTypes.kind(shown), collation)
      }.toVector
    }

  /** `schema.table` or `table`. */
  private def quoted(table: String): String = table.split("\\.", 2).map(quote).mkString(".")

  private def quote(name: String): String = "`" + name.replace("`", "``") + "`"

  def accepted(column: LookupColumn): Set[String] = MariaDbTypes.accepted(column)

  def isKey(column: FoundColumn): Boolean = MariaDbTypes.isKey(column)

  /** The keys are read first, and the rows of each by an index if there is one. */
  def query(table: String, columns: Seq[FoundColumn], key: Seq[FoundColumn], connection: Connection): String = {
    val read = columns.map { column =>
      if (MariaDbTypes.isReadAsText(column)) s"CAST(${name(column)} AS CHAR)" else name(column)
    }
    val asked = key.indices.map(i => s"k$i ${MariaDbTypes.ofKey(key(i))} PATH '$$[$i]'").mkString(", ")
    val equal = key.indices.map(i => same(key(i), s"p.k$i")).mkString(" AND ")
    s"SELECT p.n, ${read.mkString(", ")} FROM JSON_TABLE(?, '$$[*]' COLUMNS (n FOR ORDINALITY, $asked)) AS p " +
      s"STRAIGHT_JOIN ${quoted(table)} AS t ON $equal"
  }

  private def name(column: FoundColumn): String = s"t.${quote(column.stored.name)}"

  /** Texts are compared in the column's own set of characters, so that its index is used; a text that this set does not
    * have would become another one there, and is equal to none.
    */
  private def same(column: FoundColumn, asked: String): String = {
    val collation = column.stored.collation
    if (collation.isEmpty) s"${name(column)} = $asked"
    else {
      val characters = collation.takeWhile(_ != '_')
      val converted = s"CONVERT($asked USING $characters)"
      val equal = s"${name(column)} = $converted COLLATE $collation"
      if (characters == "utf8mb4") equal
      else s"$equal AND CONVERT($converted USING utf8mb4) COLLATE utf8mb4_bin = $asked"
    }
  }

  def keyValue(key: UnsafeRow, i: Int, column: FoundColumn): Option[JValue] = MariaDbTypes.keyValue(key, i, column)

  def ask(statement: PreparedStatement, key: Seq[FoundColumn], asked: Seq[IndexedSeq[AnyRef]]): Unit = {
    val rows = asked.map(values => JArray(values.collect { case value: JValue => value }.toList))
    statement.setString(1, compact(render(JArray(rows.toList))))
  }

  def read(rows: ResultSet, at: Int, column: FoundColumn, timeZone: String): Any =
    MariaDbTypes.read(rows, at, column, timeZone)

  /** An index by hash needs all of its columns, and one of a full text none. */
  private def factsQuery(names: Int): String =
    s"""SELECT t.table_type NOT LIKE '%VIEW', COALESCE(t.table_rows, -1), EXISTS (
       |  SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = t.table_schema
       |  AND s.table_name = t.table_name AND s.seq_in_index = 1 AND s.index_type = 'BTREE'
       |  AND s.column_name IN (${Seq.fill(names)("?").mkString(", ")}))
       |FROM information_schema.tables t
       |WHERE t.table_schema = COALESCE(?, DATABASE()) AND t.table_name = ?""".stripMargin

  def facts(table: String, key: Seq[String], connection: Connection): LookupFacts =
    Using.resource(connection.prepareStatement(factsQuery(key.size))) { statement =>
      val parts = table.split("\\.", 2)
      val values = key :+ (if (parts.length > 1) parts.head else null) :+ parts.last
      values.zipWithIndex.foreach { case (value, i) => statement.setString(i + 1, value) }
      val row = statement.executeQuery()
      row.next()
      val index = s"ALTER TABLE $table ADD INDEX (${key.mkString(", ")})"
      LookupFacts(row.getBoolean(1), row.getLong(2), row.getBoolean(3), key, index)
    }
}

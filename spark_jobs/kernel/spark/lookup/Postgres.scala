package org.apache.spark.sql.rejoin.lookup

import java.sql.{Connection, PreparedStatement, ResultSet, SQLException}

import scala.util.Using

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** PostgreSQL. One query answers a list of keys:
  * {{{
  * SELECT p.n, t.* FROM unnest(?, ?) WITH ORDINALITY AS p(k0, k1, n) JOIN t ON t.a = p.k0 AND t.b = p.k1
  * }}}
  */
object Postgres extends Dialect {
  def database: String = "PostgreSQL"
  def driver: String = "org.postgresql.Driver"
  def url(written: String): String = written

  def login(seconds: Int): Map[String, String] =
    Map(
      "connectTimeout" -> seconds.toString,
      "loginTimeout" -> seconds.toString,
      "tcpKeepAlive" -> "true",
      "ApplicationName" -> "rejoin")

  def prepare(connection: Connection): Unit = connection.setReadOnly(true)

  def isLasting(e: SQLException): Boolean = Dialect.isLasting(e)

  private val Columns =
    """SELECT a.attname, COALESCE(b.typname, t.typname), t.typtype
      |FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = NULLIF(t.typbasetype, 0)
      |WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped""".stripMargin

  /** A domain is the type that it is over. */
  def columns(table: String, connection: Connection): Seq[StoredColumn] =
    Using.resource(connection.prepareStatement(Columns)) { statement =>
      statement.setString(1, table)
      val rows = statement.executeQuery()
      Iterator.continually(rows).takeWhile(_.next()).map { row =>
        val shown = row.getString(2)
        StoredColumn(row.getString(1), shown, if (row.getString(3) == "e") PostgresTypes.Enumeration else shown)
      }.toVector
    }

  def accepted(column: LookupColumn): Set[String] = PostgresTypes.accepted(column)

  def isKey(column: FoundColumn): Boolean = PostgresTypes.isKey(column.stored.kind)

  def query(table: String, columns: Seq[FoundColumn], key: Seq[FoundColumn], connection: Connection): String = {
    val arrays = key.map(column => s"?::${quote(PostgresTypes.ofKey(column))}[]").mkString(", ")
    val asked = key.indices.map(i => s"k$i").mkString(", ")
    val equal = key.zipWithIndex.map { case (column, i) => s"${name(column)} = p.k$i" }.mkString(" AND ")
    val keys = s"unnest($arrays) WITH ORDINALITY AS p($asked, n)"
    s"SELECT p.n, ${columns.map(name).mkString(", ")} FROM $keys JOIN ${quoted(table, connection)} t ON $equal"
  }

  private def name(column: FoundColumn): String = s"t.${quote(column.stored.name)}"

  private def quote(name: String): String = "\"" + name.replace("\"", "\"\"") + "\""

  /** The table's name as the database writes it itself. */
  private def quoted(table: String, connection: Connection): String =
    Using.resource(connection.prepareStatement("SELECT to_regclass(?)::text")) { statement =>
      statement.setString(1, table)
      val rows = statement.executeQuery()
      rows.next()
      rows.getString(1)
    }

  def keyValue(key: UnsafeRow, i: Int, column: FoundColumn): Option[AnyRef] = PostgresTypes.keyValue(key, i, column)

  def ask(statement: PreparedStatement, key: Seq[FoundColumn], asked: Seq[IndexedSeq[AnyRef]]): Unit =
    key.indices.foreach { i =>
      val values = asked.map(_(i)).toArray
      statement.setArray(i + 1, statement.getConnection.createArrayOf(PostgresTypes.ofKey(key(i)), values))
    }

  def read(rows: ResultSet, at: Int, column: FoundColumn, timeZone: String): Any =
    PostgresTypes.read(rows, at, column.declared)

  /** A partial index helps no lookup, and neither does one whose first column is not compared. */
  private val Facts =
    """SELECT c.relkind IN ('r', 'p', 'm'), c.reltuples::bigint, EXISTS (
      |  SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
      |  WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND a.attname = ANY(?))
      |FROM pg_class c WHERE c.oid = to_regclass(?)""".stripMargin

  def facts(table: String, key: Seq[String], connection: Connection): LookupFacts =
    Using.resource(connection.prepareStatement(Facts)) { statement =>
      statement.setArray(1, connection.createArrayOf("text", key.toArray[AnyRef]))
      statement.setString(2, table)
      val row = statement.executeQuery()
      row.next()
      val index = s"CREATE INDEX ON $table (${key.mkString(", ")})"
      LookupFacts(row.getBoolean(1), row.getLong(2), row.getBoolean(3), key, index)
    }
}

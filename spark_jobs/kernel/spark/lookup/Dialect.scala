package org.apache.spark.sql.rejoin.lookup

import java.math.RoundingMode
import java.sql.{Connection, PreparedStatement, ResultSet, SQLException}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.{Decimal, DecimalType}

/** A column as its database describes it.
  *
  * @param name
  *   as the database writes it
  * @param shown
  *   its type as people know it
  * @param kind
  *   its type without what no comparison needs; a name of [[Dialect.accepted]]
  * @param collation
  *   where texts have one that a query must name, else empty
  */
final case class StoredColumn(name: String, shown: String, kind: String, collation: String = "")

/** A column that SQL declares, and the one in the database that it stands for. */
final case class FoundColumn(declared: LookupColumn, stored: StoredColumn)

/** What differs between the databases that rows are looked up in. */
trait Dialect {
  def database: String

  /** The class of the JDBC driver that comes with rejoin. */
  def driver: String

  /** The URL as that driver takes it. */
  def url(written: String): String

  /** Properties of the driver for a new connection, whose login may take that long. */
  def login(seconds: Int): Map[String, String]

  /** Makes a new session read only, and its texts of times independent of where the server is. */
  def prepare(connection: Connection): Unit

  /** Whether trying again does not change what went wrong. */
  def isLasting(e: SQLException): Boolean

  /** None if there is no such table. */
  def columns(table: String, connection: Connection): Seq[StoredColumn]

  /** Kinds of columns whose values a declared column can hold, all of them. */
  def accepted(column: LookupColumn): Set[String]

  /** Whether the database compares the column with values of the declared type, and none of them is an error. */
  def isKey(column: FoundColumn): Boolean

  /** The query for the rows of some keys, which [[ask]] gives; its first column is the number of the row's key, from
    * 1. The database itself decides which values are equal, and uses an index on its columns.
    */
  def query(table: String, columns: Seq[FoundColumn], key: Seq[FoundColumn], connection: Connection): String

  /** A key's column as [[ask]] takes it; none where no row can have it. */
  def keyValue(key: UnsafeRow, i: Int, column: FoundColumn): Option[AnyRef]

  def ask(statement: PreparedStatement, key: Seq[FoundColumn], asked: Seq[IndexedSeq[AnyRef]]): Unit

  /** A column of a result as Spark has it, null where it is NULL. `at` counts from 1. */
  def read(rows: ResultSet, at: Int, column: FoundColumn, timeZone: String): Any

  def facts(table: String, key: Seq[String], connection: Connection): LookupFacts
}

object Dialect {
  private val Dialects = Seq("jdbc:postgresql:" -> Postgres, "jdbc:mariadb:" -> MariaDb, "jdbc:mysql:" -> MariaDb)

  def of(table: String, url: String): Dialect =
    Dialects.collectFirst { case (start, dialect) if url.startsWith(start) => dialect }.getOrElse {
      val known = Dialects.map(_._1).mkString(", ")
      throw new LookupRefusedException("LOOKUP_REFUSED", s"table $table: its URL begins with none of $known")
    }

  /** Classes of SQLSTATE for data, login, rights and syntax. */
  private val Lasting = Set("22", "28", "42", "3D")

  def isLasting(e: SQLException): Boolean = e.getSQLState != null && Lasting(e.getSQLState.take(2))

  /** Years that Java and databases write alike. */
  def isYear(year: Int): Boolean = year >= 1 && year <= 9999

  /** Rounded half up to the scale, as in Flink; what has too many digits before the point fails. */
  def decimal(value: java.math.BigDecimal, wanted: DecimalType): Decimal = {
    val rounded = value.setScale(wanted.scale, RoundingMode.HALF_UP)
    if (rounded.precision > wanted.precision) throw new ArithmeticException(s"$value is too large for ${wanted.sql}")
    Decimal(rounded, wanted.precision, wanted.scale)
  }
}

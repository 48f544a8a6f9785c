package org.apache.spark.sql.rejoin.lookup

import java.sql.{Connection, Driver, PreparedStatement, SQLException}
import java.util.Properties

import scala.collection.mutable.ArrayBuffer
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}

import org.apache.spark.sql.rejoin.run.References

/** Where the rows of a lookup come from; may be called by several threads. */
trait LookupRows {

  /** The rows of each of the query's packed keys, in no defined order. */
  def find(query: LookupQuery): IndexedSeq[Seq[InternalRow]]

  /** Gives back what is not in use; [[find]] may follow. */
  def close(): Unit
}

/** A table or view in PostgreSQL. One query answers a list of keys:
  * {{{
  * SELECT p.n, t.* FROM unnest(?, ?) WITH ORDINALITY AS p(k0, k1, n) JOIN t ON t.a = p.k0 AND t.b = p.k1
  * }}}
  * so that the database itself decides which values are equal, and an index on its columns is used.
  */
final class PostgresTable(spec: LookupSpec) extends LookupRows {
  private val idle = new ArrayBuffer[Connection]
  @volatile private var shape: PostgresTable.Shape = _

  /** Connects, and raises a [[LookupRefusedException]] if the table is not as SQL declares it or must not be read. */
  def check(): LookupFacts =
    try
      using { connection =>
        val shape = PostgresTable.shapeOf(spec, connection)
        Using.resource(connection.prepareStatement(s"${shape.query} LIMIT 0")) { statement =>
          ask(statement, connection, shape, Nil)
          statement.executeQuery()
        }
        PostgresTable.factsOf(spec, connection, shape)
      }
    finally close()

  def close(): Unit = {
    val unused = idle.synchronized {
      val all = idle.toVector
      idle.clear()
      all
    }
    unused.foreach(PostgresTable.closeQuietly)
  }

  def find(query: LookupQuery): IndexedSeq[Seq[InternalRow]] = using { connection =>
    val found = IndexedSeq.fill(query.keys.size)(new ArrayBuffer[InternalRow](1))
    val known = knownShape(connection)
    val asked = query.keys.indices.flatMap(n => valuesOf(query.keys(n), known).map(values => (n, values)))
    if (asked.nonEmpty)
      Using.resource(connection.prepareStatement(known.query)) { statement =>
        query.running(statement) {
          ask(statement, connection, known, asked.map(_._2))
          val rows = statement.executeQuery()
          while (rows.next()) {
            val values = spec.columns.indices.map(i => read(rows, i))
            found(asked(rows.getLong(1).toInt - 1)._1) += new GenericInternalRow(values.toArray[Any])
          }
        }
      }
    found.map(_.toSeq)
  }

  private def knownShape(connection: Connection): PostgresTable.Shape = {
    val known = Option(shape).getOrElse(PostgresTable.shapeOf(spec, connection))
    shape = known
    known
  }

  private def ask(
      statement: PreparedStatement,
      connection: Connection,
      shape: PostgresTable.Shape,
      asked: Seq[IndexedSeq[AnyRef]]): Unit =
    spec.key.indices.foreach { i =>
      statement.setArray(i + 1, connection.createArrayOf(shape.keyTypes(i), asked.map(_(i)).toArray))
    }

  /** None of a key that no row of the table can have. */
  private def valuesOf(key: Array[Byte], shape: PostgresTable.Shape): Option[IndexedSeq[AnyRef]] = {
    val view = new UnsafeRow(spec.key.size)
    view.pointTo(key, key.length)
    val values = spec.key.indices.map { i =>
      PostgresTypes.keyValue(view, i, spec.columns(spec.key(i)).dataType, shape.keyTypes(i))
    }
    Option.when(values.forall(_.isDefined))(values.map(_.get))
  }

  private def read(rows: java.sql.ResultSet, i: Int): Any = {
    val column = spec.columns(i)
    def wrong(why: String, cause: Throwable) =
      new LookupRefusedException("LOOKUP_VALUE", s"table ${spec.table}, column ${column.name}: $why", cause)
    val value =
      try PostgresTypes.read(rows, i + 2, column.dataType)
      catch {
        case e: SQLException if PostgresTable.isLasting(e) => throw wrong(e.getMessage, e)
        case e: RuntimeException => throw wrong(e.getMessage, e)
      }
    if (value == null && !column.nullable) throw wrong("NULL, but it is declared NOT NULL", null)
    value
  }

  /** Runs with a connection that answers, which is kept unless something goes wrong; then the table may have changed,
    * and is looked at anew.
    */
  private def using[T](body: Connection => T): T = {
    val kept = idle.synchronized(if (idle.isEmpty) None else Some(idle.remove(idle.size - 1)))
    val answering = kept.filter(PostgresTable.answers(_, spec))
    if (answering.isEmpty) kept.foreach(PostgresTable.closeQuietly)
    val connection = answering.getOrElse(PostgresTable.connect(spec))
    try {
      val result = body(connection)
      idle.synchronized(idle += connection)
      result
    } catch {
      case failure: Throwable =>
        shape = null
        PostgresTable.closeQuietly(connection)
        throw failure
    }
  }
}

object PostgresTable {

  /** @param keyTypes
    *   element types of the arrays of keys
    * @param keyNames
    *   names of the key's columns in the database
    */
  private final case class Shape(query: String, keyTypes: IndexedSeq[String], keyNames: Seq[String])

  /** A partial index helps no lookup, and neither does one whose first column is not compared. */
  private val Facts =
    """SELECT c.relkind IN ('r', 'p', 'm'), c.reltuples::bigint, EXISTS (
      |  SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
      |  WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND a.attname = ANY(?))
      |FROM pg_class c WHERE c.oid = to_regclass(?)""".stripMargin

  private val Columns =
    """SELECT a.attname, COALESCE(b.typname, t.typname), t.typtype
      |FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = NULLIF(t.typbasetype, 0)
      |WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped""".stripMargin

  /** Classes of SQLSTATE that trying again does not change: data, login, rights and syntax. */
  private val Lasting = Set("22", "28", "42", "3D")

  def isLasting(e: SQLException): Boolean = e.getSQLState != null && Lasting(e.getSQLState.take(2))

  private def closeQuietly(connection: Connection): Unit =
    try connection.close()
    catch { case NonFatal(_) => () }

  private def seconds(spec: LookupSpec): Int = math.max(spec.maxRetryTimeoutMs / 1000, 1).toInt

  private def answers(connection: Connection, spec: LookupSpec): Boolean =
    try connection.isValid(seconds(spec))
    catch { case _: SQLException => false }

  private def connect(spec: LookupSpec): Connection = {
    val options = References.resolveAll(spec.properties)
    val login = new Properties
    login.setProperty("connectTimeout", seconds(spec).toString)
    login.setProperty("loginTimeout", seconds(spec).toString)
    login.setProperty("tcpKeepAlive", "true")
    login.setProperty("ApplicationName", "rejoin")
    for ((option, name) <- Seq("username" -> "user", "password" -> "password"); value <- options.get(option))
      login.setProperty(name, value)
    val connection = driver(spec, options("driver")).connect(options("url"), login)
    if (connection == null)
      throw new LookupRefusedException("LOOKUP_REFUSED", s"table ${spec.table}: its driver does not know its URL")
    try connection.setReadOnly(true)
    catch {
      case e: SQLException =>
        closeQuietly(connection)
        throw e
    }
    connection
  }

  private def driver(spec: LookupSpec, name: String): Driver =
    try Class.forName(name, true, getClass.getClassLoader).getDeclaredConstructor().newInstance().asInstanceOf[Driver]
    catch {
      case e: ReflectiveOperationException =>
        throw new LookupRefusedException("LOOKUP_REFUSED", s"table ${spec.table}: there is no JDBC driver $name", e)
    }

  private def shapeOf(spec: LookupSpec, connection: Connection): Shape = {
    val name = spec.properties("table-name")
    def wrong(text: String) = new LookupRefusedException("LOOKUP_REFUSED", s"table ${spec.table}: $text")
    val stored = storedColumns(name, connection)
    if (stored.isEmpty) throw wrong(s"the database has no table $name")
    val places = spec.columns.map { column =>
      stored.find(_._1 == column.name).orElse(stored.find(_._1.equalsIgnoreCase(column.name))).getOrElse {
        throw wrong(s"$name has no column ${column.name}; it has ${stored.map(_._1).mkString(", ")}")
      }
    }
    spec.columns.zip(places).zip(spec.types).foreach { case ((column, (_, found, isEnum)), declared) =>
      val fits = PostgresTypes.accepted(column.dataType)
      if (!fits(if (isEnum) "text" else found)) {
        val instead = if (fits.isEmpty) "no type of PostgreSQL" else fits.mkString(" or ")
        throw wrong(s"column ${column.name} is $found in the database, but declared $declared, which takes $instead")
      }
    }
    for (i <- spec.key; (name, found, isEnum) = places(i) if isEnum || !PostgresTypes.isKey(found))
      throw wrong(s"column $name is $found in the database, by which no rows are looked up; a view may cast it to text")
    val keyTypes = spec.key.map(i => PostgresTypes.ofKey(spec.columns(i).dataType, places(i)._2)).toIndexedSeq
    val names = places.map(_._1)
    Shape(query(quoted(name, connection), names, spec.key, keyTypes), keyTypes, spec.key.map(names))
  }

  private def factsOf(spec: LookupSpec, connection: Connection, shape: Shape): LookupFacts =
    Using.resource(connection.prepareStatement(Facts)) { statement =>
      statement.setArray(1, connection.createArrayOf("text", shape.keyNames.toArray[AnyRef]))
      statement.setString(2, spec.properties("table-name"))
      val row = statement.executeQuery()
      row.next()
      LookupFacts(row.getBoolean(1), row.getLong(2), row.getBoolean(3), shape.keyNames)
    }

  /** Names and types, and whether the type is an enumeration; those that a domain is over. */
  private def storedColumns(name: String, connection: Connection): Seq[(String, String, Boolean)] =
    Using.resource(connection.prepareStatement(Columns)) { statement =>
      statement.setString(1, name)
      val rows = statement.executeQuery()
      Iterator.continually(rows).takeWhile(_.next()).map { row =>
        (row.getString(1), row.getString(2), row.getString(3) == "e")
      }.toVector
    }

  /** The table's name as the database writes it itself. */
  private def quoted(name: String, connection: Connection): String =
    Using.resource(connection.prepareStatement("SELECT to_regclass(?)::text")) { statement =>
      statement.setString(1, name)
      val rows = statement.executeQuery()
      rows.next()
      rows.getString(1)
    }

  private def query(table: String, names: Seq[String], key: Seq[Int], keyTypes: Seq[String]): String = {
    val columns = names.map(name => "t.\"" + name.replace("\"", "\"\"") + "\"")
    val arrays = keyTypes.map(name => s"?::${quote(name)}[]").mkString(", ")
    val asked = key.indices.map(i => s"k$i").mkString(", ")
    val equal = key.zipWithIndex.map { case (place, i) => s"${columns(place)} = p.k$i" }.mkString(" AND ")
    val keys = s"unnest($arrays) WITH ORDINALITY AS p($asked, n)"
    s"SELECT p.n, ${columns.mkString(", ")} FROM $keys JOIN $table t ON $equal"
  }

  private def quote(name: String): String = "\"" + name.replace("\"", "\"\"") + "\""
}

package org.apache.spark.sql.rejoin.lookup

import java.sql.{Connection, Driver, ResultSet, SQLException}
import java.util.Properties

import scala.collection.mutable.ArrayBuffer
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}

import org.apache.spark.sql.rejoin.run.References

/** A table or view in a database, which several threads may ask; one query answers a list of keys. */
final class DatabaseTable(spec: LookupSpec) {
  import DatabaseTable._

  private lazy val dialect = Dialect.of(spec.table, References.resolveAll(spec.properties)("url"))
  private val idle = new ArrayBuffer[Connection]
  @volatile private var shape: Shape = _

  /** Connects, and raises a [[LookupRefusedException]] if the table is not as SQL declares it or must not be read. */
  def check(): LookupFacts =
    try
      using { connection =>
        val shape = shapeOf(connection)
        Using.resource(connection.prepareStatement(s"${shape.query} LIMIT 0")) { statement =>
          dialect.ask(statement, shape.key, Nil)
          statement.executeQuery()
        }
        dialect.facts(spec.properties("table-name"), shape.key.map(_.stored.name), connection)
      }
    finally close()

  /** Whether trying again does not change what went wrong. */
  def isLasting(e: SQLException): Boolean = dialect.isLasting(e)

  /** Gives back what is not in use; [[find]] may follow. */
  def close(): Unit = {
    val unused = idle.synchronized {
      val all = idle.toVector
      idle.clear()
      all
    }
    unused.foreach(closeQuietly)
  }

  /** The rows of each of the query's packed keys, in no defined order. */
  def find(query: LookupQuery): IndexedSeq[Seq[InternalRow]] = using { connection =>
    val found = IndexedSeq.fill(query.keys.size)(new ArrayBuffer[InternalRow](1))
    val known = knownShape(connection)
    val asked = query.keys.indices.flatMap(n => valuesOf(query.keys(n), known).map(values => (n, values)))
    if (asked.nonEmpty)
      Using.resource(connection.prepareStatement(known.query)) { statement =>
        query.running(statement) {
          dialect.ask(statement, known.key, asked.map(_._2))
          val rows = statement.executeQuery()
          while (rows.next()) {
            val values = known.columns.indices.map(i => read(rows, i + 2, known.columns(i)))
            found(asked(rows.getInt(1) - 1)._1) += new GenericInternalRow(values.toArray[Any])
          }
        }
      }
    found.map(_.toSeq)
  }

  private def knownShape(connection: Connection): Shape = {
    val known = Option(shape).getOrElse(shapeOf(connection))
    shape = known
    known
  }

  /** None of a key that no row of the table can have. */
  private def valuesOf(key: Array[Byte], shape: Shape): Option[IndexedSeq[AnyRef]] = {
    val view = new UnsafeRow(shape.key.size)
    view.pointTo(key, key.length)
    val values = shape.key.indices.map(i => dialect.keyValue(view, i, shape.key(i)))
    Option.when(values.forall(_.isDefined))(values.map(_.get))
  }

  private def read(rows: ResultSet, at: Int, column: FoundColumn): Any = {
    def wrong(why: String, cause: Throwable) =
      new LookupRefusedException("LOOKUP_VALUE", s"table ${spec.table}, column ${column.declared.name}: $why", cause)
    val value =
      try dialect.read(rows, at, column, spec.timeZone)
      catch {
        case e: SQLException if dialect.isLasting(e) => throw wrong(e.getMessage, e)
        case e: RuntimeException => throw wrong(e.getMessage, e)
      }
    if (value == null && !column.declared.nullable) throw wrong("NULL, but it is declared NOT NULL", null)
    value
  }

  /** Runs with a connection that answers, which is kept unless something goes wrong; then the table may have changed,
    * and is looked at anew.
    */
  private def using[T](body: Connection => T): T = {
    val kept = idle.synchronized(if (idle.isEmpty) None else Some(idle.remove(idle.size - 1)))
    val answering = kept.filter(answers)
    if (answering.isEmpty) kept.foreach(closeQuietly)
    val connection = answering.getOrElse(connect())
    try {
      val result = body(connection)
      idle.synchronized(idle += connection)
      result
    } catch {
      case failure: Throwable =>
        shape = null
        closeQuietly(connection)
        throw failure
    }
  }

  private def patience: Int = math.max(spec.maxRetryTimeoutMs / 1000, 1).toInt

  private def answers(connection: Connection): Boolean =
    try connection.isValid(patience)
    catch { case _: SQLException => false }

  private def refused(text: String, cause: Throwable = null) =
    new LookupRefusedException("LOOKUP_REFUSED", s"table ${spec.table}: $text", cause)

  private def connect(): Connection = {
    val options = References.resolveAll(spec.properties)
    val login = new Properties
    dialect.login(patience).foreach { case (name, value) => login.setProperty(name, value) }
    for ((option, name) <- Seq("username" -> "user", "password" -> "password"); value <- options.get(option))
      login.setProperty(name, value)
    val name = options.getOrElse("driver", dialect.driver)
    val url = if (name == dialect.driver) dialect.url(options("url")) else options("url")
    val connection = driver(name).connect(url, login)
    if (connection == null) throw refused("its driver does not know its URL")
    try dialect.prepare(connection)
    catch {
      case e: SQLException =>
        closeQuietly(connection)
        throw e
    }
    connection
  }

  private def driver(name: String): Driver =
    try Class.forName(name, true, getClass.getClassLoader).getDeclaredConstructor().newInstance().asInstanceOf[Driver]
    catch {
      case e: ReflectiveOperationException =>
        throw refused(s"there is no JDBC driver $name; without the option 'driver' it is ${dialect.driver}", e)
    }

  private def shapeOf(connection: Connection): Shape = {
    val table = spec.properties("table-name")
    val stored = dialect.columns(table, connection)
    if (stored.isEmpty) throw refused(s"the database has no table $table")
    val columns = spec.columns.map { column =>
      val found = stored.find(_.name == column.name).orElse(stored.find(_.name.equalsIgnoreCase(column.name)))
      FoundColumn(column, found.getOrElse {
        throw refused(s"$table has no column ${column.name}; it has ${stored.map(_.name).mkString(", ")}")
      })
    }
    columns.foreach { case FoundColumn(column, found) =>
      val fits = dialect.accepted(column)
      if (!fits(found.kind)) {
        val instead = if (fits.isEmpty) s"no type of ${dialect.database}" else fits.toSeq.sorted.mkString(" or ")
        val declared = s"declared ${column.sqlType}, which takes $instead"
        throw refused(s"column ${column.name} is ${found.shown} in the database, but $declared")
      }
    }
    val key = spec.key.map(columns)
    for (column <- key if !dialect.isKey(column)) {
      val is = s"column ${column.stored.name} is ${column.stored.shown} in the database"
      throw refused(s"$is, by which no rows are looked up as ${column.declared.sqlType}; a view may cast it")
    }
    Shape(dialect.query(table, columns, key, connection), columns, key)
  }
}

object DatabaseTable {

  /** A table as it was found: the query for its rows, what is read of it, and what keys are compared with. */
  private final case class Shape(query: String, columns: Seq[FoundColumn], key: Seq[FoundColumn])

  private def closeQuietly(connection: Connection): Unit =
    try connection.close()
    catch { case NonFatal(_) => () }
}

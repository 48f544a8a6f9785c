package org.apache.spark.sql.rejoin.lookup

import java.sql.SQLException
import java.util.concurrent.{ConcurrentHashMap, ExecutionException, ExecutorService, Executors, Future}

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.columns.{Expressions, Packed, RowProjection}
import rejoin.core.machine.join.LookupAnswer
import rejoin.core.row.Bytes

/** What the tasks of one executor share of a lookup: connections, queries in flight, cache. */
final class LookupTable(spec: LookupSpec, rows: LookupRows, pause: Int => Unit) {
  import LookupTable._

  private val cache = spec.cache.map(new LookupCache(_))
  private lazy val pool: ExecutorService = Executors.newFixedThreadPool(
    InFlight,
    (work: Runnable) => {
      val thread = new Thread(work, s"lookup ${spec.table}")
      thread.setDaemon(true)
      thread
    })

  def cached(key: Bytes): Option[Array[Byte]] = cache.flatMap(_.get(key))

  /** Asks for keys, of which there are at most [[MaxKeys]]; the answers are in their order. */
  def ask(keys: IndexedSeq[Array[Byte]]): Future[Asked] = pool.submit(() => answered(keys))

  private def answered(keys: IndexedSeq[Array[Byte]]): Asked = {
    val began = System.nanoTime()
    var retries = 0
    var found: IndexedSeq[Seq[InternalRow]] = null
    while (found == null)
      try found = rows.find(keys)
      catch {
        case e: SQLException if PostgresTable.isLasting(e) || retries >= spec.maxRetries =>
          throw LookupTable.failed(spec, e, retries + 1)
        case _: SQLException =>
          retries += 1
          pause(retries)
      }
    val pack = new AnswerPacker(spec)
    val answers = found.map(pack(_))
    keys.zip(answers).foreach { case (key, answer) => cache.foreach(_.put(Bytes(key), answer)) }
    new Asked(answers, retries, (System.nanoTime() - began) / 1000000)
  }
}

/** The answers to some keys, and what they took. */
final class Asked(val answers: IndexedSeq[Array[Byte]], val retries: Int, val tookMs: Long)

object LookupTable {

  /** Keys of one query. Beyond that PostgreSQL may rather read the whole table than its index. */
  final val MaxKeys = 1000

  /** Queries of one executor and table that run at the same time. */
  final val InFlight = 4

  private val tables = new ConcurrentHashMap[String, LookupTable]

  def of(spec: LookupSpec): LookupTable =
    tables.computeIfAbsent(
      spec.id,
      _ => new LookupTable(spec, new PostgresTable(spec), attempt => Thread.sleep(1000L * attempt)))

  /** Raises a [[LookupRefusedException]] if the table cannot be looked up as it is declared. */
  def check(spec: LookupSpec): Unit =
    try new PostgresTable(spec).check()
    catch { case e: SQLException => throw failed(spec, e, tries = 1) }

  private def failed(spec: LookupSpec, cause: SQLException, tries: Int): RuntimeException = {
    val text = s"table ${spec.table}: ${cause.getMessage}"
    if (PostgresTable.isLasting(cause)) new LookupRefusedException("LOOKUP_REFUSED", text, cause)
    else new LookupException("LOOKUP_FAILED", s"$text (tried $tries times)", cause)
  }

  /** What a query that was asked has answered; throws what it failed with. */
  def await(asked: Future[Asked]): Asked =
    try asked.get()
    catch { case e: ExecutionException if e.getCause != null => throw e.getCause }
}

/** Packs the rows that were found of a key: those that pass the filter, with the columns that go on. */
private final class AnswerPacker(spec: LookupSpec) {
  private val accepts = spec.filter.map(Expressions.compiledPredicate(_, spec.timeZone))
  private val project = new RowProjection(spec.row, spec.timeZone)

  def apply(rows: Seq[InternalRow]): Array[Byte] =
    try LookupAnswer.pack(rows.filter(row => accepts.forall(_.eval(row))).map(row => Packed(project(row))))
    catch {
      case NonFatal(e) =>
        throw new LookupRefusedException("LOOKUP_VALUE", s"table ${spec.table}: an expression fails: $e", e)
    }
}

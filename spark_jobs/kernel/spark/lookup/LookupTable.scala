package org.apache.spark.sql.rejoin.lookup

import java.sql.SQLException
import java.time.Duration
import java.util.concurrent.{LinkedBlockingQueue, ThreadPoolExecutor, TimeUnit}

import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder}

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.columns.{Expressions, Packed, RowProjection}
import rejoin.core.machine.join.LookupAnswer
import rejoin.core.row.Bytes

/** What a database says of a table that is looked up.
  *
  * @param isStored
  *   whether it has rows of its own, unlike a view
  * @param rows
  *   the database's estimate, negative where it has none
  * @param isIndexed
  *   whether an index begins with a column of the key
  * @param key
  *   the columns that keys are compared with, by their names there
  * @param addIndex
  *   the statement that makes an index of them
  */
final case class LookupFacts(isStored: Boolean, rows: Long, isIndexed: Boolean, key: Seq[String], addIndex: String)

/** What the tasks of one executor share of a lookup: connections, queries in flight, cache. */
final class LookupTable(spec: LookupSpec, rows: DatabaseTable, pause: Int => Unit) {
  import LookupTable._

  private val cache = spec.cache.map(new LookupCache(_))
  private lazy val pool: ThreadPoolExecutor = {
    val waiting = new LinkedBlockingQueue[Runnable]
    val threads = new ThreadPoolExecutor(InFlight, InFlight, IdleSeconds, TimeUnit.SECONDS, waiting, thread(_))
    threads.allowCoreThreadTimeOut(true)
    threads
  }

  /** Connections that are idle go with the threads that are. */
  private def thread(work: Runnable): Thread = {
    val made = new Thread(() => try work.run() finally rows.close(), s"lookup ${spec.table}")
    made.setDaemon(true)
    made
  }

  def cached(key: Bytes): Option[Array[Byte]] = cache.flatMap(_.get(key))

  /** Asks for keys, of which there are at most [[MaxKeys]]; `onRetry` is called by another thread. */
  def ask(keys: IndexedSeq[Array[Byte]], onRetry: () => Unit): LookupQuery = {
    val query = new LookupQuery(keys, onRetry)
    query.begin(pool.submit(() => answered(query)))
  }

  private def answered(query: LookupQuery): IndexedSeq[Array[Byte]] = {
    val pack = new AnswerPacker(spec)
    val answers = found(query).map(pack(_))
    query.keys.zip(answers).foreach { case (key, answer) => cache.foreach(_.put(Bytes(key), answer)) }
    answers
  }

  private def found(query: LookupQuery): IndexedSeq[Seq[InternalRow]] = {
    var retries = 0
    var found: IndexedSeq[Seq[InternalRow]] = null
    while (found == null)
      try found = rows.find(query)
      catch {
        case e: SQLException if rows.isLasting(e) || retries >= spec.maxRetries =>
          throw LookupTable.failed(spec, rows, e, retries + 1)
        case _: SQLException =>
          query.retried()
          retries += 1
          pause(retries)
      }
    found
  }
}

object LookupTable {

  /** Keys of one query. Beyond that a database may rather read the whole table than its index. */
  final val MaxKeys = 1000

  /** Queries of one executor and table that run at the same time. */
  final val InFlight = 4

  /** How long threads and connections without a query are kept. */
  final val IdleSeconds = 60L

  /** Tables that no task has looked at for an hour go, and their caches. */
  private val tables: Cache[String, LookupTable] =
    CacheBuilder.newBuilder().expireAfterAccess(Duration.ofHours(1)).build[String, LookupTable]()

  def of(spec: LookupSpec): LookupTable =
    tables.get(
      spec.id,
      () => new LookupTable(spec, new DatabaseTable(spec), attempt => Thread.sleep(1000L * attempt)))

  /** Raises a [[LookupRefusedException]] if the table cannot be looked up as it is declared. */
  def check(spec: LookupSpec): LookupFacts = {
    val table = new DatabaseTable(spec)
    try table.check()
    catch { case e: SQLException => throw failed(spec, table, e, tries = 1) }
  }

  private def failed(spec: LookupSpec, rows: DatabaseTable, cause: SQLException, tries: Int): RuntimeException = {
    val text = s"table ${spec.table}: ${cause.getMessage}"
    if (rows.isLasting(cause)) new LookupRefusedException("LOOKUP_REFUSED", text, cause)
    else new LookupException("LOOKUP_FAILED", s"$text (tried $tries times)", cause)
  }
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

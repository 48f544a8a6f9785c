package org.apache.spark.sql.rejoin.ingest

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.rejoin.run.Counters

/** How one table keeps step with the others of its group (`scan.watermark.alignment.*`).
  *
  * @param query
  *   whose operators tell the table's watermark; `topics` are its topic indexes there
  */
final case class Alignment(group: String, maxDriftMs: Long, query: String, topics: Seq[Int]) {

  /** The table's watermark as its last committed epoch told it: of its partitions that are not idle. */
  def watermark(counters: Counters): Option[Long] = {
    val told = counters.sources(query, "watermark")
    val sources = told.filter { case (source, _) => topics.contains(source >> 16) }
    val idle = counters.sources(query, "idle").collect { case (source, 1L) => source }.toSet
    sources.collect { case (source, at) if at > Long.MinValue && !idle(source) => at }.minOption
  }
}

/** The driver's view of aligned tables: a table that is too far ahead waits until the others have caught up.
  *
  * Tables that have nothing to read hold nobody up, nor do those that have not told a watermark. What
  * an epoch reads is decided before its watermarks are known: a table may run ahead by one epoch more.
  */
object Alignment {
  private final case class Told(alignment: Alignment, hasMore: Boolean)

  private val tables = new ConcurrentHashMap[String, Told]

  def read(json: String): Alignment = {
    implicit val formats: Formats = DefaultFormats
    parse(json).extract[Alignment]
  }

  /** Records whether a table has more to read than its query has asked for yet. */
  def tell(table: String, alignment: Alignment, hasMore: Boolean): Unit = tables.put(table, Told(alignment, hasMore))

  /** Whether the table is too far ahead of the slowest other one of its group that has more to read. */
  def isAhead(table: String, counters: Counters): Boolean =
    Option(tables.get(table)).exists { case Told(own, _) =>
      val others = tables.asScala.collect {
        case (name, Told(other, true)) if name != table && other.group == own.group => other.watermark(counters)
      }
      own.watermark(counters).exists(at => others.flatten.exists(other => at - own.maxDriftMs > other))
    }

  def forget(table: String): Unit = tables.remove(table)
}

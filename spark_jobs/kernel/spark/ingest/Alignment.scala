package org.apache.spark.sql.rejoin.ingest

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.rejoin.run.Counters
import rejoin.core.row.Envelope

/** Watermark alignment of one table with the others of its group (`scan.watermark.alignment.*`).
  *
  * @param query
  *   the query whose operators report the table's watermark
  * @param topics
  *   the table's topic indexes in that query
  */
final case class Alignment(group: String, maxDriftMs: Long, query: String, topics: Seq[Int]) {

  /** The table's watermark as of its last committed epoch: the smallest of its partitions that are not idle. */
  def watermark(counters: Counters): Option[Long] = {
    val sources = counters.sources(query, "watermark").filter { case (source, _) =>
      topics.contains(Envelope.topicOf(source))
    }
    val idle = counters.sources(query, "idle").collect { case (source, 1L) => source }.toSet
    sources.collect { case (source, at) if at > Long.MinValue && !idle(source) => at }.minOption
  }
}

/** The driver's view of aligned tables: a table that is too far ahead waits until the others have caught up.
  *
  * No table waits for one that has nothing to read or has no watermark yet. What an epoch reads is decided
  * before its watermarks are known, so a table may run ahead by one more epoch.
  */
object Alignment {
  private final case class Reported(alignment: Alignment, hasMore: Boolean)

  private val tables = new ConcurrentHashMap[String, Reported]

  def read(json: String): Alignment = {
    implicit val formats: Formats = DefaultFormats
    parse(json).extract[Alignment]
  }

  /** Records whether a table has records that its query has not planned to read yet. */
  def report(table: String, alignment: Alignment, hasMore: Boolean): Unit =
    tables.put(table, Reported(alignment, hasMore))

  /** Whether the table is too far ahead of the slowest other one of its group that has more to read. */
  def isAhead(table: String, counters: Counters): Boolean =
    Option(tables.get(table)).exists { case Reported(own, _) =>
      val others = tables.asScala.collect {
        case (name, Reported(other, true)) if name != table && other.group == own.group => other.watermark(counters)
      }
      own.watermark(counters).exists(at => others.flatten.exists(other => at - own.maxDriftMs > other))
    }

  def forget(table: String): Unit = tables.remove(table)
}

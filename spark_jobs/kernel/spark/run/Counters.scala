package org.apache.spark.sql.rejoin.run

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JInt, JObject}

import org.apache.spark.SparkContext
import org.apache.spark.util.AccumulatorV2

import org.apache.spark.sql.rejoin.ingest.Reason
import org.apache.spark.sql.rejoin.lookup.LookupCounts
import rejoin.core.row.{RowKind, Unhealed}

/** What tasks report to the driver for status and metrics; never read by the data path.
  *
  * Sums add up (a repeated task counts twice). Levels are absolute values of one key group at one epoch, of
  * which the newest counts (a repeated task reports the same again). Both have names of several parts:
  * {{{
  * sums    rows, query, table          rejects, query, table, reason     lost, query, scan
  *         changes, query, row kind    unwritten, query, reason          written, query
  *         partial, query
  *         lookups, query, operator, what      latency, query, bound    latency_ms, query
  * levels  query, operator, metric     query, operator, rows, side       query, operator, source, number, metric
  * }}}
  */
final class Counters extends AccumulatorV2[(List[String], Long), String] {
  import Counters._

  private val sums = new ConcurrentHashMap[List[String], Long]
  private val levels = new ConcurrentHashMap[(List[String], Int), (Long, Long)]

  def add(counter: (List[String], Long)): Unit = sums.merge(counter._1, counter._2, _ + _)

  /** Records that a table gave a query `n` more rows. */
  def rows(query: String, table: String, n: Long): Unit = add((List("rows", query, table), n))

  /** Records that `n` updates of a query left values out. */
  def partial(query: String, n: Long): Unit = add((List("partial", query), n))

  /** Records that a record of a table could not become a row of a query. */
  def reject(query: String, table: String, reason: String): Unit = add((List("rejects", query, table, reason), 1))

  /** Records that updates of a query found no row before them to take from what they leave out. */
  def unhealed(query: String, updates: Iterable[Unhealed]): Unit =
    updates.foreach(update => reject(query, update.table, Reason.Unavailable))

  /** Records that `n` records were deleted before a scan of a query read them. */
  def lost(query: String, scan: String, n: Long): Unit = add((List("lost", query, scan), n))

  /** Records `n` more changes of a kind that a query has made. */
  def changes(query: String, kind: Byte, n: Long): Unit = add((List("changes", query, RowKind.name(kind)), n))

  /** Records that the topic of a query does not take a result. */
  def unwritten(query: String, reason: String): Unit = add((List("unwritten", query, reason), 1))

  /** Records that `n` more records of a query are in Kafka. */
  def written(query: String, n: Long): Unit = add((List("written", query), n))

  /** Records that `n` more results of a query were committed at most `bound` milliseconds after the newest record
    * behind them, but more than the bound before it; `sumMs` in all.
    */
  def latency(query: String, bound: String, n: Long, sumMs: Long): Unit = {
    add((List("latency", query, bound), n))
    add((List("latency_ms", query), sumMs))
  }

  /** Records what tasks look up for an operator of a query; failures are counted beside, with those of failed tasks. */
  def lookups(query: String, operator: String): LookupCounts = new LookupCounts {
    def done(hits: Long, misses: Long, queries: Long, waitedMs: Long): Unit =
      for ((what, n) <- Seq("hits" -> hits, "misses" -> misses, "queries" -> queries, "waited-ms" -> waitedMs) if n > 0)
        add((List("lookups", query, operator, what), n))

    def retried(): Unit = JvmCounts.add("lookup-retries", s"$query/$operator")

    def failed(): Unit = JvmCounts.add("lookup-failures", s"$query/$operator")
  }

  /** Records what an operator says of a source partition: every key group hears the same, and one reports. */
  def sourceLevel(query: String, operator: String, source: Int, metric: String, epoch: Long, value: Long): Unit =
    level(List(query, operator, Source, source.toString, metric), 0, epoch, value)

  /** Records the value of a level in one key group as of an epoch. */
  def level(name: List[String], group: Int, epoch: Long, value: Long): Unit =
    levels.merge((name, group), (epoch, value), (old, now) => if (now._1 >= old._1) now else old)

  /** What the operators of a query say of its source partitions, by number: the latest of each. */
  def sources(query: String, metric: String): Map[Int, Long] = {
    val found = levels.asScala.toSeq.collect { case ((List(`query`, _, Source, number, `metric`), _), at) =>
      number.toInt -> at
    }
    found.groupMapReduce(_._1)(_._2)((a, b) => if (b._1 > a._1) b else a).map { case (n, (_, value)) => n -> value }
  }

  override def merge(other: AccumulatorV2[(List[String], Long), String]): Unit = other match {
    case that: Counters =>
      that.sums.forEach((name, n) => add((name, n)))
      that.levels.forEach((at, value) => level(at._1, at._2, value._1, value._2))
    case _ => throw new IllegalArgumentException(s"cannot merge ${other.getClass.getName} into Counters")
  }

  override def isZero: Boolean = sums.isEmpty && levels.isEmpty

  override def copy(): Counters = {
    val copied = new Counters
    copied.merge(this)
    copied
  }

  /** What each task is given: Spark's own would copy all that was counted. */
  override def copyAndReset(): Counters = new Counters

  /** Without what was counted: plans hold counters, and Spark writes each epoch's plan as text. */
  override def toString: String = "Counters"

  override def reset(): Unit = {
    sums.clear()
    levels.clear()
  }

  /** What `QueryCounters` of kernel/calls.py holds: by query the sums, and its `operators` with their levels over
    * all key groups. Sums of releases that did not count by query are left out.
    */
  override def value: String = {
    val counted = sums.asScala.toSeq.collect {
      case (kind :: query :: rest, n) if SumParts.get(kind).contains(rest.size) => (query :: kind :: rest) -> n
    }
    val reported = levels.asScala.toSeq.groupMap(_._1._1)(_._2._2).collect { case (query :: operator :: rest, values) =>
      (query :: "operators" :: operator :: rest) -> (if (Least.contains(rest.last)) values.min else values.sum)
    }
    compact(render(tree(counted ++ reported)))
  }

  /** `{"sums":{name: n},"levels":{name: {group: [epoch, value]}}}`, for a checkpoint; [[restore]] reads it back. */
  def saved: String = {
    val byName = levels.asScala.toSeq.groupBy(_._1._1).map { case (name, groups) =>
      joined(name) -> groups.map { case ((_, group), (epoch, level)) => group.toString -> List(epoch, level) }.toMap
    }
    val named = sums.asScala.toMap.map { case (name, n) => joined(name) -> n }
    compact(render(("sums" -> named) ~ ("levels" -> byName)))
  }

  /** Takes up where an earlier driver left off. */
  def restore(json: String): Unit = {
    implicit val formats: Formats = DefaultFormats
    val saved = parse(json)
    for ((name, n) <- (saved \ "sums").extract[Map[String, Long]]) add((parts(name), n))
    for ((name, groups) <- (saved \ "levels").extract[Map[String, Map[String, List[Long]]]]; (group, at) <- groups)
      level(parts(name), group.toInt, at(0), at(1))
  }
}

object Counters {
  private final val Source = "source"

  /** How many parts follow the query in the name of a sum. */
  private val SumParts = Map(
    "rows" -> 1,
    "partial" -> 0,
    "rejects" -> 2,
    "lost" -> 1,
    "changes" -> 1,
    "unwritten" -> 1,
    "written" -> 0,
    "latency" -> 1,
    "latency_ms" -> 0,
    "lookups" -> 2)

  /** Metrics of which an operator has the least of its key groups, rather than their sum. */
  private val Least = Set("watermark", "open")

  /** One set per Spark application. */
  def of(context: SparkContext): Counters = synchronized {
    if (current == null || currentContext != context) {
      current = new Counters
      currentContext = context
      context.register(current) // with a name Spark would ask for the value after every task
    }
    current
  }

  private var current: Counters = _
  private var currentContext: SparkContext = _

  /** Parts may hold any character: SQL quotes names. */
  private def joined(parts: List[String]): String =
    parts.map(_.replace("%", "%25").replace("/", "%2F")).mkString("/")

  private def parts(name: String): List[String] =
    name.split("/", -1).map(_.replace("%2F", "/").replace("%25", "%")).toList

  private def tree(values: Seq[(List[String], Long)]): JObject =
    JObject(values.groupBy(_._1.head).toList.map {
      case (name, Seq((List(_), n))) => name -> JInt(n)
      case (name, found) => name -> tree(found.map { case (path, n) => path.tail -> n })
    })
}

package org.apache.spark.sql.rejoin.run

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.SparkContext
import org.apache.spark.util.AccumulatorV2

import org.apache.spark.sql.rejoin.ingest.Reason
import rejoin.core.row.Unhealed

/** What tasks tell the driver for status and metrics; never read by the data path.
  *
  * `sums` add up (a repeated task counts twice); `levels` are absolute values of one key group at
  * one epoch, of which the newest counts (a repeated task says the same again).
  */
final class Counters extends AccumulatorV2[(String, Long), String] {
  private val sums = new ConcurrentHashMap[String, Long]
  private val levels = new ConcurrentHashMap[(String, Int), (Long, Long)]

  def add(counter: (String, Long)): Unit = sums.merge(counter._1, counter._2, _ + _)

  /** Records that a table gave a query `n` more rows. */
  def rows(query: String, table: String, n: Long): Unit = add((Counters.name("rows", query, table), n))

  /** Records that a record of a table could not become a row of a query. */
  def reject(query: String, table: String, reason: String): Unit =
    add((Counters.name("rejects", query, table, reason), 1))

  /** Records that updates of a query found no row before them to take from what they leave out. */
  def unhealed(query: String, updates: Iterable[Unhealed]): Unit =
    updates.foreach(update => reject(query, update.table, Reason.Unavailable))

  /** Records that `n` records were deleted before a scan of a query read them. */
  def lost(query: String, scan: String, n: Long): Unit = add((Counters.name("lost", query, scan), n))

  /** Records the value of `name` in one group as of an epoch. */
  def level(name: String, group: Int, epoch: Long, value: Long): Unit =
    levels.merge((name, group), (epoch, value), (old, now) => if (now._1 >= old._1) now else old)

  /** Of the levels named `query/<operator>/source/<number>suffix`, the latest of each number. */
  def speakers(query: String, suffix: String): Map[Int, Long] = {
    val operator = query.length + 1
    val found = levels.asScala.toSeq.collect {
      case ((name, _), told) if name.startsWith(s"$query/") && name.endsWith(suffix) &&
            name.startsWith(Counters.Source, name.indexOf('/', operator)) =>
        val number = name.indexOf('/', operator) + Counters.Source.length
        name.substring(number, name.length - suffix.length).toInt -> told
    }
    found.groupMapReduce(_._1)(_._2)((a, b) => if (b._1 > a._1) b else a).map { case (n, (_, value)) => n -> value }
  }

  override def merge(other: AccumulatorV2[(String, Long), String]): Unit = other match {
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

  override def reset(): Unit = {
    sums.clear()
    levels.clear()
  }

  /** `{"sums":{name: n},"levels":{name: {group: [epoch, value]}}}`; [[restore]] reads it back. */
  override def value: String = {
    val byName = levels.asScala.toSeq.groupBy(_._1._1).map { case (name, groups) =>
      name -> groups.map { case ((_, group), (epoch, level)) => group.toString -> List(epoch, level) }.toMap
    }
    compact(render(("sums" -> sums.asScala.toMap) ~ ("levels" -> byName)))
  }

  /** Takes up where an earlier driver left off. */
  def restore(json: String): Unit = {
    implicit val formats: Formats = DefaultFormats
    val saved = parse(json)
    (saved \ "sums").extract[Map[String, Long]].foreach(add)
    for ((name, groups) <- (saved \ "levels").extract[Map[String, Map[String, List[Long]]]]; (group, at) <- groups)
      level(name, group.toInt, at(0), at(1))
  }
}

object Counters {

  /** In the names of levels that say something of one partition; its source id follows. */
  final val Source = "/source/"

  /** Of parts that may hold any character: SQL quotes names. As `counter_name` of streaming/report.py. */
  def name(parts: String*): String = parts.map(_.replace("%", "%25").replace("/", "%2F")).mkString("/")

  /** One set per Spark application. */
  def of(context: SparkContext): Counters = synchronized {
    if (current == null || currentContext != context) {
      current = new Counters
      currentContext = context
      context.register(current, "rejoin")
    }
    current
  }

  private var current: Counters = _
  private var currentContext: SparkContext = _
}

package org.apache.spark.sql.rejoin.run

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.jdk.CollectionConverters._

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, render}

/** What JVMs have done since they began, beside [[Counters]]: Spark drops what a failed task has counted.
  *
  * `commits` and `aborts` of transactions by query, `lookup-retries` and `lookup-failures` by query and operator, and
  * `calls` and `failures` of `registry`, and `files` of `overflow`. Never on the path of a row.
  */
object JvmCounts {
  private val counts = new ConcurrentHashMap[(String, String), LongAdder]

  def add(what: String, of: String): Unit = counts.computeIfAbsent((what, of), _ => new LongAdder).increment()

  /** Those of this JVM. */
  def own: Map[(String, String), Long] = counts.asScala.toMap.map { case (name, n) => name -> n.sum }

  /** `{what: {of: n}}`, of this JVM and the executors. */
  def json: String = {
    val all = (own +: ExecutorReports.all.map(_.counts)).flatten.groupMapReduce(_._1)(_._2)(_ + _)
    compact(render(all.groupMap(_._1._1) { case ((_, of), n) => of -> n }.map { case (what, found) =>
      what -> found.toMap
    }))
  }
}

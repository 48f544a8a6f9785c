package org.apache.spark.sql.rejoin.run

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.jdk.CollectionConverters._

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, render}

/** What this JVM has done since it began, beside [[Counters]]: Spark drops what a failed task has counted.
  *
  * `commits` and `aborts` of transactions by query, and `calls` and `failures` of `registry`. Never on the path of
  * a row.
  */
object JvmCounts {
  private val counts = new ConcurrentHashMap[(String, String), LongAdder]

  def add(what: String, of: String): Unit = counts.computeIfAbsent((what, of), _ => new LongAdder).increment()

  /** `{what: {of: n}}` */
  def json: String =
    compact(render(counts.asScala.toMap.groupMap(_._1._1) { case ((_, of), n) => of -> n.sum }.map { case (what, all) =>
      what -> all.toMap
    }))
}

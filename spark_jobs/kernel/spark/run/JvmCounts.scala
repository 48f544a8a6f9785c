package org.apache.spark.sql.rejoin.run

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.jdk.CollectionConverters._

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, render}

/** What this JVM has done that [[Counters]] cannot tell: Spark drops what a failed task has counted.
  *
  * Counts since the JVM began; never on the path of a row.
  */
object JvmCounts {
  final val RegistryCalls = "registry/calls"
  final val RegistryFailures = "registry/failures"

  private val counts = new ConcurrentHashMap[String, LongAdder]

  def commits(query: String): String = s"commits/$query"
  def aborts(query: String): String = s"aborts/$query"

  def add(name: String): Unit = counts.computeIfAbsent(name, _ => new LongAdder).increment()

  /** `{name: n}` */
  def json: String = compact(render(counts.asScala.toMap.map { case (name, n) => name -> n.sum }))
}

package org.apache.spark.sql.rejoin.ingest

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

/** How far the bounded scans of the queries that run have been planned, for the clock that ends a query behind them.
  *
  * Spark asks each source of a query once for each epoch, in an order of its own, up to where the epoch reads. So the
  * clock compares the numbers of these questions: what an earlier one has planned is read.
  */
object BoundedScans {

  /** How far one scan is planned. */
  final class Plan {
    private var asked = 0
    private var last = Int.MaxValue // the question that planned the last records

    /** A question, and whether the scan had reached its end before it, or does behind its answer. */
    def note(isAtEnd: Boolean, reachesEnd: Boolean): Unit = synchronized {
      asked += 1
      if (last == Int.MaxValue && (isAtEnd || reachesEnd)) last = if (isAtEnd) asked - 1 else asked
    }

    private[BoundedScans] def isReadBefore(question: Int): Boolean = synchronized(last < question)
  }

  private val plans = new ConcurrentHashMap[String, ConcurrentHashMap.KeySetView[Plan, java.lang.Boolean]]

  /** A scan whose query starts. */
  def add(query: String): Plan = {
    val plan = new Plan
    plans.computeIfAbsent(query, _ => ConcurrentHashMap.newKeySet[Plan]).add(plan)
    plan
  }

  def remove(query: String, plan: Plan): Unit = Option(plans.get(query)).foreach(_.remove(plan))

  /** Whether epochs that were planned before this question to the query's sources have read all scans to their ends. */
  def areRead(query: String, question: Int): Boolean = {
    val known = Option(plans.get(query)).map(_.asScala).getOrElse(Set.empty[Plan])
    known.nonEmpty && known.forall(_.isReadBefore(question))
  }
}

package org.apache.spark.sql.rejoin.ingest

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

/** Whether sources may start another epoch; a graceful stop closes it and waits for the running epoch.
  *
  * In real-time mode an epoch is as long as its settings say, and the next one follows without being asked for. So a
  * closed gate also ends the running epoch, and holds the query in front of the next one until it is stopped.
  */
object Gate {
  @volatile private var closed = false
  private val waiting = ConcurrentHashMap.newKeySet[String]

  def isClosed: Boolean = closed
  def close(): Unit = closed = true
  def open(): Unit = closed = false

  /** Waits while the gate is closed; the stop of the query interrupts it. */
  def pass(query: String): Unit =
    try
      while (closed) {
        waiting.add(query)
        Thread.sleep(PauseMs)
      }
    finally waiting.remove(query)

  /** The queries that wait at the gate. */
  def held: Set[String] = waiting.asScala.toSet

  private final val PauseMs = 20L
}

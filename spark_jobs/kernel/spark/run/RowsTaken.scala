package org.apache.spark.sql.rejoin.run

import scala.collection.mutable.ArrayBuffer

/** The rows that a task of real-time mode has taken together from [[LocalShuffle]], and what waits for their end.
  *
  * Each thread has its own: what becomes of the rows in another thread waits for nothing here.
  */
private[rejoin] object RowsTaken {
  private val waiting = new ThreadLocal[ArrayBuffer[() => Unit]]

  /** This thread has taken rows, and begins with the first of them. */
  def begin(): Unit = waiting.set(new ArrayBuffer[() => Unit])

  /** This thread has gone through its rows, and is about to wait for others. */
  def end(): Unit = {
    val actions = waiting.get
    waiting.remove()
    if (actions != null) actions.foreach(_())
  }

  /** The task is over. */
  def forget(): Unit = waiting.remove()

  /** Whether this thread goes through rows that it has taken together. */
  def isWithin: Boolean = waiting.get != null

  /** Does something in this thread when it has gone through its rows. */
  def atEnd(action: () => Unit): Unit = waiting.get += action
}

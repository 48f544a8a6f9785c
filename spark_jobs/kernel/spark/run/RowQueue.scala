package org.apache.spark.sql.rejoin.run

import java.util

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Rows on their way from the `writers` tasks of a shuffle to the one task that reads a partition of it.
  *
  * All of them run at once, in one JVM. Rows of a writer come in its order. Waiting ends with an exception in a task
  * that Spark has killed.
  */
private[run] final class RowQueue(writers: Int) {
  import RowQueue._

  private var rows = new util.ArrayDeque[UnsafeRow]
  private var bytes = 0L
  private var ended = 0
  private var isLeft = false

  /** Hand over a row that nobody changes; waits while [[MostBytes]] have not been taken. */
  def add(row: UnsafeRow, task: TaskContext): Unit = synchronized {
    while (bytes >= MostBytes && !isLeft) waitIn(task)
    if (!isLeft) {
      rows.add(row)
      bytes += row.getSizeInBytes
      if (rows.size == 1) notifyAll()
    }
  }

  /** A writer has handed over its last row. */
  def end(): Unit = synchronized {
    ended += 1
    notifyAll()
  }

  /** All rows that have come, at least one, in exchange for an empty queue; none after the last writer's end. */
  def take(emptied: util.ArrayDeque[UnsafeRow], task: TaskContext): util.ArrayDeque[UnsafeRow] = synchronized {
    while (rows.isEmpty && ended < writers) waitIn(task)
    val taken = rows
    if (bytes >= MostBytes) notifyAll()
    rows = emptied
    bytes = 0L
    taken
  }

  /** The reader reads no more: it has seen the end, or has failed, and then so does the epoch. */
  def leave(): Unit = synchronized {
    isLeft = true
    rows.clear()
    notifyAll()
  }

  def awaitReader(task: TaskContext): Unit = synchronized {
    while (!isLeft) waitIn(task)
  }

  private def waitIn(task: TaskContext): Unit = {
    wait(LookEveryMs)
    task.killTaskIfInterrupted()
  }
}

private[run] object RowQueue {
  final val MostBytes = 4L << 20
  private final val LookEveryMs = 100L
}

package org.apache.spark.sql.rejoin.run

import java.util
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** A queue, the threads that write into it, and a reader. */
final class RowQueueRun(writers: Int) {
  private val queue = new RowQueue(writers)
  private val task = TaskContext.empty()

  val addedBytes = new AtomicLong
  @volatile var failure: Throwable = _

  /** A writer of `count` rows of `size` bytes, at least 24, each with the writer's number and its own. */
  def write(writer: Int, count: Int, size: Int): Thread = {
    val thread = new Thread(() =>
      try {
        (0 until count).foreach { number =>
          val row = new UnsafeRow(2)
          row.pointTo(new Array[Byte](size), size)
          row.setInt(0, writer)
          row.setInt(1, number)
          queue.add(row, task)
          addedBytes.addAndGet(size)
        }
        queue.end()
        queue.awaitReader(task)
      } catch { case error: Throwable => failure = error })
    thread.setDaemon(true)
    thread.start()
    thread
  }

  /** What one `take` gives: the writer's number and its row's, of each row. */
  def take(): Array[Array[Int]] =
    queue.take(new util.ArrayDeque[UnsafeRow], task).toArray(Array.empty[UnsafeRow]).map { row =>
      Array(row.getInt(0), row.getInt(1))
    }

  def leave(): Unit = queue.leave()

  def kill(): Unit = task.markInterrupted("stopped")
}

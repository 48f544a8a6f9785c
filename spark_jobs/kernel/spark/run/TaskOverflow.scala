package org.apache.spark.sql.rejoin.run

import java.io.File

import org.apache.spark.{SparkEnv, TaskContext}

import rejoin.core.results.Overflow

/** Where rows of a task wait that do not fit into its memory: files in Spark's local folder (`spark.local.dir`), like
  * those of its own sorts. The task deletes them, also when it fails.
  */
object TaskOverflow {

  /** The results of a key group fit in almost every epoch: two million rows over 128 groups take 2 to 3 MB each. A task
    * has up to four places that hold so much, so that all tasks together stay far below a heap of 1 GB.
    */
  private final val MaxBytes = 16L << 20

  /** That of the running task; without one, as where a test writes by itself, everything stays in memory. */
  def apply(): Overflow = {
    val task = TaskContext.get()
    if (task == null) Overflow.inMemory
    else {
      val overflow = new Overflow(MaxBytes, () => newFile())
      task.addTaskCompletionListener[Unit](_ => overflow.close())
      overflow
    }
  }

  private def newFile(): File = {
    JvmCounts.add("overflow", "files")
    SparkEnv.get.blockManager.diskBlockManager.createTempLocalBlock()._2
  }
}

package org.apache.spark.sql.rejoin.run

/** What the writer of a task does with the steps of the operator in front of it, in the task's own thread. */
private[rejoin] trait StepWriter {

  /** The results that come now are those of a step. */
  def begin(step: Long): Unit

  /** All results of the steps up to a barrier have come. */
  def commit(barrier: Long): Unit
}

private[rejoin] object StepCommits {
  private val writers = new ThreadLocal[StepWriter]

  /** The writer of the running task; null for none. */
  def set(writer: StepWriter): Unit = if (writer == null) writers.remove() else writers.set(writer)

  def begin(step: Long): Unit = writers.get.begin(step)

  def commit(barrier: Long): Unit = writers.get.commit(barrier)
}

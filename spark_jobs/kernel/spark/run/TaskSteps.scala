package org.apache.spark.sql.rejoin.run

/** What the writer of a task does with the steps of the operator in front of it. */
private[rejoin] trait StepWriter {

  /** All results of the steps up to a barrier have come. */
  def commit(barrier: Long): Unit
}

/** The steps of one task: its operator says which is running, and whatever takes its results goes by that, row by row
  * in the same thread.
  */
private[rejoin] object TaskSteps {
  private final class Steps {
    var running = 0L
    var writer: StepWriter = _
  }

  private val steps = ThreadLocal.withInitial[Steps](() => new Steps)

  /** The step whose results come now. */
  def running: Long = steps.get.running

  def begin(step: Long): Unit = steps.get.running = step

  /** A task begins with its writer, and ends with none. */
  def setWriter(writer: StepWriter): Unit = {
    steps.get.running = 0L
    steps.get.writer = writer
  }

  def commit(barrier: Long): Unit = steps.get.writer.commit(barrier)
}

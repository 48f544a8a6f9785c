package rejoin.core.machine

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Envelope, RowKind}

/** The groups of a task, whose rows are numbers. */
final class SteppedGroupsRun(count: Int) {
  private val groups = new SteppedGroups(count)

  def row(group: Int, step: Long, number: Long): Unit = {
    val row = Envelope(group, 0, RowKind.Rows, step, 0, number, Array.emptyByteArray, Array.emptyByteArray)
    groups.add(group, row)((_, _) => throw new IllegalStateException("a row completes no step"))
    ()
  }

  /** The steps that the barrier completes in its group, each as "step:row,row", then the barrier up to which all
    * groups are complete by it.
    */
  def barrier(group: Int, reader: Int, readers: Int, barrier: Long): String = {
    val steps = new ArrayBuffer[String]
    val all = groups.add(group, Envelope.barrier(group, 0, reader, readers, barrier)) { (step, rows) =>
      steps += s"$step:${rows.map(_.seq).toSeq.sorted.mkString(",")}"
    }
    (steps ++ all.map(_.toString)).mkString(" ")
  }

  def isWaiting: Boolean = groups.isWaiting
}

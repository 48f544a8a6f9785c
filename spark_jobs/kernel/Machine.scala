package org.apache.spark.sql.rejoin

/** A stateful operator as a pure function (state, rows) -> (state, rows) of one key group and batch.
  *
  * Data rows are applied first, then marks; what is late is judged by the watermark before the
  * batch. A machine never sees Spark, a clock or another group.
  */
trait Machine {
  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit
}

object Machine {

  /** Runs one batch of one group: loads the group's own cell, applies the batch, saves it. */
  def run(machine: Machine, batch: GroupBatch, state: KeyedState, out: Output): GroupState = {
    val group = GroupState.load(state)
    batch.rejects.foreach(reject => out.emit(RowKind.Reject, reject.seq.toInt, reject.row, null))
    machine.process(batch, group, state, out)
    group.save(state)
    group
  }
}

package rejoin.core.machine

import rejoin.core.row.{Envelope, GroupBatch, KeyContents, KeyGroup, Mark, Output, RowKind}
import rejoin.core.state.KeyedState
import rejoin.core.time.{GroupState, Timing}

/** A stateful operator as a pure function (state, rows) -> (state, rows) of one key group and batch.
  *
  * A machine never sees Spark, a clock or another group. What the batch's marks say of time is known
  * to the [[GroupState]] before `process` is called; what is late is judged by its `watermarkBefore`.
  */
trait Machine {
  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit

  /** Emits what no row brings, in front of the first batch; called for group 0 in every batch. */
  def begin(group: GroupState, state: KeyedState, out: Output): Unit = ()

  /** The tag of the cell that every stored key has. */
  def keyTag: Char

  /** The key group that keeps a key. */
  def groupOf(key: Array[Byte], groups: Int): Int = KeyGroup.of(key, groups)

  /** What is stored of a key, for display; changes nothing. */
  def look(key: Array[Byte], state: KeyedState): KeyContents

  /** By how much the rows it emits may lag behind its watermark, in milliseconds. */
  def holdBackMs: Long = 0L

  /** Whether rows wait for something else than the watermark, which then stays with the operator. */
  def holdsWatermark(group: GroupState): Boolean = false
}

object Machine {

  /** Runs one batch of one group: loads the group's own cell, applies the batch, saves it.
    *
    * Every group receives every mark, so group 0 alone passes them on to the next operator.
    */
  def run(
      machine: Machine,
      timing: Timing,
      groupId: Int,
      batch: GroupBatch,
      state: KeyedState,
      out: Output): GroupState = {
    val group = GroupState.load(state)
    step(machine, timing, groupId, group, batch, state, out)
    group.save(state)
    group
  }

  /** The same with the group's cell in the caller's hands, who saves it. */
  private[machine] def step(
      machine: Machine,
      timing: Timing,
      groupId: Int,
      group: GroupState,
      batch: GroupBatch,
      state: KeyedState,
      out: Output): Unit = {
    val wasComplete = isComplete(machine, timing, group)
    val wasIdle = timing.forward.isDefined && group.watermarks.isIdle(timing)
    group.applyMarks(batch.marks, timing)
    batch.rejects.sortBy(reject => (reject.source, reject.seq)).foreach { reject =>
      out.emit(RowKind.Reject, reject.source, reject.row, null)
    }
    val passedOn = if (machine.holdsWatermark(group)) Long.MinValue else group.watermarkBefore
    if (groupId == 0) machine.begin(group, state, out)
    machine.process(batch, group, state, out)
    group.unhealed.foreach(_.settle(out))
    if (groupId == 0 && !machine.holdsWatermark(group))
      timing.forward.foreach { topic =>
        if (wasIdle || group.watermarks.current > passedOn) forward(topic, machine, group, out)
        if (group.watermarks.isIdle(timing)) Mark.emit(RowKind.Idle, Envelope.source(topic, 0), 0L, out)
        if (!wasComplete && isComplete(machine, timing, group))
          Mark.emit(RowKind.Loaded, Envelope.source(topic, 0), 0L, out)
      }
  }

  /** Whether what the operator has emitted contains the initial content of all its inputs. */
  private def isComplete(machine: Machine, timing: Timing, group: GroupState): Boolean =
    timing.forward.isDefined && !machine.holdsWatermark(group) &&
      !group.watermarks.isEnd && group.watermarks.isLoaded(timing.inputs.flatten)

  private def forward(topic: Int, machine: Machine, group: GroupState, out: Output): Unit = {
    val now = group.watermarks.current
    val earliest = Long.MinValue + 1
    val held =
      if (now == Long.MaxValue) now
      else if (now < earliest + machine.holdBackMs) earliest
      else now - machine.holdBackMs
    Mark.emit(RowKind.Watermark, Envelope.source(topic, 0), held, out)
  }
}

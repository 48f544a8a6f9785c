package org.apache.spark.sql.rejoin.run

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode, TimerValues}

import org.apache.spark.sql.rejoin.ingest.Barriers
import rejoin.core.machine.{LiveGroup, Machine, SteppedGroups, TemporalJoinSpec}
import rejoin.core.results.Results
import rejoin.core.row.{Changelog, Envelope, GroupBatch, Mark, Output}
import rejoin.core.state.{BatchCells, Cell}
import rejoin.core.time.{GroupState, Watermarks}

/** Runs a state machine inside transformWithState: one call per key group and batch, or in real-time mode one per row.
  *
  * All of an operator's state is one map variable, `cells`; there are no Spark timers and no TTL. Results that do not
  * fit into memory wait on disk until the sink, or the next operator's exchange, has taken those before them.
  *
  * @param passesLoaded
  *   whether an operator further on has to hear which partitions are loaded
  * @param realTime
  *   whether the query runs in Spark's real-time mode
  * @param steps
  *   whether rows wait there for the barrier behind their step
  * @param movesOn
  *   whether its results go to another operator
  * @param groups
  *   how many key groups there are
  * @param hearsEnd
  *   as [[LiveGroup]] has it
  */
final class StatefulAdapter(
    operator: Operator,
    query: String,
    id: String,
    passesLoaded: Boolean,
    realTime: Boolean,
    steps: Boolean,
    movesOn: Boolean,
    groups: Int,
    hearsEnd: Boolean,
    groupKey: GroupKey,
    counters: Counters)
    extends StatefulProcessor[Int, Envelope, Changelog] {
  private val streams = (operator.spec.timing.inputs.flatten ++ (operator.spec match {
    case join: TemporalJoinSpec => join.gate.build
    case _ => Nil
  })).distinct
  @transient private lazy val overflow = TaskOverflow()
  @transient private lazy val machine = operator.machine(overflow)
  @transient private var cells: Int => StoreCells = _
  @transient private lazy val live = new mutable.HashMap[Int, LiveGroup]
  @transient private lazy val stepped = new SteppedGroups(tasksOfGroups.count(_ == TaskContext.getPartitionId()))
  @transient private lazy val known = new mutable.HashMap[Int, GroupState] // of stepped groups

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = cells = StoreCells.open(getHandle)

  override def handleInputRows(key: Int, rows: Iterator[Envelope], timers: TimerValues): Iterator[Changelog] = {
    val group = groupKey.groupOf(key)
    val results = new Results(overflow)
    def out(batch: GroupBatch): Output =
      (kind, hash, left, right) => results.add(Changelog(kind, hash, left, right, batch.recordMs))
    if (steps) return rows.flatMap(addStepped(key, _))
    if (realTime) rows.foreach(addLive(key, _, out))
    else report(group, runBatch(key, rows, out))
    results.iterator
  }

  private def runBatch(key: Int, rows: Iterator[Envelope], out: GroupBatch => Output): GroupState = {
    val group = groupKey.groupOf(key)
    val stored = cells(key)
    def read(keys: Seq[Array[Byte]]): Unit = stored.readAhead(keys.map(Cell.key(machine.keyTag, _)))
    val batch = new GroupBatch(Option.unless(stored.isInMemory)(read))
    rows.foreach(batch.add)
    val state = new BatchCells(stored, expected = batch.size)
    val after = Machine.run(machine, operator.spec.timing, group, batch, state, out(batch))
    state.store()
    if (passesLoaded && group == 0) Mark.passLoaded(batch, out(batch))
    counters.unhealed(query, after.unhealed)
    after
  }

  /** The results of the steps that a barrier completes, one step after the other; behind those of the last group of the
    * task the writer commits them, or the next operator hears of the barrier.
    */
  private def addStepped(key: Int, row: Envelope): Iterator[Changelog] = {
    val ended = new mutable.ArrayBuffer[(Long, Iterable[Envelope])]
    val barrier = stepped.add(key, row)((step, rows) => ended += ((step, rows)))
    val results = ended.iterator.flatMap { case (step, rows) =>
      TaskSteps.begin(step)
      val made = new Results(overflow)
      def out(batch: GroupBatch): Output =
        (kind, hash, left, right) => made.add(Changelog(kind, hash, left, right, batch.recordMs))
      known(key) = runBatch(key, rows.iterator, out)
      made.iterator
    }
    results ++ barrier.iterator.flatMap(pass)
  }

  private def pass(barrier: Long): Iterator[Changelog] =
    if (movesOn) {
      Iterator.single(Mark.barrier(TaskContext.getPartitionId(), tasksOfGroups.distinct.size, barrier))
    } else {
      if (barrier != Barriers.Last) TaskSteps.commit(barrier)
      Iterator.empty
    }

  /** For each key group the task that has it. */
  @transient private lazy val tasksOfGroups: Seq[Int] = {
    val tasks = TaskContext.get().numPartitions()
    (0 until groups).map(group => Math.floorMod(GroupKey.hash(groupKey.of(group)), tasks))
  }

  private def addLive(key: Int, row: Envelope, out: GroupBatch => Output): Unit = {
    def begin = new LiveGroup(machine, operator.spec.timing, groupKey.groupOf(key), cells(key), hearsEnd)
    live.getOrElseUpdate(key, begin).add(row, out, counters.unhealed(query, _))
  }

  /** Reports at the end of an epoch in real-time mode: after each row it would cost more than the row. */
  override def close(): Unit = if (steps) {
    if (stepped.isWaiting) throw new IllegalStateException(s"operator $id: no barrier came behind the last rows")
    known.foreach { case (key, state) => report(groupKey.groupOf(key), state) }
  } else if (realTime) live.foreach { case (key, found) =>
    if (found.isWaiting) throw new IllegalStateException(s"operator $id: the clock did not tick in this epoch")
    if (found.isHolding) throw new IllegalStateException(s"operator $id: no task said that the epoch ended")
    report(groupKey.groupOf(key), found.known)
  }

  private def report(group: Int, state: GroupState): Unit = {
    val epoch = getHandle.getQueryInfo().getBatchId
    def say(metric: String*)(value: Long): Unit =
      counters.level(query :: id :: metric.toList, group, epoch, value)
    say("rows", "left")(state.rows(0))
    say("rows", "right")(state.rows(1))
    say("late")(state.lateRows)
    say("gate-timeouts")(state.gateTimeouts)
    say("unknown-retractions")(state.unknownRetractions)
    say("watermark")(state.watermarks.current)
    say("open")(if (state.isOpen) 1 else 0)
    if (group == 0) reportPartitions(state.watermarks, epoch)
  }

  /** Every group hears the same marks: one speaks for all. */
  private def reportPartitions(watermarks: Watermarks, epoch: Long): Unit =
    watermarks.partitions(streams).foreach { partition =>
      def say(metric: String, value: Long): Unit =
        counters.sourceLevel(query, id, partition.source, metric, epoch, value)
      say("watermark", partition.watermark)
      say("idle", if (partition.isIdle) 1 else 0)
      say("loaded", if (partition.isLoaded) 1 else 0)
    }
}

package rejoin.core.machine

import java.util

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Bytes, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output, RowFunctions, RowKind}
import rejoin.core.state.{KeyedState, StateCell, TimePages, TimedRow}
import rejoin.core.time.{DueSlot, GroupState, KeyVisits}

/** Sink rows that wait for the watermark, for ON CONFLICT DO NOTHING and DO ERROR.
  *
  * {{{
  * cell 'C' + sink key : version, due slot, next arrival, row that shows, waiting changes
  * cells 'B'           : further pages of waiting changes
  * }}}
  * A change waits under its own time, where it has one, else under the watermark at its arrival; once the
  * watermark is beyond, all that waited so long is netted in arrival order. An input without watermarks
  * is netted batch by batch. docs/semantics.md, "Sink materialisation".
  */
final class CompactingMaterializer(
    spec: SinkMaterializerSpec,
    functions: RowFunctions,
    violation: Iterable[Array[Byte]] => String,
    outputs: OutputFunctions)
    extends Machine {
  private val hasWatermarks = spec.timing.inputs.exists(_.nonEmpty)
  private val conflicts = new SinkConflicts(spec, functions.uniqueKey(_), violation)
  private val waiting = new TimePages('B')
  private val due = new ArrayBuffer[TimedRow]
  private val result = new SinkResult(outputs)
  private val header = new StateCell(keyTag)
  private val dueSlot = new DueSlot
  private var nextOrder = 0L
  private var shown: Array[Byte] = _

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    val visits = new KeyVisits
    visits.add(group.takeDue(state))
    visits.foreach(batch)(visit(_, group, state, out))
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(rows.key, state)
    val rowsBefore = storedRows
    val watermark = group.watermarks.current
    due.clear()
    rows.foreach(add(_, group))
    if (!waiting.isEmpty && watermark != Long.MinValue) waiting.takeUpTo(watermark - 1)(due += _)
    if (due.size > 1) due.sortInPlaceBy(_.order)
    if (due.nonEmpty) {
      val after = conflicts.net(shown, due, group)
      result.emit(shown, after, deleted = shown, repeats = false, GroupBatch.hash(rows.key), out)
      shown = after
    }
    dueSlot.forgetTaken(group)
    if (!waiting.isEmpty) dueSlot.register(waiting.firstTime, rows.key, group)
    group.rows(0) += storedRows - rowsBefore
    save(state)
  }

  private def storedRows: Long = waiting.size + (if (shown == null) 0 else 1)

  /** Before the first watermark there is no order in time. */
  private def add(row: Envelope, group: GroupState): Unit = {
    val isUntimed = row.time == Envelope.NoTime || group.watermarkBefore == Long.MinValue
    val time = if (isUntimed) group.watermarkBefore else row.time
    val change = new TimedRow(time, nextOrder, row.kind, row.row)
    nextOrder += 1
    if (!hasWatermarks || time < group.watermarks.current) due += change else waiting.add(change)
  }

  def keyTag: Char = 'C'

  /** A change that came before the first watermark waits at the beginning of time. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(Seq(storedRows), hasTimes = !waiting.isEmpty) {
      def foreach(visit: KeptRow => Unit): Unit = {
        if (shown != null) visit(KeptRow(0, shown, facts = Seq("shown" -> true)))
        waiting.foreach(r => visit(KeptRow(0, r.row, r.time, Seq("waiting" -> RowKind.name(r.kind)))))
      }
    }
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    waiting.reset(key, state)
    dueSlot.reset()
    nextOrder = 0L
    shown = null
    val in = header.open(key, state)
    if (in != null) {
      dueSlot.read(in)
      nextOrder = in.varLong()
      shown = in.nullable()
      waiting.read(in)
    }
  }

  private def save(state: KeyedState): Unit = {
    if (waiting.isEmpty) nextOrder = 0L
    val out = header.write()
    dueSlot.write(out)
    waiting.write(out.varLong(nextOrder).nullable(shown))
    header.save(state, isEmpty = storedRows == 0)
  }
}

/** What remains of a sink key's changes, and what happens if that is more than one row. */
private final class SinkConflicts(
    spec: SinkMaterializerSpec,
    identity: Array[Byte] => Array[Byte],
    violation: Iterable[Array[Byte]] => String) {

  /** The row that shows after some changes, or null. */
  def net(before: Array[Byte], changes: ArrayBuffer[TimedRow], group: GroupState): Array[Byte] = {
    val rows = new ArrayBuffer[Array[Byte]]
    val places = new util.HashMap[Bytes, util.ArrayDeque[Integer]]
    def add(row: Array[Byte]): Unit = {
      val known = places.computeIfAbsent(Bytes(identity(row)), _ => new util.ArrayDeque[Integer])
      if (spec.isUnique && !known.isEmpty) rows(known.peekFirst) = row
      else {
        known.addLast(rows.size)
        rows += row
      }
    }
    def remove(row: Array[Byte]): Unit = {
      val known = places.get(Bytes(identity(row)))
      if (known == null || known.isEmpty) group.unknownRetractions += 1 else rows(known.pollFirst) = null
    }
    if (before != null) add(before)
    withoutPairs(changes).foreach(change => if (RowKind.isAdd(change.kind)) add(change.row) else remove(change.row))
    val left = rows.filter(_ != null)
    if (left.size > 1 && spec.strategy == "error") throw new IllegalStateException(violation(left))
    left.headOption.orNull
  }

  /** An addition and a retraction of the same row cancel out, whichever comes first. */
  private def withoutPairs(changes: ArrayBuffer[TimedRow]): ArrayBuffer[TimedRow] = {
    val open = new util.HashMap[Bytes, util.ArrayDeque[Integer]]
    val paired = new Array[Boolean](changes.size)
    changes.indices.foreach { i =>
      val same = open.computeIfAbsent(Bytes(changes(i).row), _ => new util.ArrayDeque[Integer])
      if (!same.isEmpty && RowKind.isAdd(changes(same.peekFirst).kind) != RowKind.isAdd(changes(i).kind)) {
        paired(i) = true
        paired(same.pollFirst) = true
      } else same.addLast(i)
    }
    changes.indices.collect { case i if !paired(i) => changes(i) }.to(ArrayBuffer)
  }
}

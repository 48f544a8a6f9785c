package rejoin.core.machine

import scala.collection.mutable

import rejoin.core.row.{Bytes, CellReader, CellWriter, Codec, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows,
  Output}
import rejoin.core.state.{Cell, KeyedState}
import rejoin.core.time.{DueIndex, GroupState, KeyTtl}

/** First row of each key by event time, shown for good once the watermark has reached it.
  *
  * {{{
  * cell 'U' + key : version, TTL, 0                        shown
  *                  version, TTL, 1, due slot, time, row   waiting
  * }}}
  * docs/semantics.md, "Deduplication". The output is insert-only. TTL is of keys whose row was shown; a row
  * that waits never expires.
  */
final class FirstOnWatermark(spec: DeduplicateSpec, outputs: OutputFunctions) extends Machine {
  import FirstOnWatermark._

  private val ttl = new KeyTtl(spec.timing.ttlMs.head)
  private val result = new KeyedResult(outputs)
  private val value = new CellWriter
  private var phase = Unknown
  private var dueSlot = NoSlot
  private var time = Envelope.NoTime
  private var row: Array[Byte] = _

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    val due = mutable.LinkedHashSet.empty[Bytes]
    val watermark = group.watermarks.current
    if (watermark > group.watermarkBefore) due ++= group.due.take(DueIndex.slotOf(watermark), state).map(Bytes(_))
    batch.foreachKey { rows =>
      due.remove(Bytes(rows.key))
      visit(rows.key, rows, group, state, out)
    }
    due.foreach(key => visit(key.bytes, null, group, state, out))
    group.due.flush(state)
    group.expiries.flush(state)
  }

  private def visit(key: Array[Byte], rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val cell = Cell.key(keyTag, key)
    load(cell, state)
    val before = phase
    val changes = rows != null && addRows(rows, group)
    if (phase == Waiting) {
      val watermark = group.watermarks.current
      if (watermark > group.watermarkBefore && dueSlot <= DueIndex.slotOf(watermark)) dueSlot = NoSlot
      if (time <= watermark) {
        result.emit(null, row, repeats = false, GroupBatch.hash(key), out)
        phase = Shown
        ttl.touch(key, group)
      } else if (DueIndex.slotOf(time) < dueSlot) {
        dueSlot = DueIndex.slotOf(time)
        group.due.register(dueSlot, key)
      }
      if (before == Unknown) group.rows(0) += 1
      if (changes || rows == null || phase != before) save(cell, state)
    }
  }

  /** Whether the row that waits is another now. */
  private def addRows(rows: KeyRows, group: GroupState): Boolean = {
    var changes = false
    var i = 0
    while (i < rows.size) {
      val candidate = rows(i)
      Deduplicate.requireInsert(candidate)
      if (candidate.time < group.watermarkBefore) group.lateRows += 1
      else if (phase == Unknown || phase == Waiting && candidate.time < time) {
        phase = Waiting
        time = candidate.time
        row = candidate.row
        changes = true
      }
      i += 1
    }
    changes
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    val cell = Cell.key(keyTag, key)
    load(cell, state)
    if (phase == Shown) {
      if (ttl.hasExpired(group)) {
        state.remove(cell)
        group.rows(0) -= 1
      } else if (ttl.visitAgain(key, group)) save(cell, state)
    }
  }

  def keyTag: Char = 'U'

  /** Of a row that was shown, no more than its key is kept. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(Cell.key(keyTag, key), state)
    KeyContents(phase match {
      case Unknown => None
      case Waiting => Some(KeptRow(0, row, time, Seq("waiting" -> true) ++ ttl.facts))
      case _ => Some(KeptRow(0, null, ttl.writtenMs, Seq("shown" -> true) ++ ttl.facts))
    })
  }

  private def load(cell: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    phase = Unknown
    dueSlot = NoSlot
    val stored = state.get(cell)
    if (stored != null) {
      val in = new CellReader(stored).version()
      ttl.read(in)
      phase = in.byte()
      if (phase == Waiting) {
        dueSlot = in.signed()
        time = in.signed()
        row = in.blob()
      }
    }
  }

  private def save(cell: Array[Byte], state: KeyedState): Unit = {
    value.reset().byte(Codec.Version)
    ttl.write(value)
    value.byte(phase)
    if (phase == Waiting) value.signed(dueSlot).signed(time).blob(row)
    state.put(cell, value.result())
  }
}

object FirstOnWatermark {
  private val NoSlot = Long.MaxValue
  private final val Shown = 0
  private final val Waiting = 1
  private final val Unknown = 2
}

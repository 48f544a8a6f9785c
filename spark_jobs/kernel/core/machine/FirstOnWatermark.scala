package rejoin.core.machine

import rejoin.core.row.{Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output}
import rejoin.core.state.{KeyedState, StateCell}
import rejoin.core.time.{DueSlot, GroupState, KeyTtl, KeyVisits}

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
  private val header = new StateCell(keyTag)
  private val dueSlot = new DueSlot
  private var phase = Unknown
  private var time = Envelope.NoTime
  private var row: Array[Byte] = _

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    val visits = new KeyVisits
    visits.add(group.takeDue(state))
    visits.foreach(batch)(visit(_, group, state, out))
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(rows.key, state)
    val isNew = phase == Unknown
    rows.foreach(add(_, group))
    if (phase == Waiting) {
      dueSlot.forgetTaken(group)
      if (time <= group.watermarks.current) {
        result.emit(null, row, repeats = false, GroupBatch.hash(rows.key), out)
        phase = Shown
        ttl.touch(rows.key, group)
      } else dueSlot.register(time, rows.key, group)
      if (isNew) group.rows(0) += 1
      save(state)
    }
  }

  private def add(candidate: Envelope, group: GroupState): Unit = {
    Deduplicate.requireInsert(candidate)
    if (candidate.time < group.watermarkBefore) group.lateRows += 1
    else if (phase == Unknown || phase == Waiting && candidate.time < time) {
      phase = Waiting
      time = candidate.time
      row = candidate.row
    }
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    load(key, state)
    if (phase == Shown) {
      val isOver = ttl.hasExpired(group)
      if (isOver) group.rows(0) -= 1
      if (isOver || ttl.visitAgain(key, group)) save(state, isOver)
    }
  }

  def keyTag: Char = 'U'

  /** Once a row has been shown, only its key is kept. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    KeyContents(phase match {
      case Unknown => None
      case Waiting => Some(KeptRow(0, row, time, Seq("waiting" -> true) ++ ttl.facts))
      case _ => Some(KeptRow(0, null, ttl.writtenMs, Seq("shown" -> true) ++ ttl.facts))
    })
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    phase = Unknown
    dueSlot.reset()
    val in = header.open(key, state)
    if (in != null) {
      ttl.read(in)
      phase = in.byte()
      if (phase == Waiting) {
        dueSlot.read(in)
        time = in.signed()
        row = in.blob()
      }
    }
  }

  private def save(state: KeyedState, isEmpty: Boolean = false): Unit = {
    val out = header.write()
    ttl.write(out)
    out.byte(phase)
    if (phase == Waiting) {
      dueSlot.write(out)
      out.signed(time).blob(row)
    }
    header.save(state, isEmpty)
  }
}

object FirstOnWatermark {
  private final val Shown = 0
  private final val Waiting = 1
  private final val Unknown = 2
}

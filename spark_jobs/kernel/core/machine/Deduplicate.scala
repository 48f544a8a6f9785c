package rejoin.core.machine

import rejoin.core.row.{Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.{KeyedState, StateCell}
import rejoin.core.time.{GroupState, KeyTtl}

/** First or last row of each key, shown at once and corrected when a better one comes.
  *
  * {{{
  * cell 'U' + key : version, TTL, and unless the first row to arrive stays for good: time, row
  * }}}
  * docs/semantics.md, "Deduplication". The input is append-only. Of several changes of a key in one batch
  * only the net one leaves.
  */
final class Deduplicate(spec: DeduplicateSpec, outputs: OutputFunctions) extends Machine {
  private val keepsRow = spec.keepLast || spec.isEventTime
  private val isUpsert = outputs.pairBy != null && !spec.generateInsert
  private val ttl = new KeyTtl(spec.timing.ttlMs.head)
  private val result = new KeyedResult(outputs, if (isUpsert) RowKind.UpdateAfter else RowKind.Insert)
  private val header = new StateCell(keyTag)
  private var isKnown = false
  private var time = Envelope.NoTime
  private var row: Array[Byte] = _

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(rows.key, state)
    val before = row
    var isReplaced = false
    rows.foreach { candidate =>
      if (replaces(candidate)) {
        isKnown = true
        row = candidate.row
        time = candidate.time
        isReplaced = true
      }
    }
    if (isReplaced) {
      result.emit(before, row, repeats = ttl.isOn, GroupBatch.hash(rows.key), out)
      ttl.touch(rows.key, group)
      save(state)
      if (!header.isStored) group.rows(0) += 1
    }
  }

  /** Among equal times, the later arrival is the last row and the earlier one the first. */
  private def replaces(candidate: Envelope): Boolean = {
    Deduplicate.requireInsert(candidate)
    if (!isKnown) true
    else if (!spec.isEventTime) spec.keepLast
    else if (spec.keepLast) candidate.time >= time
    else candidate.time < time
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    load(key, state)
    if (isKnown) {
      val isOver = ttl.hasExpired(group)
      if (isOver) group.rows(0) -= 1
      if (isOver || ttl.visitAgain(key, group)) save(state, isOver)
    }
  }

  def keyTag: Char = 'U'

  /** Where the first row stays for good, no more than the key is kept. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    val shown = if (time == Envelope.NoTime) ttl.writtenMs else time
    KeyContents(Option.when(isKnown)(KeptRow(0, row, shown, ttl.facts)))
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    row = null
    time = Envelope.NoTime
    val in = header.open(key, state)
    isKnown = in != null
    if (isKnown) {
      ttl.read(in)
      if (keepsRow) {
        time = in.signed()
        row = in.blob()
      }
    }
  }

  private def save(state: KeyedState, isEmpty: Boolean = false): Unit = {
    val out = header.write()
    ttl.write(out)
    if (keepsRow) out.signed(time).blob(row)
    header.save(state, isEmpty)
  }
}

object Deduplicate {
  def requireInsert(row: Envelope): Unit =
    require(RowKind.isAdd(row.kind), s"deduplication of an append-only input found a ${RowKind.name(row.kind)}")
}

package rejoin.core.machine

import rejoin.core.row.{CellReader, CellWriter, Codec, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output,
  RowKind}
import rejoin.core.state.{Cell, KeyedState}
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
  private val value = new CellWriter
  private var isKnown = false
  private var time = Envelope.NoTime
  private var row: Array[Byte] = _

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
    group.expiries.flush(state)
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val cell = Cell.key(keyTag, rows.key)
    load(cell, state)
    val wasKnown = isKnown
    val before = row
    var changes = false
    var i = 0
    while (i < rows.size) {
      if (replaces(rows(i))) {
        isKnown = true
        row = rows(i).row
        time = rows(i).time
        changes = true
      }
      i += 1
    }
    if (changes) {
      result.emit(before, row, repeats = ttl.isOn, GroupBatch.hash(rows.key), out)
      ttl.touch(rows.key, group)
      save(cell, state)
      if (!wasKnown) group.rows(0) += 1
    }
  }

  /** Of equal times the later arrival is the last row, and the earlier one the first. */
  private def replaces(candidate: Envelope): Boolean = {
    Deduplicate.requireInsert(candidate)
    if (!isKnown) true
    else if (!spec.isEventTime) spec.keepLast
    else if (spec.keepLast) candidate.time >= time
    else candidate.time < time
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    val cell = Cell.key(keyTag, key)
    load(cell, state)
    if (isKnown) {
      if (ttl.hasExpired(group)) {
        state.remove(cell)
        group.rows(0) -= 1
      } else if (ttl.visitAgain(key, group)) save(cell, state)
    }
  }

  def keyTag: Char = 'U'

  /** Where the first row stays for good, no more than the key is kept. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(Cell.key(keyTag, key), state)
    val shown = if (time == Envelope.NoTime) ttl.writtenMs else time
    KeyContents(Option.when(isKnown)(KeptRow(0, row, shown, ttl.facts)))
  }

  private def load(cell: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    row = null
    time = Envelope.NoTime
    val stored = state.get(cell)
    isKnown = stored != null
    if (isKnown) {
      val in = new CellReader(stored).version()
      ttl.read(in)
      if (keepsRow) {
        time = in.signed()
        row = in.blob()
      }
    }
  }

  private def save(cell: Array[Byte], state: KeyedState): Unit = {
    value.reset().byte(Codec.Version)
    ttl.write(value)
    if (keepsRow) value.signed(time).blob(row)
    state.put(cell, value.result())
  }
}

object Deduplicate {
  def requireInsert(row: Envelope): Unit =
    require(RowKind.isAdd(row.kind), s"deduplication of an append-only input found a ${RowKind.name(row.kind)}")
}

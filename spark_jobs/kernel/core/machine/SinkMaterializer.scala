package rejoin.core.machine

import rejoin.core.row.{Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output, RowFunctions, RowKind}
import rejoin.core.state.{KeyedState, SinkRows, StateCell}
import rejoin.core.time.{GroupState, KeyTtl}

/** The rows of each sink key as an ordered list, of which the newest shows: ON CONFLICT DO DEDUPLICATE.
  *
  * {{{
  * cell 'M' + sink key : version, TTL, place of the row that shows, rows
  * }}}
  * docs/semantics.md, "Sink materialisation". The output is an upsert stream: +I, +U and -D, at most one
  * change per key and batch.
  */
final class SinkMaterializer(spec: SinkMaterializerSpec, functions: RowFunctions, outputs: OutputFunctions)
    extends Machine {
  private val ttl = new KeyTtl(spec.timing.ttlMs.head)
  private val rows = new SinkRows(functions.uniqueKey(_), spec.isUnique)
  private val result = new SinkResult(outputs)
  private val header = new StateCell(keyTag)
  private var shown = SinkRows.NoPlace
  private var lastRetraction: Array[Byte] = _
  private var hasAdds = false
  private var isTouched = false

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
  }

  private def visit(changes: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(changes.key, state)
    val sizeBefore = rows.size
    val before = row()
    hasAdds = false
    isTouched = false
    changes.foreach(change => if (RowKind.isAdd(change.kind)) add(change.row) else remove(change.row, group))
    if (isTouched) {
      // a deletion carries the retraction's row: by upsert key it may differ from the stored one
      result.emit(before, row(), lastRetraction, repeats = ttl.isOn && hasAdds, GroupBatch.hash(changes.key), out)
      group.rows(0) += rows.size - sizeBefore
      ttl.touch(changes.key, group)
      save(state)
    }
  }

  private def add(row: Array[Byte]): Unit = {
    shown = rows.add(row)
    hasAdds = true
    isTouched = true
  }

  /** What shows changes if it was removed, or the newest row was. */
  private def remove(row: Array[Byte], group: GroupState): Unit = {
    val newest = if (rows.isEmpty) SinkRows.NoPlace else rows.lastPlace
    val place = rows.remove(row)
    if (place == SinkRows.NoPlace) group.unknownRetractions += 1
    else {
      lastRetraction = row
      isTouched = true
      if (rows.isEmpty) shown = SinkRows.NoPlace
      else if (place == shown || place == newest) shown = rows.lastPlace
    }
  }

  private def row(): Array[Byte] = if (shown == SinkRows.NoPlace) null else rows.at(shown)

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    load(key, state)
    if (header.isStored) {
      val isOver = ttl.hasExpired(group)
      if (isOver) {
        group.rows(0) -= rows.size
        rows.clear()
      }
      if (isOver || ttl.visitAgain(key, group)) save(state)
    }
  }

  def keyTag: Char = 'M'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(Seq(rows.size), ttl.writtenMs != Envelope.NoTime) {
      def foreach(visit: KeptRow => Unit): Unit =
        rows.foreach { (place, row) =>
          visit(KeptRow(0, row, ttl.writtenMs, Seq("shown" -> (place == shown)) ++ ttl.facts))
        }
    }
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    rows.reset(key, state)
    shown = SinkRows.NoPlace
    val in = header.open(key, state)
    if (in != null) {
      ttl.read(in)
      shown = in.varLong()
      rows.read(in)
    }
  }

  private def save(state: KeyedState): Unit = {
    val out = header.write()
    ttl.write(out)
    rows.write(out.varLong(shown))
    header.save(state, rows.isEmpty)
  }
}

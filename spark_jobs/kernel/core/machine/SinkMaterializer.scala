package rejoin.core.machine

import java.util.Arrays

import rejoin.core.row.{CellReader, CellWriter, Codec, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output,
  RowFunctions, RowKind}
import rejoin.core.state.{Cell, KeyedState, SinkRows}
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
  private val header = new CellWriter
  private val pages = new CellWriter
  private var shown = SinkRows.NoPlace
  private var lastRetraction: Array[Byte] = _
  private var hasAdds = false
  private var isTouched = false

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
    group.expiries.flush(state)
  }

  private def visit(changes: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val cell = Cell.key(keyTag, changes.key)
    val isStored = load(changes.key, cell, state)
    val sizeBefore = rows.size
    val before = row()
    hasAdds = false
    isTouched = false
    var i = 0
    while (i < changes.size) {
      if (RowKind.isAdd(changes(i).kind)) add(changes(i).row) else remove(changes(i).row, group)
      i += 1
    }
    emit(before, row(), GroupBatch.hash(changes.key), out)
    if (isTouched) {
      group.rows(0) += rows.size - sizeBefore
      ttl.touch(changes.key, group)
      save(cell, isStored, state)
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

  /** A deletion carries the retraction's content: by upsert key it may differ from the stored row's. */
  private def emit(before: Array[Byte], after: Array[Byte], hash: Int, out: Output): Unit = {
    def leave(kind: Byte, row: Array[Byte]): Unit = if (outputs.accepts(row, null)) out.emit(kind, hash, row, null)
    if (before == null) {
      if (after != null) leave(RowKind.Insert, after)
    } else if (after == null) leave(RowKind.Delete, lastRetraction)
    else if (ttl.isOn && hasAdds || !Arrays.equals(before, after)) leave(RowKind.UpdateAfter, after)
  }

  private def row(): Array[Byte] = if (shown == SinkRows.NoPlace) null else rows.at(shown)

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    val cell = Cell.key(keyTag, key)
    if (load(key, cell, state)) {
      if (ttl.hasExpired(group)) {
        group.rows(0) -= rows.size
        rows.clear()
        save(cell, isStored = true, state)
      } else if (ttl.visitAgain(key, group)) save(cell, isStored = true, state)
    }
  }

  def keyTag: Char = 'M'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, Cell.key(keyTag, key), state)
    new KeyContents(Seq(rows.size), ttl.writtenMs != Envelope.NoTime) {
      def foreach(visit: KeptRow => Unit): Unit =
        rows.foreach { (place, row) =>
          visit(KeptRow(0, row, ttl.writtenMs, Seq("shown" -> (place == shown)) ++ ttl.facts))
        }
    }
  }

  private def load(key: Array[Byte], cell: Array[Byte], state: KeyedState): Boolean = {
    ttl.reset()
    rows.reset(key, state)
    shown = SinkRows.NoPlace
    val stored = state.get(cell)
    if (stored != null) {
      val in = new CellReader(stored).version()
      ttl.read(in)
      shown = in.varLong()
      rows.read(in)
    }
    stored != null
  }

  private def save(cell: Array[Byte], isStored: Boolean, state: KeyedState): Unit = {
    header.reset().byte(Codec.Version)
    ttl.write(header)
    header.varLong(shown)
    rows.write(header, pages)
    if (!rows.isEmpty) state.put(cell, header.result())
    else if (isStored) state.remove(cell)
  }
}

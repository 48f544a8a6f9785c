package org.apache.spark.sql.rejoin

import java.util.Arrays

/** Turns an upsert stream into a complete changelog: +I, -U/+U, -D with full rows.
  *
  * {{{
  * cell 'N' + primary key : version, TTL, row
  * }}}
  * Flink's ChangelogNormalize (docs/semantics.md, "Normalisation"): unknown deletes are ignored,
  * identical rows swallowed unless there is a TTL. Rows that fail the filter are not stored. Of several
  * changes of a key in one batch only the net one leaves. Every group hears every mark; one of them
  * passes it on.
  */
final class Normalize(spec: NormalizeSpec, outputs: OutputFunctions) extends Machine {
  private val ttl = new KeyTtl(spec.timing.ttlMs.head)
  private val result = new KeyedResult(outputs)
  private val value = new CellWriter

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
    group.expiries.flush(state)
    batch.marks.foreach { mark =>
      if (mark.group == 0 && mark.kind == RowKind.Watermark)
        out.emit(mark.kind, mark.source, Rekeyer.mark(mark.time), null)
    }
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    val cell = Cell.key('N', rows.key)
    val before = load(cell, state)
    val last = rows(rows.size - 1)
    val after = if (RowKind.isAdd(last.kind) && outputs.accepts(last.row, null)) last.row else null
    result.emit(before, after, repeats = ttl.isOn, GroupBatch.hash(rows.key), out)
    if (after == null) {
      if (before != null) state.remove(cell)
    } else if (ttl.isOn || !Arrays.equals(before, after)) {
      ttl.touch(rows.key, group)
      save(cell, after, state)
    }
    group.rows(0) += (if (after == null) 0 else 1) - (if (before == null) 0 else 1)
  }

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    val cell = Cell.key('N', key)
    val row = load(cell, state)
    if (row != null) {
      if (ttl.hasExpired(group)) {
        state.remove(cell)
        group.rows(0) -= 1
      } else if (ttl.visitAgain(key, group)) save(cell, row, state)
    }
  }

  /** The stored row, or null. */
  private def load(cell: Array[Byte], state: KeyedState): Array[Byte] = {
    ttl.reset()
    val stored = state.get(cell)
    if (stored == null) null
    else {
      val in = new CellReader(stored).version()
      ttl.read(in)
      in.blob()
    }
  }

  private def save(cell: Array[Byte], row: Array[Byte], state: KeyedState): Unit = {
    value.reset().byte(Codec.Version)
    ttl.write(value)
    state.put(cell, value.blob(row).result())
  }
}

package org.apache.spark.sql.rejoin

import java.util

/** Turns an upsert stream into a complete changelog: +I, -U/+U, -D with full rows.
  *
  * {{{
  * cell 'N' + primary key : version, row
  * }}}
  * Flink's ChangelogNormalize (docs/semantics.md, "Normalisation"): unknown deletes are ignored,
  * identical rows swallowed. Of several changes of a key in one batch only the net one leaves. Every
  * group hears every mark; one of them passes it on.
  */
final class Normalize(updateBefore: Boolean, accepts: Array[Byte] => Boolean) extends Machine {
  private val value = new CellWriter

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    applyRows(batch, group, state, out)
    batch.marks.foreach(mark => if (mark.group == 0) out.emit(mark.kind, mark.source, Rekeyer.mark(mark), null))
  }

  private def applyRows(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit =
    batch.foreachKey { rows =>
      val cell = Cell.key('N', rows.key)
      val stored = state.get(cell)
      val before = if (stored == null) null else new CellReader(stored).version().blob()
      val last = rows(rows.size - 1)
      val after = if (RowKind.isAdd(last.kind) && accepts(last.row)) last.row else null
      if (!util.Arrays.equals(before, after)) {
        emit(GroupBatch.hash(rows.key), before, after, out)
        if (after == null) state.remove(cell)
        else state.put(cell, value.reset().byte(Codec.Version).blob(after).result())
        group.rows(0) += (if (after == null) -1 else if (before == null) 1 else 0)
      }
    }

  private def emit(hash: Int, before: Array[Byte], after: Array[Byte], out: Output): Unit =
    if (before == null) out.emit(RowKind.Insert, hash, after, null)
    else if (after == null) out.emit(RowKind.Delete, hash, before, null)
    else {
      if (updateBefore) out.emit(RowKind.UpdateBefore, hash, before, null)
      out.emit(RowKind.UpdateAfter, hash, after, null)
    }
}

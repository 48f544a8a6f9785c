package rejoin.core.machine

import java.util.Arrays

import rejoin.core.row.{Output, RowKind}

/** What leaves an operator that has at most one result row per key: the net change of a batch.
  *
  * Row kinds are chosen behind the WHERE clause, so that a row which starts or stops passing it is
  * inserted or deleted. Where an upsert sink follows, its key decides whether the old row must go.
  *
  * @param inserts
  *   the kind of a key's first row
  */
final class KeyedResult(outputs: OutputFunctions, inserts: Byte = RowKind.Insert) {

  /** Emits the step from one row to another, null being none.
    *
    * @param repeats
    *   whether an unchanged row leaves again, to keep state with a TTL downstream alive
    */
  def emit(before: Array[Byte], after: Array[Byte], repeats: Boolean, hash: Int, out: Output): Unit = {
    val old = accepted(before)
    val now = accepted(after)
    if (old == null) {
      if (now != null) out.emit(inserts, hash, now, null)
    } else if (now == null) out.emit(RowKind.Delete, hash, old, null)
    else if (repeats || !looksAlike(old, now)) {
      if (outputs.pairBy == null) out.emit(RowKind.UpdateBefore, hash, old, null)
      else if (!Arrays.equals(outputs.pairBy(old, null), outputs.pairBy(now, null)))
        out.emit(RowKind.Delete, hash, old, null)
      out.emit(RowKind.UpdateAfter, hash, now, null)
    }
  }

  private def looksAlike(old: Array[Byte], now: Array[Byte]): Boolean =
    Arrays.equals(old, now) ||
      outputs.shown != null && Arrays.equals(outputs.shown(old, null), outputs.shown(now, null))

  private def accepted(row: Array[Byte]): Array[Byte] =
    if (row != null && outputs.accepts(row, null)) row else null
}

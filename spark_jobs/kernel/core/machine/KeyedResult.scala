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
    * @param number
    *   the packed columns behind those of both rows, or null
    * @param repeats
    *   whether an unchanged row leaves again, to keep state with a TTL downstream alive
    */
  def emit(
      before: Array[Byte],
      after: Array[Byte],
      repeats: Boolean,
      hash: Int,
      out: Output,
      number: Array[Byte] = null): Unit = {
    val old = accepted(before, number)
    val now = accepted(after, number)
    if (old == null) {
      if (now != null) out.emit(inserts, hash, now, number)
    } else if (now == null) out.emit(RowKind.Delete, hash, old, number)
    else if (repeats || !looksAlike(old, now, number)) {
      if (outputs.pairBy == null) out.emit(RowKind.UpdateBefore, hash, old, number)
      else if (!Arrays.equals(outputs.pairBy(old, number), outputs.pairBy(now, number)))
        out.emit(RowKind.Delete, hash, old, number)
      out.emit(RowKind.UpdateAfter, hash, now, number)
    }
  }

  private def looksAlike(old: Array[Byte], now: Array[Byte], number: Array[Byte]): Boolean =
    Arrays.equals(old, now) ||
      outputs.shown != null && Arrays.equals(outputs.shown(old, number), outputs.shown(now, number))

  private def accepted(row: Array[Byte], number: Array[Byte]): Array[Byte] =
    if (row != null && outputs.accepts(row, number)) row else null
}

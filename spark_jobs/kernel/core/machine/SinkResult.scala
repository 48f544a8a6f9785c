package rejoin.core.machine

import java.util.Arrays

import rejoin.core.row.{Output, RowKind}

/** What leaves an operator whose sink holds one row per key: at most one +I, +U or -D per key and batch. */
final class SinkResult(outputs: OutputFunctions) {

  /** Emits the step from one row to another, null being none.
    *
    * @param deleted
    *   the row that a deletion carries
    * @param repeats
    *   whether an unchanged row leaves again
    */
  def emit(
      before: Array[Byte],
      after: Array[Byte],
      deleted: Array[Byte],
      repeats: Boolean,
      hash: Int,
      out: Output): Unit = {
    def leave(kind: Byte, row: Array[Byte]): Unit = if (outputs.accepts(row, null)) out.emit(kind, hash, row, null)
    if (before == null) {
      if (after != null) leave(RowKind.Insert, after)
    } else if (after == null) leave(RowKind.Delete, deleted)
    else if (repeats || !Arrays.equals(before, after)) leave(RowKind.UpdateAfter, after)
  }
}

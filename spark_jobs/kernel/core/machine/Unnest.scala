package rejoin.core.machine

import rejoin.core.row.{Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output}
import rejoin.core.state.KeyedState
import rejoin.core.time.GroupState

/** Each row with each of its elements; a retraction has the elements of its row. Nothing is stored.
  *
  * The changes of one key and batch are netted: an element that was there before and after an update is no change.
  *
  * @param elements
  *   the packed columns of each element of a packed row
  * @param residual
  *   whether a row and an element pass the condition; true where there is none
  */
final class Unnest(
    unnest: UnnestSpec,
    elements: Array[Byte] => Iterator[Array[Byte]],
    residual: (Array[Byte], Array[Byte]) => Boolean,
    outputs: OutputFunctions)
    extends Machine {
  private val changes = outputs.changes()

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit =
    batch.foreachKey(visit(_, out))

  private def visit(rows: KeyRows, out: Output): Unit = {
    rows.foreach(spread)
    changes.flush(GroupBatch.hash(rows.key), out)
  }

  private def spread(row: Envelope): Unit = {
    val found = elements(row.row).filter(residual(row.row, _))
    if (found.nonEmpty) found.foreach(changes.add(row.kind, row.row, _))
    else if (unnest.isOuter) changes.add(row.kind, row.row, null)
  }

  def keyTag: Char = 'E'

  def look(key: Array[Byte], state: KeyedState): KeyContents = new KeyContents(Seq(0L), hasTimes = false) {
    def foreach(visit: KeptRow => Unit): Unit = ()
  }
}

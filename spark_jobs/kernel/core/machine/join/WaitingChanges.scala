package rejoin.core.machine.join

import java.util

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Bytes, RowKind}

/** Changes of probe rows that have all waited for the same moment, in arrival order: a retraction and the row that
  * it takes back leave together, as neither has been seen.
  *
  * @param idOf
  *   the identity of a row
  */
final class WaitingChanges(idOf: Array[Byte] => Array[Byte]) {
  private val changes = new ArrayBuffer[(Byte, Array[Byte])]
  private val open = new util.HashMap[Bytes, util.ArrayDeque[Integer]]

  def add(kind: Byte, row: Array[Byte]): Unit = {
    val added = open.computeIfAbsent(Bytes(idOf(row)), _ => new util.ArrayDeque[Integer])
    if (RowKind.isAdd(kind)) {
      added.addLast(changes.size)
      changes += ((kind, row))
    } else if (added.isEmpty) changes += ((kind, row))
    else changes(added.pollLast) = null
  }

  /** Visits what is left. */
  def foreach(visit: (Byte, Array[Byte]) => Unit): Unit =
    changes.foreach(change => if (change != null) visit(change._1, change._2))
}

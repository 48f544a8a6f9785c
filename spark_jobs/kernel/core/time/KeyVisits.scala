package rejoin.core.time

import scala.collection.mutable

import rejoin.core.row.{Bytes, GroupBatch, KeyRows}

/** The keys of a group that one batch visits, each of them once: those with rows, then those that are due.
  *
  * A machine first takes the keys whose time has come out of the indices that it uses. A due key without rows in
  * the batch is visited with an empty list of rows.
  */
final class KeyVisits {
  private val due = mutable.LinkedHashSet.empty[Bytes]

  /** Takes in keys whose time has come; a key may come more than once. */
  def add(keys: Iterator[Array[Byte]]): Unit = keys.foreach(key => due += Bytes(key))

  def foreach(batch: GroupBatch)(visit: KeyRows => Unit): Unit = {
    batch.foreachKey { rows =>
      if (due.nonEmpty) due.remove(Bytes(rows.key))
      visit(rows)
    }
    val noRows = new KeyRows
    due.foreach(key => visit(noRows.start(key.bytes)))
  }
}

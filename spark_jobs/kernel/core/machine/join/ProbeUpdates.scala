package rejoin.core.machine.join

import java.util

import scala.collection.mutable

import rejoin.core.row.Bytes

/** The updates of probe rows under one join key in one batch, whose old halves came before the new ones. */
final class ProbeUpdates {
  private val halves = new util.HashMap[Bytes, util.ArrayDeque[Array[Byte]]]
  private val versions = new mutable.LongMap[Array[Byte]]
  private val added = new util.HashMap[Bytes, util.ArrayDeque[java.lang.Long]]
  private val cancelled = mutable.HashSet.empty[Long]

  def clear(): Unit = {
    if (!halves.isEmpty) halves.clear()
    if (versions.nonEmpty) versions.clear()
    if (!added.isEmpty) added.clear()
    if (cancelled.nonEmpty) cancelled.clear()
  }

  /** Notes what became of an old half: what it had met, or [[ProbeUpdates.Dropped]]. */
  def add(update: Bytes, met: Array[Byte]): Unit =
    halves.computeIfAbsent(update, _ => new util.ArrayDeque[Array[Byte]]).addLast(met)

  /** The same for the new half to find, or null where there is no old one. */
  def take(update: Bytes): Array[Byte] = {
    val found = halves.get(update)
    if (found == null) null else found.pollFirst()
  }

  /** Notes a row that leaves in this batch, by its identity and arrival number. */
  def leaves(id: Bytes, order: Long): Unit =
    added.computeIfAbsent(id, _ => new util.ArrayDeque[java.lang.Long]).addLast(order)

  /** Takes such a row back before it has left; gives its arrival number, or [[ProbeUpdates.None]]. */
  def cancel(id: Bytes): Long = {
    val found = added.get(id)
    if (found == null || found.isEmpty) ProbeUpdates.None
    else {
      val order = found.pollLast().longValue
      cancelled += order
      order
    }
  }

  def isCancelled(order: Long): Boolean = cancelled.nonEmpty && cancelled(order)

  /** Says what the row with this arrival number meets. */
  def fix(order: Long, met: Array[Byte]): Unit = versions(order) = met

  /** The same, or null where the row has to look for a version. */
  def fixed(order: Long): Array[Byte] = versions.getOrNull(order)
}

object ProbeUpdates {
  final val None = -1L

  /** The old half was not known, and late. */
  val Dropped = new Array[Byte](0)
}

package rejoin.core.machine.join

import java.util

import scala.collection.mutable

import rejoin.core.row.Bytes

/** The updates of probe rows under one join key in one batch, whose old halves came before the new ones. */
final class ProbeUpdates {
  private val halves = new util.HashMap[Bytes, util.ArrayDeque[Array[Byte]]]
  private val versions = new mutable.LongMap[Array[Byte]]

  def clear(): Unit = {
    if (!halves.isEmpty) halves.clear()
    if (versions.nonEmpty) versions.clear()
  }

  /** Notes what became of an old half: what it had met, or [[ProbeUpdates.Dropped]]. */
  def add(update: Bytes, met: Array[Byte]): Unit =
    halves.computeIfAbsent(update, _ => new util.ArrayDeque[Array[Byte]]).addLast(met)

  /** The same for the new half to find, or null where there is no old one. */
  def take(update: Bytes): Array[Byte] = {
    val found = halves.get(update)
    if (found == null) null else found.pollFirst()
  }

  /** Says what the row with this arrival number meets. */
  def fix(order: Long, met: Array[Byte]): Unit = versions(order) = met

  /** The same, or null where the row has to look for a version. */
  def fixed(order: Long): Array[Byte] = versions.getOrNull(order)
}

object ProbeUpdates {

  /** The old half was not known, and late. */
  val Dropped = new Array[Byte](0)
}

package rejoin.core.results

import rejoin.core.row.Output
import scala.collection.mutable.ArrayBuffer

/** Nets the changes of one key and batch that wait in a file, in parts that fit into memory.
  *
  * Retractions leave as they are found, additions wait in files until all retractions are out. Where a part cannot be
  * split, as all its changes have to do with one row or key of the sink, it is netted in memory, however large.
  *
  * @param netting
  *   empty, and empty again afterwards
  * @param partOf
  *   the same number for all changes that may cancel out or be paired, and another one at each level of splitting
  */
private[results] final class FiledChanges(
    netting: NettedChanges,
    overflow: Overflow,
    partOf: (Array[Byte], Array[Byte], Int) => Int,
    hash: Int,
    out: Output) {
  import FiledChanges._

  private val additions = new ArrayBuffer[ChangeFile]
  private var netted: ChangeFile = _ // additions of the parts that were netted in memory

  def flush(file: ChangeFile): Unit = {
    net(file, level = 0)
    if (netted != null) additions += netted
    additions.foreach { file =>
      file.foreach(emit(_, _, _, _))
      file.delete()
    }
  }

  private def net(file: ChangeFile, level: Int): Unit =
    if (!file.hasRetractions) additions += file
    else if (!file.hasAdditions) retract(file)
    else if (file.bytes <= overflow.maxBytes) netInMemory(file)
    else {
      val parts = file.split(Parts)((left, right) => Math.floorMod(partOf(left, right, level), Parts))
      if (parts.size == 1) netInMemory(parts.head) else parts.foreach(net(_, level + 1))
    }

  private def retract(file: ChangeFile): Unit = {
    file.foreach((kind, left, right, copies) => emit(netting.retractionKind(kind), left, right, copies))
    file.delete()
  }

  private def netInMemory(file: ChangeFile): Unit = {
    file.foreach(netting.add(_, _, _, _))
    file.delete()
    netting.net()
    netting.emit(adds = false, hash, out)
    if (netted == null) netted = new ChangeFile(overflow)
    netting.moveAdditions(netted)
  }

  private def emit(kind: Byte, left: Array[Byte], right: Array[Byte], copies: Long): Unit = {
    var n = copies
    while (n > 0) {
      out.emit(kind, hash, left, right)
      n -= 1
    }
  }
}

private object FiledChanges {
  private final val Parts = 64
}

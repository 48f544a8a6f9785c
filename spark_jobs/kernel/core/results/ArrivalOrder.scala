package rejoin.core.results

import java.nio.ByteBuffer
import java.util

import rejoin.core.row.{Output, RowKind}

/** The result changes of one key in one batch where arrival order counts and nothing cancels out.
  *
  * Into an upsert sink (`pairBy` set) only the last change of each sink key leaves. Where the sink keys do not fit into
  * memory, changes wait in a file that is split by sink key.
  */
final class ArrivalOrder(
    accepts: (Array[Byte], Array[Byte]) => Boolean,
    pairBy: (Array[Byte], Array[Byte]) => Array[Byte],
    overflow: Overflow) {
  import ArrivalOrder._

  private val lastOfKey = new util.LinkedHashMap[ByteBuffer, Change]
  private var bytes = 0L
  private var file: ChangeFile = _

  def emit(kind: Byte, hash: Int, left: Array[Byte], right: Array[Byte], out: Output): Unit =
    if (accepts(left, right)) {
      if (pairBy == null) out.emit(kind, hash, left, right)
      else {
        keep(kind, left, right)
        if (bytes > overflow.maxBytes) spill()
      }
    }

  private def keep(kind: Byte, left: Array[Byte], right: Array[Byte]): Unit = {
    val key = pairBy(left, right)
    if (lastOfKey.put(ByteBuffer.wrap(key), new Change(kind, left, right)) == null)
      bytes += KeyBytes + key.length + ChangeFile.bytesOf(left, right)
  }

  private def spill(): Unit = {
    if (file == null) file = new ChangeFile(overflow)
    lastOfKey.values.forEach(last => file.add(last.kind, last.left, last.right, copies = 1))
    clear()
  }

  def flush(hash: Int, out: Output): Unit = {
    if (file == null) emitLast(hash, out)
    else {
      spill()
      flush(file, level = 0, hash, out)
      file = null
    }
  }

  private def flush(file: ChangeFile, level: Int, hash: Int, out: Output): Unit = {
    def partOf(left: Array[Byte], right: Array[Byte]) =
      Math.floorMod(Changes.hash(pairBy(left, right), level), Parts)
    val parts = if (file.bytes <= overflow.maxBytes) Seq(file) else file.split(Parts)(partOf)
    if (parts.size > 1) parts.foreach(flush(_, level + 1, hash, out))
    else {
      parts.head.foreach((kind, left, right, _) => keep(kind, left, right))
      parts.head.delete()
      emitLast(hash, out)
    }
  }

  private def emitLast(hash: Int, out: Output): Unit =
    if (!lastOfKey.isEmpty) {
      lastOfKey.values.forEach { last =>
        out.emit(if (RowKind.isAdd(last.kind)) last.kind else RowKind.Delete, hash, last.left, last.right)
      }
      clear()
    }

  private def clear(): Unit = {
    lastOfKey.clear()
    bytes = 0L
  }
}

private object ArrivalOrder {
  private final val Parts = 64

  /** About what a sink key takes in memory besides its columns. */
  private final val KeyBytes = 160L

  private final class Change(val kind: Byte, val left: Array[Byte], val right: Array[Byte])
}

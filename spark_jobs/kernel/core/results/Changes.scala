package rejoin.core.results

import java.nio.ByteBuffer
import java.util

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

import rejoin.core.row.{Output, RowKind}

/** The result changes of one join key in one batch, netted.
  *
  * The retraction contract: per result row and batch at most one -U/-D and one +I/+U; changes that
  * cancel out, for a reader of the SELECT list, are not emitted; retractions leave before additions.
  * With `updateBefore` off (upsert sinks), a retraction whose `pairBy` value is added again in the
  * batch is dropped and any other leaves as -D.
  *
  * Changes that do not fit into memory wait in a file. It is split into smaller ones by what changes are compared by,
  * until all changes that have to do with each other fit, and each of them is netted as if it were the only one.
  *
  * @param accepts
  *   the WHERE clause over the joined row
  * @param pairBy
  *   the sink's key of a joined row, or null where retractions are always emitted; rows that are shown alike have the
  *   same
  * @param shown
  *   what the SELECT list makes of a joined row, or null where rows differ if and only if their bytes do
  */
final class Changes(
    accepts: (Array[Byte], Array[Byte]) => Boolean,
    pairBy: (Array[Byte], Array[Byte]) => Array[Byte],
    shown: (Array[Byte], Array[Byte]) => Array[Byte],
    overflow: Overflow) {
  private val netting = new NettedChanges(pairBy, shown)
  private var bytes = 0L
  private var file: ChangeFile = _

  /** Adds one change for each of `times` equal rows. */
  def add(kind: Byte, left: Array[Byte], right: Array[Byte], times: Long = 1L): Unit =
    if (accepts(left, right)) {
      netting.add(kind, left, right, times)
      bytes += ChangeFile.bytesOf(left, right)
      if (bytes > overflow.maxBytes) spill()
    }

  private def spill(): Unit = {
    if (file == null) file = new ChangeFile(overflow)
    netting.moveAll(file)
    bytes = 0L
  }

  /** Emits what is left after netting and forgets it. */
  def flush(hash: Int, out: Output): Unit = {
    if (file == null) {
      netting.net()
      netting.emit(adds = false, hash, out)
      netting.emit(adds = true, hash, out)
      netting.clear()
    } else {
      spill()
      new FiledChanges(netting, overflow, partOf, hash, out).flush(file)
      file = null
    }
    bytes = 0L
  }

  /** The same for all changes that may cancel out or be paired, and another one at each level of splitting. */
  private def partOf(left: Array[Byte], right: Array[Byte], level: Int): Int =
    if (pairBy != null) Changes.hash(pairBy(left, right), level)
    else if (shown != null) Changes.hash(shown(left, right), level)
    else Changes.hash(left, level) * 31 + Changes.hash(right, level)
}

private[results] object Changes {
  def hash(bytes: Array[Byte], level: Int): Int =
    if (bytes == null) level
    else Murmur3_x86_32.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length, level)
}

/** Changes in memory. To be netted, emitted by sign and cleared. */
private[results] final class NettedChanges(
    pairBy: (Array[Byte], Array[Byte]) => Array[Byte],
    shown: (Array[Byte], Array[Byte]) => Array[Byte]) {
  import NettedChanges._

  private var kinds = new Array[Byte](16)
  private var lefts = new Array[Array[Byte]](16)
  private var rights = new Array[Array[Byte]](16)
  private var copies = new Array[Long](16) // none where the change has cancelled out
  private var count = 0
  private var shownRows: Array[Array[Byte]] = _ // what changes are compared by, while it is set

  def add(kind: Byte, left: Array[Byte], right: Array[Byte], times: Long): Unit = {
    if (count == kinds.length) enlarge()
    kinds(count) = kind
    lefts(count) = left
    rights(count) = right
    copies(count) = times
    count += 1
  }

  def net(): Unit = {
    if (hasBothSigns) cancel()
    if (shown != null && hasBothSigns) cancelShown()
    if (pairBy != null) pair()
  }

  def emit(adds: Boolean, hash: Int, out: Output): Unit = {
    var i = 0
    while (i < count) {
      var n = copies(i)
      if (n > 0 && RowKind.isAdd(kinds(i)) == adds)
        while (n > 0) {
          out.emit(kinds(i), hash, lefts(i), rights(i))
          n -= 1
        }
      i += 1
    }
  }

  /** Moves the additions to a file; what is retracted is forgotten. */
  def moveAdditions(file: ChangeFile): Unit = move(file, RowKind.isAdd(_))

  /** Moves all changes to a file. */
  def moveAll(file: ChangeFile): Unit = move(file, _ => true)

  private def move(file: ChangeFile, isMoved: Byte => Boolean): Unit = {
    var i = 0
    while (i < count) {
      if (copies(i) > 0 && isMoved(kinds(i))) file.add(kinds(i), lefts(i), rights(i), copies(i))
      i += 1
    }
    clear()
  }

  /** Where no row is added: what becomes of a retraction without netting. */
  def retractionKind(kind: Byte): Byte = if (pairBy == null) kind else RowKind.Delete

  def clear(): Unit = {
    util.Arrays.fill(lefts.asInstanceOf[Array[AnyRef]], 0, count, null)
    util.Arrays.fill(rights.asInstanceOf[Array[AnyRef]], 0, count, null)
    count = 0
  }

  private def hasBothSigns: Boolean = {
    var first = 0
    while (first < count && copies(first) == 0) first += 1
    var i = first + 1
    while (i < count && (copies(i) == 0 || RowKind.isAdd(kinds(i)) == RowKind.isAdd(kinds(first)))) i += 1
    i < count
  }

  /** Strikes out each change that a later one of the same row and the opposite sign undoes. */
  private def cancel(): Unit =
    if (count <= PairwiseLimit) cancelPairwise() else cancelByHash()

  private def cancelShown(): Unit = {
    shownRows = new Array[Array[Byte]](count)
    var i = 0
    while (i < count) {
      if (copies(i) > 0) shownRows(i) = shown(lefts(i), rights(i))
      i += 1
    }
    cancel()
    shownRows = null
  }

  private def cancelPairwise(): Unit = {
    var i = 1
    while (i < count) {
      var j = i - 1
      while (j >= 0 && copies(i) > 0) {
        if (undoes(i, j)) strike(i, j)
        j -= 1
      }
      i += 1
    }
  }

  private def undoes(i: Int, j: Int): Boolean =
    copies(j) > 0 && RowKind.isAdd(kinds(i)) != RowKind.isAdd(kinds(j)) && (
      if (shownRows != null) util.Arrays.equals(shownRows(i), shownRows(j))
      else same(lefts(i), lefts(j)) && same(rights(i), rights(j)))

  private def identity(i: Int): AnyRef =
    if (shownRows != null) ByteBuffer.wrap(shownRows(i)) else (wrap(lefts(i)), wrap(rights(i)))

  private def cancelByHash(): Unit = {
    val open = new util.HashMap[AnyRef, util.ArrayDeque[Integer]]
    var i = 0
    while (i < count) {
      if (copies(i) > 0) {
        val pending = open.computeIfAbsent(identity(i), _ => new util.ArrayDeque[Integer])
        while (copies(i) > 0 && !pending.isEmpty && RowKind.isAdd(kinds(pending.peekLast)) != RowKind.isAdd(kinds(i))) {
          val last = pending.peekLast
          strike(i, last)
          if (copies(last) == 0) pending.removeLast()
        }
        if (copies(i) > 0) pending.addLast(i)
      }
      i += 1
    }
  }

  private def strike(i: Int, j: Int): Unit = {
    val undone = math.min(copies(i), copies(j))
    copies(i) -= undone
    copies(j) -= undone
  }

  /** Retractions whose sink key is added again go, others become -D. */
  private def pair(): Unit = {
    var i = 0
    var added: util.HashSet[ByteBuffer] = null
    while (i < count) {
      if (copies(i) > 0 && !RowKind.isAdd(kinds(i))) {
        if (added == null) added = addedKeys()
        if (!added.isEmpty && added.contains(ByteBuffer.wrap(pairBy(lefts(i), rights(i))))) copies(i) = 0
        else kinds(i) = RowKind.Delete
      }
      i += 1
    }
  }

  private def addedKeys(): util.HashSet[ByteBuffer] = {
    val keys = new util.HashSet[ByteBuffer]
    var i = 0
    while (i < count) {
      if (copies(i) > 0 && RowKind.isAdd(kinds(i))) keys.add(ByteBuffer.wrap(pairBy(lefts(i), rights(i))))
      i += 1
    }
    keys
  }

  private def enlarge(): Unit = {
    kinds = util.Arrays.copyOf(kinds, count * 2)
    lefts = util.Arrays.copyOf(lefts, count * 2)
    rights = util.Arrays.copyOf(rights, count * 2)
    copies = util.Arrays.copyOf(copies, count * 2)
  }
}

private object NettedChanges {
  private val PairwiseLimit = 16

  private def same(a: Array[Byte], b: Array[Byte]): Boolean =
    (a eq b) || (a != null && b != null && util.Arrays.equals(a, b))
  private def wrap(bytes: Array[Byte]): ByteBuffer = if (bytes == null) null else ByteBuffer.wrap(bytes)
}

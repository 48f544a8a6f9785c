package rejoin.core.row

import java.nio.ByteBuffer
import java.util

/** Receives the rows of a state machine, ready for the SELECT list. */
trait Output {
  def emit(kind: Byte, hash: Int, left: Array[Byte], right: Array[Byte]): Unit
}

/** The result changes of one join key in one batch, netted.
  *
  * The retraction contract: per result row and batch at most one -U/-D and one +I/+U; changes that
  * cancel out, for a reader of the SELECT list, are not emitted; retractions leave before additions.
  * With `updateBefore` off (upsert sinks), a retraction whose `pairBy` value is added again in the
  * batch is dropped and any other leaves as -D.
  *
  * @param accepts
  *   the WHERE clause over the joined row
  * @param pairBy
  *   the sink's key of a joined row, or null where retractions are always emitted
  * @param shown
  *   what the SELECT list makes of a joined row, or null where rows differ if and only if their bytes do
  */
final class Changes(
    accepts: (Array[Byte], Array[Byte]) => Boolean,
    pairBy: (Array[Byte], Array[Byte]) => Array[Byte],
    shown: (Array[Byte], Array[Byte]) => Array[Byte]) {
  private var kinds = new Array[Byte](16)
  private var lefts = new Array[Array[Byte]](16)
  private var rights = new Array[Array[Byte]](16)
  private var count = 0
  private var shownRows: Array[Array[Byte]] = _ // what changes are compared by, while it is set

  /** Adds one change for each of `times` equal rows. */
  def add(kind: Byte, left: Array[Byte], right: Array[Byte], times: Long = 1L): Unit =
    if (accepts(left, right)) {
      var n = times
      while (n > 0) {
        if (count == kinds.length) enlarge()
        kinds(count) = kind
        lefts(count) = left
        rights(count) = right
        count += 1
        n -= 1
      }
    }

  /** Emits what is left after netting and forgets it. */
  def flush(hash: Int, out: Output): Unit = {
    if (hasBothSigns) cancel()
    if (shown != null && hasBothSigns) cancelShown()
    if (pairBy != null) pair()
    emitAll(hash, adds = false, out)
    emitAll(hash, adds = true, out)
    util.Arrays.fill(lefts.asInstanceOf[Array[AnyRef]], 0, count, null)
    util.Arrays.fill(rights.asInstanceOf[Array[AnyRef]], 0, count, null)
    count = 0
  }

  private def hasBothSigns: Boolean = {
    var first = 0
    while (first < count && kinds(first) == Changes.Gone) first += 1
    var i = first + 1
    while (i < count && (kinds(i) == Changes.Gone || RowKind.isAdd(kinds(i)) == RowKind.isAdd(kinds(first)))) i += 1
    i < count
  }

  private def emitAll(hash: Int, adds: Boolean, out: Output): Unit = {
    var i = 0
    while (i < count) {
      val kind = kinds(i)
      if (kind != Changes.Gone && RowKind.isAdd(kind) == adds) out.emit(kind, hash, lefts(i), rights(i))
      i += 1
    }
  }

  /** Strikes out each change that a later one of the same row and the opposite sign undoes. */
  private def cancel(): Unit =
    if (count <= Changes.PairwiseLimit) cancelPairwise() else cancelByHash()

  private def cancelShown(): Unit = {
    shownRows = new Array[Array[Byte]](count)
    var i = 0
    while (i < count) {
      if (kinds(i) != Changes.Gone) shownRows(i) = shown(lefts(i), rights(i))
      i += 1
    }
    cancel()
    shownRows = null
  }

  private def cancelPairwise(): Unit = {
    var i = 1
    while (i < count) {
      var j = if (kinds(i) == Changes.Gone) -1 else i - 1
      while (j >= 0 && !undoes(i, j)) j -= 1
      if (j >= 0) strike(i, j)
      i += 1
    }
  }

  private def undoes(i: Int, j: Int): Boolean =
    kinds(j) != Changes.Gone && RowKind.isAdd(kinds(i)) != RowKind.isAdd(kinds(j)) && (
      if (shownRows != null) util.Arrays.equals(shownRows(i), shownRows(j))
      else Changes.same(lefts(i), lefts(j)) && Changes.same(rights(i), rights(j)))

  private def identity(i: Int): AnyRef =
    if (shownRows != null) ByteBuffer.wrap(shownRows(i)) else (Changes.wrap(lefts(i)), Changes.wrap(rights(i)))

  private def cancelByHash(): Unit = {
    val open = new util.HashMap[AnyRef, util.ArrayDeque[Integer]]
    var i = 0
    while (i < count) {
      if (kinds(i) != Changes.Gone) {
        val pending = open.computeIfAbsent(identity(i), _ => new util.ArrayDeque[Integer])
        if (!pending.isEmpty && RowKind.isAdd(kinds(pending.peekLast)) != RowKind.isAdd(kinds(i)))
          strike(i, pending.pollLast)
        else pending.addLast(i)
      }
      i += 1
    }
  }

  private def strike(i: Int, j: Int): Unit = {
    kinds(i) = Changes.Gone
    kinds(j) = Changes.Gone
  }

  /** Retractions whose sink key is added again go, others become -D. */
  private def pair(): Unit = {
    var i = 0
    var added: util.HashSet[ByteBuffer] = null
    while (i < count) {
      if (kinds(i) != Changes.Gone && !RowKind.isAdd(kinds(i))) {
        if (added == null) added = addedKeys()
        val replaced = !added.isEmpty && added.contains(ByteBuffer.wrap(pairBy(lefts(i), rights(i))))
        kinds(i) = if (replaced) Changes.Gone else RowKind.Delete
      }
      i += 1
    }
  }

  private def addedKeys(): util.HashSet[ByteBuffer] = {
    val keys = new util.HashSet[ByteBuffer]
    var i = 0
    while (i < count) {
      if (kinds(i) != Changes.Gone && RowKind.isAdd(kinds(i))) keys.add(ByteBuffer.wrap(pairBy(lefts(i), rights(i))))
      i += 1
    }
    keys
  }

  private def enlarge(): Unit = {
    kinds = util.Arrays.copyOf(kinds, count * 2)
    lefts = util.Arrays.copyOf(lefts, count * 2)
    rights = util.Arrays.copyOf(rights, count * 2)
  }
}

/** The result changes of one key in one batch where arrival order counts and nothing cancels out.
  *
  * Into an upsert sink (`pairBy` set) only the last change of each sink key leaves.
  */
final class ArrivalOrder(
    accepts: (Array[Byte], Array[Byte]) => Boolean,
    pairBy: (Array[Byte], Array[Byte]) => Array[Byte]) {
  private val lastOfKey = new util.LinkedHashMap[ByteBuffer, (Byte, Array[Byte], Array[Byte])]

  def emit(kind: Byte, hash: Int, left: Array[Byte], right: Array[Byte], out: Output): Unit =
    if (accepts(left, right)) {
      if (pairBy == null) out.emit(kind, hash, left, right)
      else lastOfKey.put(ByteBuffer.wrap(pairBy(left, right)), (kind, left, right))
    }

  def flush(hash: Int, out: Output): Unit =
    if (!lastOfKey.isEmpty) {
      lastOfKey.values.forEach { case (kind, left, right) =>
        out.emit(if (RowKind.isAdd(kind)) kind else RowKind.Delete, hash, left, right)
      }
      lastOfKey.clear()
    }
}

object Changes {
  private val Gone: Byte = -1
  private val PairwiseLimit = 16

  private def same(a: Array[Byte], b: Array[Byte]): Boolean =
    (a eq b) || (a != null && b != null && util.Arrays.equals(a, b))
  private def wrap(bytes: Array[Byte]): ByteBuffer = if (bytes == null) null else ByteBuffer.wrap(bytes)
}

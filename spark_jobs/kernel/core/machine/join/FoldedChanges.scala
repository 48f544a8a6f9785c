package rejoin.core.machine.join

import java.util

import rejoin.core.row.{Bytes, KeyRows, RowKind}

/** The changes of one key in one batch, and which of them need not meet the other sides, because a later change of the
  * same row undoes them.
  *
  * Changes are of one row if they have the same side and id. Of upserts, the last one of a row says all. Of a
  * changelog, a row that is added and taken away again leaves nothing, unless it has overwritten one.
  */
final class FoldedChanges(sides: Array[JoinSide]) {
  import FoldedChanges._

  private var ids = new Array[Array[Byte]](8)
  private var next = new Array[Int](8)
  private var folded = new Array[Boolean](8)

  def read(rows: KeyRows): Unit = {
    if (rows.size > ids.length) enlarge(rows.size)
    var i = 0
    var isFolding = rows.size > 1
    while (i < rows.size) {
      ids(i) = if (rows(i).kind == RowKind.Partial) null else sides(rows(i).side.toInt).idOf(rows(i).row)
      isFolding &&= ids(i) != null
      next(i) = NoChange
      folded(i) = false
      i += 1
    }
    if (isFolding) if (rows.size <= PairwiseLimit) linkPairwise(rows) else linkByHash(rows)
  }

  /** What tells the row of a change apart from others of its side; null for a partial row, which is never folded. */
  def id(i: Int): Array[Byte] = ids(i)

  /** Whether a change has no effect. To be asked in order, before it is applied. */
  def skips(rows: KeyRows, i: Int): Boolean = {
    val later = next(i)
    if (!folded(i) && later != NoChange) {
      val input = sides(rows(i).side.toInt)
      if (input.isUpsert) folded(i) = true
      else if (RowKind.isAdd(rows(i).kind) && !RowKind.isAdd(rows(later).kind) && !overwrites(input, ids(i))) {
        folded(i) = true
        folded(later) = true
      }
    }
    folded(i)
  }

  private def overwrites(input: JoinSide, id: Array[Byte]): Boolean =
    input.hasUniqueKey && (input.isTrusted || input.stored.find(id) != null)

  private def linkPairwise(rows: KeyRows): Unit = {
    var i = 0
    while (i < rows.size - 1) {
      var later = i + 1
      while (later < rows.size && (rows(later).side != rows(i).side || !util.Arrays.equals(ids(later), ids(i))))
        later += 1
      if (later < rows.size) next(i) = later
      i += 1
    }
  }

  private def linkByHash(rows: KeyRows): Unit = {
    val following = new util.HashMap[(Byte, Bytes), Integer]
    var i = rows.size - 1
    while (i >= 0) {
      val later = following.put((rows(i).side, Bytes(ids(i))), i)
      if (later != null) next(i) = later
      i -= 1
    }
  }

  private def enlarge(size: Int): Unit = {
    ids = new Array[Array[Byte]](size * 2)
    next = new Array[Int](size * 2)
    folded = new Array[Boolean](size * 2)
  }
}

object FoldedChanges {
  private final val NoChange = -1
  private final val PairwiseLimit = 8
}

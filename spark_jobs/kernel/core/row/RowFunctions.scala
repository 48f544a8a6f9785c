package rejoin.core.row

import java.util

/** What a machine asks about the packed rows of one input, whose column types it does not know.
  *
  * One instance serves one task: it may reuse its row views.
  */
trait RowFunctions {

  /** The packed columns that tell rows apart: the input's unique key. */
  def uniqueKey(row: Array[Byte]): Array[Byte]

  /** A row of which only the unique key is known, for display. */
  def withKeyOnly(key: Array[Byte]): Array[Byte]

  /** A copy of `row` whose `missing` columns (ordinals) are those of `before`, the row of its key before it. */
  def heal(row: Array[Byte], missing: util.BitSet, before: Array[Byte]): Array[Byte]

  /** The partial row with its missing values taken from the row `before` it; what that one lacks too is NULL. */
  final def heal(partial: PartialRow, before: Array[Byte]): Array[Byte] = heal(partial.row, partial.missing, before)
}

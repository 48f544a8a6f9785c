package rejoin.core.machine.join

import rejoin.core.machine.SideSpec
import rejoin.core.row.RowFunctions
import rejoin.core.state.{SideRows, StoredRow}

/** One side of a join over changelogs: its facts and its stored rows under the current join key.
  *
  * @param isOuter
  *   its rows are padded where nothing matches
  * @param needsMatches
  *   what its rows' results are depends on how many rows they match
  * @param hasResidual
  *   whether rows under one key differ in how many rows they match
  * @param countsDiffer
  *   whether the other side's rows also vanish or are overwritten, so that it is not their number
  */
final class JoinSide(
    spec: SideSpec,
    val number: Int,
    val isOuter: Boolean,
    val needsMatches: Boolean,
    hasResidual: Boolean,
    countsDiffer: Boolean,
    val ttlMs: Long,
    val functions: RowFunctions,
    pageTag: Char) {

  /** The number stands in every row. */
  val countsMatches: Boolean = needsMatches && (hasResidual || countsDiffer)
  val hasUniqueKey: Boolean = spec.layout != SideSpec.NoUniqueKey
  val isUpsert: Boolean = spec.upsert
  val isTrusted: Boolean = spec.trusted && !spec.upsert
  private val format = (if (ttlMs > 0) 1 else 0) | (if (needsMatches && countsDiffer) 2 else 0)
  val stored = new SideRows(pageTag, number, countsMatches, idIsRow = !hasUniqueKey, ttlMs, format)

  /** What tells the row apart from others under the same join key. */
  val idOf: Array[Byte] => Array[Byte] = JoinSide.identity(spec, functions)

  def matchesOf(row: StoredRow, other: JoinSide): Long = if (countsMatches) row.matches else other.stored.rows

  def addMatches(row: StoredRow, by: Long): Unit = if (countsMatches) stored.changeMatches(row, by)

  /** A change of the other side counts as a write of every row that it meets (state TTL). */
  def refresh(): Unit = if (ttlMs > 0 && needsMatches && !countsMatches) stored.refresh()

  /** @param known
    *   the row's own copies, or the row of the same unique key that it overwrites
    */
  def store(id: Array[Byte], row: Array[Byte], known: StoredRow, matches: Long): Unit = {
    val kept = if (countsMatches) matches else 0L
    if (known != null && !hasUniqueKey) stored.changeCopies(known, 1, kept)
    else {
      forget(known)
      stored.insert(new StoredRow(id, row, 1, kept))
    }
  }

  /** Forgets one copy; a row that has expired is gone already. */
  def forget(row: StoredRow): Unit = if (row != null) stored.changeCopies(row, -1, row.matches)
}

object JoinSide {
  private val OnlyRow = new Array[Byte](0)

  /** What tells a row of a side apart from others under the same join key. */
  def identity(spec: SideSpec, functions: RowFunctions): Array[Byte] => Array[Byte] = spec.layout match {
    case SideSpec.JoinKeyContainsUniqueKey => _ => OnlyRow
    case SideSpec.HasUniqueKey => functions.uniqueKey(_)
    case SideSpec.NoUniqueKey => row => row
    case other => throw new IllegalArgumentException(s"unknown state layout '$other'")
  }

  /** A side of which no result depends on how many rows its own match. */
  def withoutMatches(spec: SideSpec, number: Int, ttlMs: Long, functions: RowFunctions, pageTag: Char): JoinSide =
    new JoinSide(
      spec,
      number,
      isOuter = false,
      needsMatches = false,
      hasResidual = false,
      countsDiffer = false,
      ttlMs,
      functions,
      pageTag)
}

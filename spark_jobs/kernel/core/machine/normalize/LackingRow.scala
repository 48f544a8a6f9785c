package rejoin.core.machine.normalize

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Envelope, Forgotten, KeyChange, KeyChangeNews, Lack, OldRow, Output, PartialRow, RowFunctions,
  RowKind, RowNews, SourcePosition, Unclaimed, Unhealed}
import rejoin.core.state.KeyedState
import rejoin.core.time.GroupState

/** A row whose key may have changed: it may lack values that are stored under its old key ([[Lack]]).
  *
  * As long as it lacks values, [[KeyChanges]] shows it; before and after, the normaliser does. What that machine
  * has to know leaves as [[KeyChangeNews]].
  */
private final class LackingRow(row: CompleteRow, cell: NormalizedCell, functions: RowFunctions)
    extends NormalizedRow {
  private val news = new ArrayBuffer[KeyChangeNews]
  private val unhealed = new ArrayBuffer[Unhealed]
  private var lackedBefore = false

  def open(key: Array[Byte], state: KeyedState): Unit = {
    row.open(key, state)
    lackedBefore = cell.lack != null
    unhealed.clear()
  }

  def apply(change: Envelope, group: GroupState): Boolean =
    if (change.kind > RowKind.Partial) applyMoved(change)
    else {
      val isApplied = row.apply(change, group)
      if (cell.lack != null) {
        if (!isApplied) complete(change)
        else if (change.kind == RowKind.Partial) keepLack(PartialRow.unpack(change.row))
        else endLack()
      }
      isApplied
    }

  /** Applies one of the two events of a key change: the row leaves its old key, or arrives under the new one. */
  private def applyMoved(change: Envelope): Boolean = {
    val partial = if (change.kind == RowKind.MovedPartial) PartialRow.unpack(change.row) else null
    val isApplied = row.isNew(change, if (partial == null) change.row else partial.row)
    if (isApplied) {
      val keyChange = KeyChange(row.at)
      if (change.kind == RowKind.MovedAway) leave(keyChange)
      else if (partial != null && cell.row == null) arrive(keyChange, partial)
      else {
        news += Unclaimed(keyChange)
        if (partial == null) replace(SourcePosition.rowOf(change.row))
        else {
          row.heal(partial)
          keepLack(partial)
        }
      }
      row.remember(change)
    } else if (cell.lack != null) complete(change)
    isApplied
  }

  /** The row leaves its key: what it lacks is now for its next key to claim. */
  private def leave(change: KeyChange): Unit = {
    news += OldRow(change, cell.row, cell.lack)
    forgetLack()
    row.set(null)
  }

  /** The row comes to a new key, and lacks values that the row under its old key has. */
  private def arrive(change: KeyChange, partial: PartialRow): Unit = {
    row.set(SourcePosition.rowOf(partial.row))
    await(new Lack(partial.missing, change), partial.unhealed)
  }

  /** After a partial row: what both it and the row before lack is still lacking. */
  private def keepLack(partial: PartialRow): Unit = {
    val left = if (cell.lack == null) null else cell.lack.within(partial.missing)
    if (left == null) endLack() else await(left, partial.unhealed)
  }

  /** Takes what the row lacks from an event that lacked it when it came first: a repaired dead letter. */
  private def complete(change: Envelope): Unit = {
    val hasValues = RowKind.isAdd(change.kind) || change.kind == RowKind.MovedHere
    if (hasValues && row.at.log >= cell.lack.change.log)
      replace(functions.heal(cell.row, cell.lack.missing, SourcePosition.rowOf(change.row)))
  }

  private def replace(complete: Array[Byte]): Unit = {
    endLack()
    row.set(complete)
  }

  /** The row lacks values, by this event too. */
  private def await(lack: Lack, event: Unhealed): Unit = {
    cell.lack = lack
    unhealed += event
  }

  /** The row is complete, or gone: what it lacked is not looked for any longer. */
  private def endLack(): Unit =
    if (cell.lack != null) {
      news += Unclaimed(cell.lack.change)
      forgetLack()
    }

  private def forgetLack(): Unit = {
    cell.lack = null
    unhealed.clear()
  }

  def truncate(truncation: SourcePosition): Unit = {
    row.truncate(truncation)
    if (cell.row == null) endLack()
  }

  def close(group: GroupState, state: KeyedState, out: Output): Unit =
    if (row.isChanged) {
      if (lackedBefore || cell.lack != null)
        news += RowNews(cell.key, if (lackedBefore) null else row.before, cell.row, cell.lack, unhealed.toSeq)
      else row.emit(out)
      row.save(group, state)
      sendNews(out)
    }

  def expire(key: Array[Byte], group: GroupState, state: KeyedState, out: Output): Boolean = {
    val isGone = row.expire(key, group, state, out)
    if (isGone && cell.lack != null) {
      news += Forgotten(key)
      endLack()
      sendNews(out)
    }
    isGone
  }

  private def sendNews(out: Output): Unit = {
    news.foreach(fact => out.emit(RowKind.News, 0, KeyChangeNews.pack(fact), null))
    news.clear()
  }
}

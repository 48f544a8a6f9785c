package rejoin.core.machine

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{Forgotten, KeyChange, KeyChangeNews, Lack, Needless, OldRow, Output, RowKind, RowNews,
  Unhealed}

/** What a normaliser has to tell [[KeyChanges]] of the key that it is visiting.
  *
  * A row that lacks values is that machine's to show; before and after, it is the normaliser's.
  */
private[rejoin] final class MovingRow(cell: NormalizedCell) {
  private val news = new ArrayBuffer[KeyChangeNews]
  private val unhealed = new ArrayBuffer[Unhealed]
  private var lackedBefore = false

  def start(): Unit = {
    lackedBefore = cell.lack != null
    unhealed.clear()
  }

  /** Whether the step that this batch makes of the key is the other machine's to show. */
  def isElsewhere: Boolean = lackedBefore || cell.lack != null

  /** The row leaves the key: what it lacks is now for its next key to claim. */
  def leave(change: KeyChange): Unit = {
    news += OldRow(change, cell.row, cell.lack)
    forgetLack()
  }

  def needless(change: KeyChange): Unit = news += Needless(change)

  /** The row is to be complete, or gone: what it lacked nobody has to know any longer. */
  def settle(): Unit = if (cell.lack != null) {
    needless(cell.lack.change)
    forgetLack()
  }

  /** The row lacks values, by this event too. */
  def await(lack: Lack, event: Unhealed): Unit = {
    cell.lack = lack
    unhealed += event
  }

  private def forgetLack(): Unit = {
    cell.lack = null
    unhealed.clear()
  }

  /** `before` is the row as it was stored. */
  def tell(before: Array[Byte]): Unit =
    news += RowNews(cell.key, if (lackedBefore) null else before, cell.row, cell.lack, unhealed.toSeq)

  /** The row that is in the cell has expired. */
  def expire(): Unit = if (cell.lack != null) {
    news += Forgotten(cell.key)
    settle()
  }

  def flush(out: Output): Unit = {
    news.foreach(fact => out.emit(RowKind.News, 0, KeyChangeNews.pack(fact), null))
    news.clear()
  }
}

package rejoin.core.machine.normalize

import scala.collection.mutable

import rejoin.core.machine.{KeyChangesSpec, KeyedResult, Machine, OutputFunctions}
import rejoin.core.row.{Bytes, Forgotten, GroupBatch, KeptRow, KeyChange, KeyChangeNews, KeyContents, Lack, Mark,
  OldRow, Output, RowFunctions, RowKind, RowNews, Unclaimed, Unhealed}
import rejoin.core.state.KeyedState
import rejoin.core.time.{DueIndex, GroupState}

/** Follows a normaliser: fills in what a row lacks since its primary key changed, from the row under the old key.
  *
  * An event that changes a primary key may leave values out, which are stored under the old key, in another
  * key group. So the old row and the new one meet here, by the key change that they share, whichever comes
  * first. As long as the new row lacks values, this machine shows it. A row may change its key again before its
  * old row has come: then an earlier change has what it lacks, so all changes are kept in one key group. Rows
  * of all other keys pass through.
  *
  * A half of a change waits for the other one for `waitMs` of the clock's time, or until every input has ended.
  * After that, the events of a row that still lacks values become dead-letter records.
  */
final class KeyChanges(spec: KeyChangesSpec, functions: RowFunctions, outputs: OutputFunctions) extends Machine {
  private val result = new KeyedResult(outputs)
  private val repeats = spec.timing.ttlMs.head > 0

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    batch.foreachKey { rows =>
      val hash = GroupBatch.hash(rows.key)
      rows.foreach(row => out.emit(row.kind, hash, row.row, null))
    }
    val overdue = group.expiries.take(DueIndex.slotOf(group.nowOrZero), state).map(Bytes(_)).toSet
    val hasEnded = batch.marks.exists(_.kind == RowKind.End)
    if (batch.news.nonEmpty || overdue.nonEmpty || hasEnded) {
      val moves = new MoveBatch(spec.waitMs, functions, group, state)
      batch.news.foreach(news => moves.take(KeyChangeNews.unpack(news.row)))
      moves.settle()
      if (hasEnded) moves.giveUpAll() else moves.giveUp(overdue.toSeq.map(found => KeyChange.of(found.bytes)))
      moves.rows.foreach(row => show(row, group, out))
      moves.save()
    }
    batch.marks.foreach { mark =>
      if (mark.group == 0 && mark.kind == RowKind.Watermark)
        Mark.emit(mark.kind, mark.source, mark.time, out)
    }
  }

  def keyTag: Char = MovedRow.Tag

  override def groupOf(key: Array[Byte], groups: Int): Int = KeyChanges.Group

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    val found = new MovedRow(key, state)
    KeyContents(Option.when(found.isStored)(KeptRow(0, found.row, facts = Seq("lacks values" -> true))))
  }

  private def show(row: MovedRow, group: GroupState, out: Output): Unit = {
    if (row.valuesAreLost) {
      group.unhealed ++= row.unhealed
      row.unhealed = Nil
    } else if (row.healed != null) row.unhealed = Nil
    result.emit(row.before, row.healed, repeats && row.isReported, GroupBatch.hash(row.key), out)
  }
}

private object KeyChanges {

  /** The key group of all changes: that of the hash with which news are sent. */
  final val Group = 0
}

/** The key changes and moved rows that one batch touches, judged by all that is known at its end. */
private final class MoveBatch(waitMs: Long, functions: RowFunctions, group: GroupState, state: KeyedState) {
  private val changes = mutable.LinkedHashMap.empty[KeyChange, ChangeCell]
  private val moved = mutable.LinkedHashMap.empty[Bytes, MovedRow]
  private val unsettled = mutable.ArrayDeque.empty[ChangeCell]
  private val now = group.nowOrZero

  /** In an order that depends on their keys alone. */
  def rows: Seq[MovedRow] = {
    moved.values.foreach(judge)
    moved.values.toSeq.sortWith((a, b) => java.util.Arrays.compare(a.key, b.key) < 0)
  }

  def take(news: KeyChangeNews): Unit = news match {
    case OldRow(id, row, lack) => takeOld(change(id), row, lack)
    case Unclaimed(id) => change(id).claim = Claim.Nobody
    case RowNews(key, shown, row, lack, unhealed) => takeRow(rowOf(key), shown, row, lack, unhealed)
    case Forgotten(key) =>
      val row = rowOf(key)
      row.before = null
      row.set(null, null)
  }

  /** A connector may repeat an event: the first old row that is known counts. */
  private def takeOld(change: ChangeCell, row: Array[Byte], lack: Lack): Unit = {
    val isNew = change.oldRow == null
    if (isNew) change.setOld(row, lack)
    if (lack != null) this.change(lack.change).claim = if (isNew) Claim.ByChange(change.id) else Claim.Nobody
  }

  private def takeRow(
      found: MovedRow,
      shown: Array[Byte],
      row: Array[Byte],
      lack: Lack,
      unhealed: Seq[Unhealed]): Unit = {
    if (shown != null) found.before = shown
    found.set(row, lack)
    found.unhealed = if (lack == null) Nil else found.unhealed ++ unhealed
    found.isReported = true
    if (lack != null) change(lack.change).claim = Claim.ByRow(found.key)
  }

  /** Passes on, from change to change of a row's key, what has become known. */
  def settle(): Unit =
    while (unsettled.nonEmpty) {
      val change = unsettled.removeHead()
      if (!change.isGone && change.hasOld) settle(change)
    }

  private def settle(change: ChangeCell): Unit = change.claim match {
    case Claim.Nobody =>
      change.isGone = true
      if (change.awaited != null) this.change(change.awaited).claim = Claim.Nobody
    case Claim.ByChange(id) if change.awaited == null =>
      val next = this.change(id)
      change.isGone = true
      next.fill(change, functions)
      touch(next)
    case _ => ()
  }

  /** Ends the wait of the due changes whose other half has not come in time; some may be settled already. */
  def giveUp(due: Seq[KeyChange]): Unit = {
    val known = due.filter(id => changes.contains(id) || ChangeCell.isStored(id, state)).map(change)
    val (over, early) = known.filter(_.isWaiting).partition(_.isOver(waitMs, now))
    early.foreach(register)
    giveUpOn(over)
  }

  /** Ends the wait of all changes: no event will come any more. */
  def giveUpAll(): Unit =
    giveUpOn((ChangeCell.stored(state) ++ changes.keys).distinct.map(change).filter(_.isWaiting))

  private def giveUpOn(over: Seq[ChangeCell]): Unit = {
    over.foreach { change =>
      if (!change.hasOld) change.setOld(null, null)
      if (change.claim == Claim.None) change.claim = Claim.Nobody
    }
    settle()
  }

  def save(): Unit = {
    changes.values.foreach { change =>
      if (!change.isGone && !change.isStored && change.isWaiting) register(change)
      change.save()
    }
    moved.values.foreach { row =>
      group.rows(0) += (if (row.lack == null) 0 else 1) - (if (row.isStored) 1 else 0)
      row.save()
    }
  }

  private def register(change: ChangeCell): Unit =
    group.expiries.register(DueIndex.slotOf(change.startAt(now) + waitMs), change.id.bytes)

  /** Loads a change, and before it the row that waits for it; [[settle]] will look at the change again. */
  private def change(id: KeyChange): ChangeCell = {
    val found = changes.getOrElse(id, null)
    if (found != null) {
      touch(found)
      found
    } else {
      val loaded = new ChangeCell(id, now, state)
      changes(id) = loaded
      loaded.claim match {
        case Claim.ByRow(key) => rowOf(key)
        case _ => ()
      }
      touch(loaded)
      loaded
    }
  }

  private def touch(change: ChangeCell): Unit = unsettled += change

  /** The row of a key, with what has been shown of it before this batch. */
  private def rowOf(key: Array[Byte]): MovedRow = {
    val name = Bytes(key)
    val found = moved.getOrElse(name, null)
    if (found != null) found
    else {
      val loaded = new MovedRow(key, state)
      moved(name) = loaded
      if (loaded.lack != null) {
        judge(loaded)
        loaded.before = loaded.healed
      }
      loaded
    }
  }

  private def judge(row: MovedRow): Unit = {
    row.healed = row.row
    row.valuesAreLost = false
    if (row.lack != null) {
      val change = this.change(row.lack.change)
      val isHealed = change.knows(row.lack)
      row.healed = if (isHealed) functions.heal(row.row, row.lack.missing, change.oldRow) else null
      row.valuesAreLost = !isHealed && change.hasOld && change.awaited == null
    }
  }
}
